"""Tokens: who may come in, and what of a page is genuine.

All that a browser is handed is signed with a key made from the token of the address. So the server
keeps no list of who is in: killed and started again with the same token, it knows everybody still.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from typing import Any, NamedTuple

MOST_NAME = 80  # characters of a person's name
SHORTEST = 16  # characters of a token that somebody chooses


class Visitor(NamedTuple):
    """Who has a page open: their sitting, their name once they gave one, and what they may do."""

    run: str
    who: str | None
    is_lead: bool


class Tokens:
    """Makes and checks what is signed."""

    def __init__(self, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(24)
        self._key = hashlib.sha256(b"tiebreak page:" + self.token.encode()).digest()

    def is_token(self, said: str) -> bool:
        """Say whether this is the token of the address; takes as long for a near miss."""
        return hmac.compare_digest(said.encode(), self.token.encode())

    def new_visitor(self, who: str | None = None, *, is_lead: bool) -> Visitor:
        """Begin a sitting."""
        return Visitor(secrets.token_hex(8), who, is_lead)

    def cookie(self, visitor: Visitor) -> str:
        """Return the cookie of a visitor."""
        return self.signed("cookie", list(visitor))

    def visitor(self, cookie: str | None) -> Visitor | None:
        """Return who a cookie belongs to, None where it is not of this server."""
        found = self.read("cookie", cookie)
        return None if found is None else Visitor(*found)

    def csrf(self, visitor: Visitor) -> str:
        """Return what every form of a visitor must bring back."""
        return self._mac("csrf", visitor.run)

    def is_csrf(self, said: str, visitor: Visitor) -> bool:
        """Say whether a form came from a page of this visitor."""
        return hmac.compare_digest(said.encode(), self.csrf(visitor).encode())

    def invitation(self, who: str, key: str) -> str:
        """Return an invitation for one person; `key` tells it from others for the same name."""
        return self.signed("invitation", [who, key])

    def invited(self, said: str | None) -> tuple[str, str] | None:
        """Return whom an invitation is for, and its key; None where it is not of this server."""
        match self.read("invitation", said):
            case [str(who), str(key)]:
                return who, key
            case _:
                return None

    def signed(self, purpose: str, value: Any) -> str:
        """Return a value as text that only this server can have made."""
        body = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
        text = base64.urlsafe_b64encode(body).decode().rstrip("=")
        return f"{text}.{self._mac(purpose, text)}"

    def read(self, purpose: str, said: str | None) -> Any:
        """Return what was signed; None where it was not, or for another purpose."""
        text, _, mac = (said or "").partition(".")
        if not hmac.compare_digest(mac.encode(), self._mac(purpose, text).encode()):
            return None
        return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))

    def _mac(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose}:{text}".encode(), hashlib.sha256).hexdigest()


def clean_name(said: str) -> str | None:
    """Return a person's name without spaces around it, None where there is none or too much.

    >>> clean_name(" ann  lee "), clean_name(" ")
    ('ann lee', None)
    """
    name = " ".join("".join(c if c.isprintable() else " " for c in said).split())
    return name if 0 < len(name) <= MOST_NAME else None
