"""Finding a piece of text and replacing it, whatever the line endings.

A line feed in what is looked for matches a line feed and a carriage return with a line feed alike: the model sees
lines, not their endings. What is put in gets the ending of the lines where it goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trunkline.base.values import Value
from trunkline.tools.arguments import ToolInputError

NOT_FOUND = "old_string not found in file"
SAME_STRINGS = "old_string and new_string are the same: there is nothing to change"
AMBIGUOUS_ENDINGS = "Ambiguous line-ending match"


class NoReplacement(ToolInputError):
    """The text cannot be replaced as was asked; the message says why and what to do."""


class TextChange(Value):
    """One change: the characters from `start` up to `end` become `text`."""

    start: int
    end: int
    text: str


def find_replacements(text: str, old: str, new: str, every: bool) -> list[TextChange]:
    """The changes that replace `old` by `new`, from the first place to the last; one place, unless `every` is true.

    Raises:
        NoReplacement: there is no such place, or not only one, or nothing would change.
    """
    if _lines(old) == _lines(new):
        raise NoReplacement(SAME_STRINGS)
    spans = list(_find(text, old))
    if not spans:
        raise NoReplacement(_not_found(text))
    if len(spans) > 1 and not every:
        if len({_endings(text[start:end]) for start, end in spans}) > 1:
            raise NoReplacement(
                f"{AMBIGUOUS_ENDINGS}: old_string matches {len(spans)} places that differ in their line endings. "
                "Use replace_all or provide more context."
            )
        raise NoReplacement(f"Multiple matches found ({len(spans)}). Use replace_all or provide more context.")
    return [TextChange(start, end, _with_ending(new, _ending_at(text, start, end))) for start, end in spans]


def replaced(text: str, changes: Sequence[TextChange]) -> str:
    """The text with the changes made; they are in order and do not overlap."""
    pieces: list[str] = []
    position = 0
    for change in changes:
        pieces += text[position : change.start], change.text
        position = change.end
    pieces.append(text[position:])
    return "".join(pieces)


def _find(text: str, old: str) -> Iterator[tuple[int, int]]:
    if "\n" not in old:
        position = text.find(old)
        while position >= 0:
            yield position, position + len(old)
            position = text.find(old, position + len(old))
        return
    pattern = r"\r?\n".join(re.escape(line) for line in _lines(old).split("\n"))
    for match in re.finditer(pattern, text):
        yield match.span()


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def _endings(text: str) -> tuple[bool, bool]:
    """Whether a text has lines that end with CR LF, and some that end with LF alone."""
    both = text.count("\r\n")
    return both > 0, text.count("\n") > both


def _ending_at(text: str, start: int, end: int) -> str | None:
    """How lines end here: in the place itself, else the next one, else the one before; `None` where there is none."""
    has_crlf, has_lf = _endings(text[start:end])
    if has_crlf and has_lf:
        has_crlf = 2 * text.count("\r\n") > text.count("\n")
    elif not has_crlf and not has_lf:
        position = text.find("\n", end)
        position = text.rfind("\n", 0, start) if position < 0 else position
        if position < 0:
            return None
        has_crlf = text[position - 1 : position] == "\r"
    return "\r\n" if has_crlf else "\n"


def _with_ending(text: str, ending: str | None) -> str:
    return text if ending is None else _lines(text).replace("\n", ending)


def _not_found(text: str) -> str:
    hint = "Read the file again and copy the text exactly, without the line numbers."
    if re.search("[\udc80-\udcff]", text):
        hint += " Parts of this file are not UTF-8 and are shown as \N{REPLACEMENT CHARACTER}: leave them out."
    return f"{NOT_FOUND}. {hint}"
