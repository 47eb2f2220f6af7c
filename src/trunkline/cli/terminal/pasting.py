"""What is pasted: a picture or a long text stands in the line as a few words, and is sent as what it is.

Terminals paste the path of a file that is dropped on them. That of a picture becomes an attachment; any other stays a
path.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from contextlib import suppress

from trunkline.base.regular import read_regular
from trunkline.cli.chat_files import mentioned
from trunkline.core.events import UserMessage

#: A text with more lines or characters is folded: it would push what was said before out of sight.
MOST_LINES = 20
MOST_CHARS = 2000
#: A pasted text that is longer is no list of paths. More files than that are a directory that somebody dropped.
LONGEST_PATHS = 10_000
MOST_PICTURES = 20
#: Where a picture tells its size, there may be much before it: a camera's notes, and a small picture of the picture.
HEAD_BYTES = 1024 * 1024
#: A folded text is kept in the history of what was typed, unless that would become a history of this text alone.
MOST_REMEMBERED = 20_000

_FOLDED = re.compile(r"\[(?:image|pasted) #(\d+)[^\[\]\n]*\]")
_FOLDED_LAST = re.compile(_FOLDED.pattern + r" ?\Z")


class PastedThings:
    """What was pasted in one sitting. Each thing has a number of its own."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self._pictures: dict[str, str] = {}
        """Paths, by what stands for them."""
        self._texts: dict[str, str] = {}

    def take(self, text: str) -> str:
        """What goes into the line for a text that is pasted."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        found = pictures_in(text)
        if found:
            return "".join(f"{self.picture(path)} " for path in found)
        if text.count("\n") < MOST_LINES and len(text) <= MOST_CHARS:
            return text
        lines = text.rstrip("\n").count("\n") + 1
        folded = f"[pasted #{self._number} {f'{lines} lines' if lines > 1 else f'{len(text)} characters'}]"
        self._texts[folded] = text
        return folded

    def picture(self, path: str) -> str:
        """What goes into the line for a picture."""
        from trunkline.tools import pictures

        found = None
        with suppress(OSError):
            found = pictures.inspect(read_regular(path, HEAD_BYTES).data)
        size = f" {found.width}x{found.height}" if found is not None and found.width else ""
        folded = f"[image #{self._number}{size}]"
        self._pictures[folded] = path
        return folded

    def message(self, text: str) -> UserMessage:
        """What is sent for a line: the texts in their places, the pictures and what is mentioned as its files."""
        shown = [found[0] for found in _FOLDED.finditer(text)]
        attached = [self._pictures[each] for each in shown if each in self._pictures]
        files = (*attached, *mentioned(text, self._workspace))
        return UserMessage(self._put_back(text, lambda folded: self._texts.get(folded)), tuple(dict.fromkeys(files)))

    def remembered(self, text: str) -> str:
        """A line as the history keeps it: what was pasted has another number the next time, or none."""
        return self._put_back(text, self._as_typed)

    @property
    def _number(self) -> int:
        return len(self._pictures) + len(self._texts) + 1

    def _as_typed(self, folded: str) -> str | None:
        if folded in self._pictures:
            path = self._pictures[folded]
            return f'@"{path}"' if " " in path else f"@{path}"
        text = self._texts.get(folded, "")
        return text if 0 < len(text) <= MOST_REMEMBERED else None

    def _put_back(self, text: str, by: Callable[[str], str | None]) -> str:
        return _FOLDED.sub(lambda found: found[0] if (said := by(found[0])) is None else said, text)


def without_last(text: str) -> str:
    """A line after backspace: what stands for something pasted goes as a whole."""
    found = _FOLDED_LAST.search(text)
    return text[: found.start()] if found else text[:-1]


def ends_folded(text: str) -> bool:
    """Whether a line ends in what stands for something pasted."""
    return _FOLDED_LAST.search(text) is not None


def pictures_in(text: str) -> list[str]:
    """The paths of the pictures that a text consists of; nothing if there is anything else in it."""
    text = text.strip()
    if not text or len(text) > LONGEST_PATHS:
        return []
    paths = _paths(text)
    if not 0 < len(paths) <= MOST_PICTURES or not all(map(_is_picture, paths)):
        return []
    return paths


def _paths(text: str) -> list[str]:
    """As terminals write them: addresses, quoted, with backslashes, or as they are."""
    if text.startswith("file://"):
        # Takes a while to import, and the prompt is waited for.
        from urllib.parse import unquote, urlsplit

        return [unquote(urlsplit(each).path) for each in text.split() if each.startswith("file://")]
    whole = os.path.expanduser(text.strip("'\""))
    if os.path.isabs(whole) and os.path.isfile(whole):
        return [whole]
    try:
        return [os.path.expanduser(each) for each in shlex.split(text)]
    except ValueError:
        return []


def _is_picture(path: str) -> bool:
    # Names alone are words that somebody wrote: what is dropped on a terminal comes with all of its path.
    if not os.path.isabs(path):
        return False
    from trunkline.tools import pictures

    try:
        return pictures.media_type(read_regular(path, 16).data) is not None
    except OSError:
        return False
