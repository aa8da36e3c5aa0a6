"""A tiny dataset, and a server on this machine that serves public copies as badly as it is told."""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tiebreak.datasets.catalogue import Catalogue, Entry, Info, PublicCopy, PublicFile

NAME = "tiny"
LABELS_PATH = "data/some folder/label.csv"
TRUTHS_PATH = "data/some folder/truth.csv"
N_WORKERS = 40

# Worker 0 answers task 0 a second time, and changes their mind.
_rows = [f"{i},{w},{(i * w) % 3 == 0:d}" for i in range(4) for w in range(N_WORKERS)] + ["0,0,0"]
LABELS = "\n".join(["item,worker,label", *_rows, ""]).encode()
TRUTHS = b"item,truth\n0,1\n2,0\n3,1\n"


def public_file(path: str, content: bytes) -> PublicFile:
    rows = content.count(b"\n") - 1
    return PublicFile(path, len(content), hashlib.sha256(content).hexdigest(), rows)


def tiny(labels: bytes = LABELS, truths: bytes = TRUTHS, **facts: Any) -> Entry:
    """Return a dataset whose copy holds these files; codes 0, 1 stand for no, yes."""
    counts = {"n_tasks": 4, "n_workers": 40, "n_classes": 2, "n_responses": 160, "n_gold": 3}
    info = Info(
        name=NAME, title="Tiny", task="A thing.", classes={"no": "", "yes": ""},
        source="some/one", source_paths=("a.csv",), licence="none stated", differences="",
        task_ids="Numbers.", **{**counts, **facts},
    )  # fmt: skip
    copy = PublicCopy(
        public_file(LABELS_PATH, labels),
        public_file(TRUTHS_PATH, truths),
        classes={"0": "no", "1": "yes"},
        first_task=1,
    )
    return Entry(info, copy)


def catalogue_of(*entries: Entry) -> Catalogue:
    by_name: Mapping[str, Entry] = {entry.info.name: entry for entry in entries}
    return Catalogue("some/copies", "0123abcd", "MIT", by_name)


class Copies(ThreadingHTTPServer):
    """Serves `files`; `asked` has the paths that were asked for.

    `cuts` are numbers of bytes after which the next answers break off, one an answer. `hold`, if
    set, keeps a connection open after that until it is released. `meeting` makes answers wait for
    each other.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.files = {f"/{LABELS_PATH}": LABELS, f"/{TRUTHS_PATH}": TRUTHS}
        self.asked: list[str] = []
        self.cuts: deque[int] = deque()
        self.says_length = True
        self.hold: threading.Event | None = None
        self.meeting: threading.Barrier | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def stop(self) -> None:
        """Refuse connections from now on."""
        self.shutdown()
        self.server_close()

    def n_asked(self, name: str) -> int:
        """Return how often a file of that name was asked for."""
        return sum(path.endswith(f"/{name}") for path in self.asked)


class _Answer(BaseHTTPRequestHandler):
    server: Copies

    def do_GET(self) -> None:
        path = self.path.replace("%20", " ")
        self.server.asked.append(path)
        content = self.server.files.get(path)
        if content is None:
            self.send_error(404)
            return
        if self.server.meeting is not None and path.endswith("label.csv"):
            self.server.meeting.wait()
        self.send_response(200)
        if self.server.says_length:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if not self.server.cuts:
            self.wfile.write(content)
            return
        self.wfile.write(content[: self.server.cuts.popleft()])
        self.wfile.flush()
        if self.server.hold is not None:
            self.server.hold.wait()

    def log_message(self, *_: object) -> None:
        """Stay silent."""


@contextmanager
def serving() -> Iterator[Copies]:
    """Serve until the block ends; after that, the address refuses connections."""
    server = Copies()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        if server.hold is not None:
            server.hold.set()
        server.stop()
        thread.join()
