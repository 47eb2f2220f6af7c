"""The front matter of a Markdown file: a few keys between two lines of `---`, and the text behind them.

It is read as people write it rather than as YAML has it: `description: Use this: always` is a text with a colon in it,
for which YAML wants quotes. Keys may have a text, on one line or several, or a list of texts; what is nested deeper is
passed over, since nothing here is. Keys are the same with `_` and with `-`, in capitals and in small letters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from trunkline.base.place import PlacedError
from trunkline.base.values import Value

_FENCE = "---"
_KEY = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*)|[ \t]*)$")
_ITEM = re.compile(r"[ \t]*-(?:[ \t]+(.*))?$")
_BLOCK = re.compile(r"([|>])[+-]?[0-9]?[+-]?(?:[ \t]+#.*)?$")
_COMMENT = re.compile(r"(?:^|[ \t])#.*$")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_YES = frozenset(("true", "yes", "on", "1"))


class FrontMatter(Value):
    """What a file says of itself. `problem`: why it cannot be read, in words; then it has no values."""

    values: Mapping[str, str | tuple[str, ...]]
    body: str
    problem: str = ""
    given: bool = True
    """Whether there is any."""
    source: str = ""
    """The lines themselves."""

    def text(self, key: str) -> str:
        """A value as one text."""
        found = self.values.get(key, "")
        return found if isinstance(found, str) else ", ".join(found)

    def words(self, key: str) -> tuple[str, ...]:
        """A value as a list: one of YAML, or words with commas or blanks between them. Blanks in parentheses stay."""
        found = self.values.get(key, "")
        parts = _split(found, " \t\n,") if isinstance(found, str) else [part.strip() for part in found]
        return tuple(part for part in parts if part)

    def yes(self, key: str) -> bool:
        """Whether a value says yes."""
        return self.text(key).strip().lower() in _YES


def read(text: str) -> FrontMatter:
    """Take a file apart. Nothing is wrong with one that has no front matter."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != _FENCE:
        return FrontMatter({}, text, given=False)
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in (_FENCE, "...")), None)
    if end is None:
        return FrontMatter({}, "", "its front matter, which begins with `---`, has no end")
    body = "\n".join(lines[end + 1 :]).strip("\n")
    source = "\n".join(lines[1:end])
    try:
        return FrontMatter(_Reader(lines[1:end]).values(), body, source=source)
    except _Unreadable as error:
        return FrontMatter({}, body, str(error), source=source)


class _Unreadable(PlacedError):
    """Why the lines cannot be read. What stands in them is not told: it may be anything."""


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def values(self) -> dict[str, str | tuple[str, ...]]:
        found: dict[str, str | tuple[str, ...]] = {}
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            key = _KEY.match(line)
            if key is None:
                raise _Unreadable(f"line {self._at + 1} of its front matter is not `key: value`")
            name = key[1].lower().replace("_", "-")
            if name in found:
                raise _Unreadable(f"`{key[1]}` is there twice")
            found[name] = self._value(key[1], (key[2] or "").strip())
        return found

    def _value(self, key: str, first: str) -> str | tuple[str, ...]:
        if first.startswith("#"):
            first = ""
        if block := _BLOCK.match(first):
            return _folded(self._indented(), keep=block[1] == "|")
        if first[:1] in ("'", '"'):
            return self._quoted(key, first)
        if first[:1] in ("[", "{"):
            return self._flow(key, first)
        more = self._indented(lists=not first)
        if not first and (items := [line for line in more if line.strip()]) and _ITEM.match(items[0]):
            return tuple(_scalar((found[1] or "").strip()) for line in items if (found := _ITEM.match(line)))
        if not first and any(_KEY.match(line.strip()) for line in more[:1]):
            # A table of its own.
            return ""
        return " ".join(part for line in (first, *more) if (part := _COMMENT.sub("", line).strip()))

    def _indented(self, *, lists: bool = False) -> list[str]:
        """The lines that belong to the key before them: those that are indented, and those of a list."""
        found = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip() and not line[0].isspace() and not (lists and _ITEM.match(line)):
                break
            found.append(line)
            self._at += 1
        return found

    def _quoted(self, key: str, first: str) -> str:
        mark, lines = first[0], [first]
        end = _closing(first, mark, 1)
        while end < 0:
            lines.append(self._next(f"the quotes of `{key}` are not closed"))
            end = _closing(lines[-1], mark, 0)
        last = lines.pop()
        if _COMMENT.sub("", last[end + 1 :]).strip():
            raise _Unreadable(f"something stands behind the quotes of `{key}`")
        return _scalar(" ".join([*lines, last[: end + 1]]))

    def _flow(self, key: str, first: str) -> str | tuple[str, ...]:
        lines, closing = [_COMMENT.sub("", first).rstrip()], "]" if first[0] == "[" else "}"
        while not lines[-1].endswith(closing):
            lines.append(_COMMENT.sub("", self._next(f"`{first[0]}` of `{key}` is not closed")).rstrip())
        if closing == "}":
            return ""
        return tuple(_scalar(part.strip()) for part in _split(" ".join(lines)[1:-1], ",") if part.strip())

    def _next(self, problem: str) -> str:
        """The next line, without the blanks around it; what is wrong if there is none."""
        if self._at >= len(self._lines):
            raise _Unreadable(problem)
        self._at += 1
        return self._lines[self._at - 1].strip()


def _folded(lines: list[str], *, keep: bool) -> str:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    cut = [line[indent:].rstrip() for line in lines]
    return "\n".join(cut).strip("\n") if keep else " ".join(line.strip() for line in cut if line.strip())


def _closing(text: str, mark: str, at: int) -> int:
    """Where a text in quotes ends, looked for from a place on; -1 if it does not."""
    while at < len(text):
        if mark == '"' and text[at] == "\\":
            at += 2
        elif text[at] != mark:
            at += 1
        elif mark == "'" and text[at + 1 : at + 2] == "'":
            at += 2
        else:
            return at
    return -1


def _scalar(text: str) -> str:
    """A text as it is meant, if it stands in quotes."""
    if len(text) < 2 or text[0] != text[-1] or text[0] not in "'\"":
        return text
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), text[1:-1])


def _split(text: str, marks: str) -> list[str]:
    """The parts of a text between some marks, which count for nothing within parentheses and quotes."""
    parts: list[str] = []
    begin, depth, quote, is_blank = 0, 0, "", True
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"" and is_blank:
            quote = char
        elif char in "()":
            depth = max(0, depth + (1 if char == "(" else -1))
        elif char in marks and not depth:
            parts.append(text[begin:at])
            begin, is_blank = at + 1, True
            continue
        is_blank = is_blank and char.isspace()
    return [*parts, text[begin:]]
