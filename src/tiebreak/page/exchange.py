"""What handlers of requests share: reading what was sent, and answering what cannot be."""

from __future__ import annotations

import tempfile
from pathlib import Path
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from tiebreak import tables
from tiebreak.errors import OptionError
from tiebreak.markup import tag
from tiebreak.page import layout
from tiebreak.page.room import Room
from tiebreak.page.tokens import Visitor
from tiebreak.tables.write import safe_cells

Form = dict[str, str]


def visitor_of(request: Request) -> Visitor | None:
    """Return who sends a request, as the guard found."""
    found: Visitor | None = request.scope["visitor"]
    return found


async def read_form(request: Request) -> Form:
    """Read a form, as browsers send it; each field once."""
    body = (await request.body()).decode("utf-8", "replace")
    return {key: values[-1] for key, values in parse_qs(body, max_num_fields=20).items()}


def has_script(request: Request) -> bool:
    """Say whether htmx sent it: a part of a page suffices."""
    return request.headers.get("hx-request") == "true"


def base_of(request: Request) -> str:
    """Return the beginning of every address of this server."""
    return f"{request.url.scheme}://{request.headers['host']}"


def whole(text: str) -> int:
    """Read a number of 0 or more."""
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise OptionError("A number is missing or wrong. Load the page again.")
    return int(text)


def share(text: str | None, default: float) -> float:
    """Read a number between 0 and 1."""
    try:
        value = float(text or default)
    except ValueError:
        return default
    return min(max(value, 0.0), 1.0) if value == value else default


def table_bytes(room: Room, what: str, form: str) -> bytes:
    """Return a table as bytes, written as `tiebreak ask` and `tiebreak fuse` write theirs.

    A download is opened in a spreadsheet, and what people typed must not run there.
    """
    desk = room.desk
    with safe_cells(), tempfile.TemporaryDirectory(prefix="tiebreak-") as folder:
        path = Path(folder) / f"{what}.{form}"
        if what == "labels":
            tables.write_labels(path, desk.model().labels_)
            return path.read_bytes()
        with desk.lock:
            links = desk.links() if what == "links" else None
            known = desk.labels().to_dict() if what == "known" else {}
        empty: dict[str, list[str]] = {"left": [], "right": [], "link": [], "who": []}
        columns = {"task": list(known), "label": list(known.values())}
        tables.write_table(path, columns if links is None else empty | links.columns())
        return path.read_bytes()


async def not_found(request: Request, error: Exception) -> Response:
    """Answer for an address that is none."""
    status = error.status_code if isinstance(error, HTTPException) else 404
    return error_page(status, "There is no such page." if status == 404 else "Not this way.")


async def our_fault(request: Request, error: Exception) -> Response:
    """Answer for an error that nobody foresaw."""
    return error_page(500, "Something went wrong here. What was acknowledged is kept; try again.")


def error_page(status: int, words: str) -> HTMLResponse:
    """Say why something is not shown."""
    page = layout.document("Not here", tag("h1", "Not here"), tag("p", words, role="alert"))
    return HTMLResponse(page, status_code=status)
