"""What a person is shown of a call before they decide about it: the one renderer of terminal, chats, pages and runner.

Every argument is shown, under its name: none can take the place of another, and none is left out. Only what the tools
Write and Edit change is shown as a change, where lines that stay the same are counted. No character is
unseen (`base.visible`). What is too long loses its middle, where it says how much is missing; with the room `WHOLE`
nothing is. What comes out is for a face to give its form: colours, code blocks, plain lines.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from trunkline.base.values import Value
from trunkline.base.visible import inline, unseen, visible
from trunkline.core.change import DiffRow, change
from trunkline.core.events import Category

#: A value of one line up to here stands beside its name, and a command or a path beside the tool's.
SHORT_CHARS = 400
#: All arguments together, beside the tool's name.
SHORT_PAIRS = 100
#: Files beyond that are not read just to show what would change in them: what tools write is less.
LARGEST_FILE = 10 * 1024 * 1024
#: Languages that a file's name may choose for its content.
_LONGEST_ENDING = 12

#: JSON that is longer is not laid out: it would be as many lines as it has values.
_MOST_INDENTED = 100_000
#: Of each line of a change at least so much is shown.
_SHORTEST_ROW = 120

#: How a character looks that is shown by its number.
_NUMBER = "<U+"
#: Over arguments that stand below a command. No argument's name is shown like this.
_OTHERS = "other arguments"
_ARGUMENTS = "[... {} arguments are not shown ...]"

_COMMANDS = ("command", "cmd")
_FILES = ("file_path", "notebook_path")
_PATHS = (*_FILES, "path")
#: The tools whose arguments are shown as a change, and what they are called with: what another one makes of a text that
#: is in a file already, or of two that are alike, nobody here knows.
_WRITING = {"Write": frozenset(("file_path", "content")), "Edit": frozenset(("file_path", "old_string", "new_string"))}
_EXTRA = frozenset(("replace_all",))


T = TypeVar("T")


class PreviewSize(Value):
    """How much of each part is shown: lines, characters in them, and how many parts."""

    lines: int
    chars: int
    parts: int


#: All of it.
WHOLE: PreviewSize | None = None
#: At a terminal: as much as a person reads, and as a screen holds besides the question.
SCREEN = PreviewSize(lines=16, chars=3000, parts=12)
#: What the agent says about a call is a sentence or two.
DESCRIPTION_CHARS = 500


class PreviewPart(Value):
    """One thing to look at."""

    label: str = ""
    """The argument's name."""
    text: str = ""
    language: str = ""
    """What a code block would say: `sh`, `diff`, the ending of a file's name."""
    rows: tuple[DiffRow, ...] = ()
    """Of a change: what `text` says, line by line."""
    missing: int = 0
    """How many characters of the middle are not shown."""
    unseen: int = 0
    """How many characters are shown by their numbers, since nobody would see them."""


class Preview(Value):
    """A call, as it is shown. `about` is what it is about in one line, if anything is: a command, a path."""

    name: str
    about: PreviewPart = PreviewPart()
    parts: tuple[PreviewPart, ...] = ()
    left_out: int = 0
    """Arguments in the middle that are not shown."""

    @property
    def is_cut(self) -> bool:
        """Whether there is more to see."""
        return bool(self.missing)

    @property
    def missing(self) -> tuple[str, ...]:
        """How much there is more to see: of each kind, in words."""
        counts = {"arguments": self.left_out, "characters": sum(part.missing for part in self.parts)}
        return tuple(f"{count:,} {kind}" for kind, count in counts.items() if count)

    @property
    def is_change(self) -> bool:
        """Whether it shows what the call would change, as its result will, too."""
        return any(part.rows for part in self.parts)

    @property
    def warning(self) -> str:
        """That something is there which nobody would have seen; nothing if there is not."""
        count = self.about.unseen + sum(part.unseen for part in self.parts) + self.name.count(_NUMBER)
        if not count:
            return ""
        return (
            "1 character that would not be seen is shown by its number."
            if count == 1
            else f"{count} characters that would not be seen are shown by their numbers."
        )


def preview(
    name: str,
    args: Mapping[str, Any],
    room: PreviewSize | None = WHOLE,
    before: str | None = None,
    category: Category = "edit",
) -> Preview:
    """Show a call. `before` is the content that the file has which it would write or edit, if that is known."""
    return _Writing(dict(args), room, before, is_change=is_change(name, args, category)).preview(name)


def is_change(name: str, args: Mapping[str, Any], category: Category = "edit") -> bool:
    """Whether a call is shown as a change of a file."""
    return category == "edit" and name in _WRITING and args.keys() - _EXTRA == _WRITING[name]


def changed_texts(name: str, args: Mapping[str, Any], before: str | None) -> tuple[str | None, str] | None:
    """What a change makes of a file: all of it before and after, or else the two stretches. None if it is no change.

    `before` is as for `preview`. The first text is None if a file is written of which nobody knows.
    """
    if not is_change(name, args):
        return None
    if isinstance(content := args.get("content"), str):
        return before, content
    old, new = args.get("old_string"), args.get("new_string")
    if not isinstance(old, str) or not isinstance(new, str):
        return None
    return _replaced(before, old, new, every=args.get("replace_all") is True)


def file_before(path: Any, workspace: str, largest: int = LARGEST_FILE) -> str | None:
    """The content of the file that a call is about; None if there is none, or it cannot be compared."""
    if not isinstance(path, str) or not path:
        return None
    # As the tools find it.
    path = os.path.normpath(os.path.join(workspace, os.path.expanduser(path)))
    try:
        # Not what only looks like a file: opening a pipe would wait for whoever writes to it.
        if not os.path.isfile(path) or os.path.getsize(path) > largest:
            return None
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            return file.read()
    except (OSError, ValueError):
        return None


def plain(shown: Preview) -> str:
    """A preview as lines of text, for where there is neither colour nor markup."""
    lines = [f"{shown.name} {shown.about.text}".rstrip()]
    for part in shown.parts:
        if part.label:
            lines.append(f"  {part.label}:")
        indent = "    " if part.label else "  "
        lines += [indent + line for line in part.text.split("\n")]
    if shown.warning:
        lines.append(f"  ({shown.warning})")
    return "\n".join(lines)


def said_of(description: str) -> str:
    """What the agent says about a call, which need not be true: one line that says whose words these are. Nothing if it
    says nothing."""
    line = inline(description, DESCRIPTION_CHARS)
    return f"It says: `{line}`" if line else ""


class _Writing:
    """The parts of one call. Each takes its arguments away; what nobody took is listed."""

    def __init__(self, args: dict[str, Any], room: PreviewSize | None, before: str | None, *, is_change: bool) -> None:
        self._args = args
        self._is_change = is_change
        self._room = room
        self._before = before
        self._path = next((args[key] for key in _PATHS if isinstance(args.get(key), str)), "")

    def preview(self, name: str) -> Preview:
        about = self._about()
        blocks = [*self._commands(), *self._changes(), *self._others()]
        listed = [f"{_label(key)}: {visible(_json(value), keep='')}" for key, value in self._args.items()]
        hidden = sum(unseen(key, "") + unseen(_json(value), "") for key, value in self._args.items())
        if listed and not about.text and not blocks and len(pairs := ", ".join(listed)) <= SHORT_PAIRS:
            return Preview(_line(name), PreviewPart(text=pairs, unseen=hidden))
        left_out = 0
        if self._room is not None:
            listed, some = _without_middle(listed, self._room.parts, _ARGUMENTS.format)
            blocks, more = _without_middle(
                blocks, self._room.parts, lambda count: PreviewPart(text=_ARGUMENTS.format(count))
            )
            left_out = some + more
        if listed:
            # Behind a command, which is what everybody looks for first; and not as more lines of it.
            is_command = bool(blocks) and blocks[0].language == "sh"
            blocks.insert(int(is_command), PreviewPart(_OTHERS if is_command else "", "\n".join(listed), unseen=hidden))
        return Preview(_line(name), about, tuple(blocks), left_out)

    def _about(self) -> PreviewPart:
        """The command or, without one, the path of a file; if it can be seen whole in one line."""
        is_of_a_file = len(self._args) == 1 or not {"content", "old_string"}.isdisjoint(self._args)
        for key in (*_COMMANDS, *(_PATHS if is_of_a_file else _FILES)):
            value = self._args.get(key)
            if isinstance(value, str):
                if not _is_short(value):
                    # It stands below, with the others: one of them must not be taken for the whole.
                    return PreviewPart()
                del self._args[key]
                return PreviewPart(key, value, "sh" if key in _COMMANDS else "")
        return PreviewPart()

    def _changes(self) -> Iterator[PreviewPart]:
        old, new = self._args.get("old_string"), self._args.get("new_string")
        if self._is_change and isinstance(old, str) and isinstance(new, str) and old != new:
            del self._args["old_string"], self._args["new_string"]
            every = self._args.get("replace_all") is True
            is_there = self._before is None or not old or _lines(old) in _lines(self._before)
            yield self._change(*_replaced(self._before, old, new, every=every), numbered=is_there)
            if not is_there:
                yield PreviewPart(text="(cannot work as the file is now: it does not hold what is to be replaced)")
        content = self._args.get("content")
        if isinstance(content, str) and self._path:
            del self._args["content"]
            if self._is_change and self._before not in (None, content):
                yield self._change(self._before or "", content)
            else:
                yield self._block("content", content, _ending(self._path))
                if self._is_change and self._before is not None:
                    yield PreviewPart(text="(no change: the file has this content already)")

    def _commands(self) -> Iterator[PreviewPart]:
        for key in _COMMANDS:
            if isinstance(self._args.get(key), str):
                yield self._block(key, self._args.pop(key), "sh")

    def _others(self) -> Iterator[PreviewPart]:
        """What needs more than a line."""
        for key, value in tuple(self._args.items()):
            if isinstance(value, str):
                if _fits_a_line(value):
                    continue
                yield self._block(key, value)
            elif len(shown := _json(value)) > SHORT_CHARS:
                yield self._block(key, _json(value, indent=1) if len(shown) < _MOST_INDENTED else shown, "json")
            else:
                continue
            del self._args[key]

    def _block(self, key: str, text: str, language: str = "") -> PreviewPart:
        head, tail, missing = _cut(text.removesuffix("\n"), self._room)
        shown = visible(head)
        if missing:
            shown += f"\n{_mark(missing)}\n{visible(tail)}"
        return PreviewPart(_label(key), shown, language, missing=missing, unseen=unseen(head) + unseen(tail))

    def _change(self, old: str, new: str, *, numbered: bool = True) -> PreviewPart:
        """`numbered`: the numbers of the lines are those of the file."""
        rows, missing = change(old, new), 0
        if not numbered:
            rows = [row.replace(number=None) for row in rows]
        if self._room is not None:
            rows, missing = _cut_rows(rows, self._room)
        hidden = sum(unseen(row.text, "\t") for row in rows)
        seen = tuple(row.replace(text=visible(row.text, "\t")) for row in rows)
        text = "\n".join((" " if row.sign == "@" else row.sign) + row.text for row in seen)
        return PreviewPart("", text, "diff", seen, missing, hidden)


def _cut(text: str, room: PreviewSize | None) -> tuple[str, str, int]:
    """The beginning and the end of a text, and how many characters are between them; all of it if there is room."""
    if room is None or (len(text) <= room.chars and text.count("\n") < room.lines):
        return text, "", 0
    head, tail = _ends(text, room.lines)
    if len(head) + len(tail) > room.chars:
        end = min(len(tail), room.chars // 3)
        head, tail = head[: room.chars - end], tail[len(tail) - end :]
    return head, tail, len(text) - len(head) - len(tail)


def _ends(text: str, lines: int) -> tuple[str, str]:
    """As many of the first and the last lines as there is room for."""
    head, tail = lines - lines // 3, lines // 3
    if text.count("\n") < lines:
        middle = len(text) - len(text) // 3
        return text[:middle], text[middle:]
    end, start = -1, len(text)
    for _ in range(head):
        end = text.index("\n", end + 1)
    for _ in range(tail):
        start = text.rindex("\n", 0, start)
    return text[:end], text[start + 1 :]


def _cut_rows(rows: Sequence[DiffRow], room: PreviewSize) -> tuple[list[DiffRow], int]:
    """Rows without their middle, each without its own, and how many characters are missing."""
    gone: Sequence[DiffRow] = ()
    tail = room.lines // 3
    if len(rows) > room.lines:
        gone = rows[room.lines - tail : len(rows) - tail]
    missing = sum(len(row.text) + 1 for row in gone)
    kept = (
        [*rows[: room.lines - tail], DiffRow("@", None, _mark(missing)), *rows[len(rows) - tail :]] if gone else [*rows]
    )
    most = max(_SHORTEST_ROW, room.chars // 8)
    for at, row in enumerate(kept):
        if (more := len(row.text) - most) > 0:
            end = most // 3
            kept[at] = row.replace(text=f"{row.text[: most - end]} {_mark(more)} {row.text[len(row.text) - end :]}")
            missing += more
    return kept, missing


def _without_middle(items: list[T], most: int, mark: Callable[[int], T]) -> tuple[list[T], int]:
    missing = len(items) - most
    if missing <= 0:
        return items, 0
    tail = most // 3
    return [*items[: most - tail], mark(missing), *items[len(items) - tail :]], missing


def _replaced(before: str | None, old: str, new: str, *, every: bool) -> tuple[str, str]:
    """The file before and after, if it holds the old text; else the two texts alone."""
    if before is None or not old or old not in before:
        return old, new
    return before, before.replace(old, new, -1 if every else 1)


def _lines(text: str) -> str:
    """A text as Edit compares it: line endings are taken care of."""
    return text.replace("\r\n", "\n")


def _is_short(text: str) -> bool:
    """Whether a text can stand in a line as it is."""
    return 0 < len(text) <= SHORT_CHARS and text == text.strip() == visible(text, keep="")


def _fits_a_line(text: str) -> bool:
    return len(text) <= SHORT_CHARS and "\n" not in text


def _mark(missing: int) -> str:
    return f"[... {missing:,} characters are not shown ...]"


def _json(value: Any, indent: int | None = None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    except (ValueError, RecursionError):
        return repr(value)


def _line(text: str) -> str:
    return visible(text[:SHORT_CHARS], keep="") + (_mark(len(text) - SHORT_CHARS) if len(text) > SHORT_CHARS else "")


def _label(key: str) -> str:
    """An argument's name, which cannot be taken for a name and a value."""
    return key if key.isascii() and key.isidentifier() else _line(_json(key))


def _ending(path: str) -> str:
    ending = os.path.splitext(path)[1][1:]
    return ending if ending.isascii() and ending.isalnum() and len(ending) <= _LONGEST_ENDING else ""
