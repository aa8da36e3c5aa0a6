"""Contents: what a page shows of a task: text, a safe subset of Markdown, an image, a sound."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from tiebreak.ask.job import Job, by_code
from tiebreak.errors import InputError, note
from tiebreak.markup import Markup, join, tag
from tiebreak.wording import counted

# What may be served, by ending: pictures and sounds, nothing that a browser would run as a page.
TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".svg": "image/svg+xml",
    ".mp3": "audio/mpeg",
    ".wav": "audio/wav",
    ".ogg": "audio/ogg",
    ".oga": "audio/ogg",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
}
LONG = 20_000  # characters of a text that are shown
INLINE = re.compile(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\n]+)\*")
ITEM = re.compile(r"\s{0,3}[-*+]\s+(.*)")


class Contents(NamedTuple):
    """What tasks look like, by code of task, and where their files lie."""

    markdown: Mapping[int, str]
    image: Mapping[int, str]
    audio: Mapping[int, str]
    media: Path | None
    allows_remote: bool

    @classmethod
    def of(
        cls,
        found: Mapping[str, Mapping[Hashable, str]],
        job: Job,
        media: str | None = None,
        *,
        allows_remote: bool = False,
    ) -> Contents:
        """Take what a table of contents has; refuse files without a folder to find them in."""
        tasks = job.responses.tasks
        columns = {name: by_code(values, tasks)[0] for name, values in found.items()}
        root = None if media is None else Path(media).resolve()
        if root is not None and not root.is_dir():
            raise InputError(f"{media} is not a folder. --media names one with images or sounds.")
        made = cls(
            columns.get("markdown", {}),
            columns.get("image", {}),
            columns.get("audio", {}),
            root,
            allows_remote,
        )
        made._refuse_without_media()
        return made

    def _refuse_without_media(self) -> None:
        named = [*self.image.values(), *self.audio.values()]
        n_remote = sum(_is_remote(name) for name in named)
        if n_remote and not self.allows_remote:
            note(
                f"{counted(n_remote, 'address')} of images or sounds: not shown. --allow-remote "
                "lets browsers fetch them, which tells those servers who looks at what."
            )
        if len(named) > n_remote and self.media is None:
            raise InputError("The texts name images or sounds. Say in which folder: --media DIR.")

    def show(self, code: int, text: str | None, name: str) -> Markup:
        """Return what a task looks like; its id where nothing else is known."""
        parts: list[Markup] = []
        source = self.address(self.image.get(code))
        if source is not None:
            parts.append(tag("img", src=source, alt=f"Task {name}", class_="picture"))
        source = self.address(self.audio.get(code))
        if source is not None:
            parts.append(tag("audio", controls=True, src=source, aria_label=f"Sound of {name}"))
        if code in self.markdown:
            parts.append(tag("div", markdown(self.markdown[code]), class_="markdown"))
        elif text is not None:
            parts.append(tag("p", _shortened(text), class_="text"))
        return join(parts or [tag("p", name, class_="text")])

    def address(self, named: str | None) -> str | None:
        """Return where a browser finds a file; None where it may not have it."""
        if named is None:
            return None
        if _is_remote(named):
            return named if self.allows_remote and named.startswith("https://") else None
        return "/media/" + quote(named)

    def file(self, named: str) -> Path | None:
        """Return a file below the folder of media, None for anything else.

        Links are followed before it is looked where the file lies, so that none leads out.
        """
        if self.media is None or "\0" in named or Path(named).suffix.lower() not in TYPES:
            return None
        try:
            path = (self.media / named).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            return None
        is_below = path.is_relative_to(self.media) and path.is_file()
        return path if is_below and os.access(path, os.R_OK) else None


def markdown(text: str) -> Markup:
    r"""Show a safe subset of Markdown: paragraphs, headings, lists, quotes, code, bold, italics.

    Links, images and HTML stay as they are written: they would lead out of the page.

    >>> markdown("A **cat** <b>\n\n- one\n- two")
    '<p>A <strong>cat</strong> &lt;b&gt;</p><ul><li>one</li><li>two</li></ul>'
    """
    blocks: list[Markup] = []
    for block in re.split(r"\n\s*\n", _shortened(text).strip("\n")):
        lines = block.split("\n")
        items = [ITEM.fullmatch(line) for line in lines]
        if lines[0].startswith("```"):
            kept = [line for line in lines if not line.startswith("```")]
            blocks.append(tag("pre", tag("code", "\n".join(kept))))
        elif all(items):
            blocks.append(tag("ul", *(tag("li", _inline(item[1])) for item in items if item)))
        elif all(line.startswith(">") for line in lines):
            quoted = "\n".join(line.lstrip("> ") for line in lines)
            blocks.append(tag("blockquote", _inline(quoted)))
        elif len(lines) == 1 and re.match("#{1,6} ", block):
            blocks.append(tag("p", tag("strong", _inline(block.lstrip("# ")))))
        else:
            blocks.append(tag("p", _inline(block)))
    return join(blocks)


def _inline(text: str) -> Markup:
    parts: list[object] = []
    end = 0
    for found in INLINE.finditer(text):
        parts.append(text[end : found.start()])
        for group, name in enumerate(("code", "strong", "em"), start=1):
            if found[group] is not None:
                parts.append(tag(name, found[group]))
        end = found.end()
    return join([*parts, text[end:]])


def _shortened(text: str) -> str:
    if len(text) <= LONG:
        return text
    return f"{text[:LONG]} … ({len(text) - LONG:,} more characters)"


def _is_remote(name: str) -> bool:
    return bool(urlsplit(name).scheme) or name.startswith("//")
