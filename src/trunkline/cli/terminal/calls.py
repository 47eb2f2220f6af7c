"""Tool calls in a few words: what a call is about, and what of its result is worth a glance."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from trunkline.base.escapes import without_escapes
from trunkline.base.printable import printable
from trunkline.base.values import Value
from trunkline.base.visible import visible
from trunkline.core.events import ToolFinished

#: Lines of a result that are shown: enough to see that it worked, or why it did not.
SHOWN_LINES = 4
SHOWN_ERROR_LINES = 10
#: One line about a call or of a result; the terminal's width cuts it further.
LONGEST_LINE = 400

#: The arguments that say what a call is about, the most telling first.
_TELLING = (
    "command",
    "cmd",
    "file_path",
    "path",
    "pattern",
    "query",
    "url",
    "prompt",
    "task",
    "name",
    "plan",
    "bash_id",
)

#: How the result of Read begins if the model has the file already.
_UNCHANGED = "File unchanged since last read."
#: What is said of a command that runs in the background: by Bash, and by the tools that look after it.
_IN_BACKGROUND = re.compile(r"The command runs in the background\.\nbash_id: (\S+)\n.*", re.DOTALL)
_BACKGROUND_OUTPUT = re.compile(
    r"bash_id: \S+\n(?:Status: (running)[^\n]*|Exit code: (-?\d+))\n(?:\[ended by ([^\n]+)\]\n)?OUTPUT:\n(.*)",
    re.DOTALL,
)
_COMMAND_RESULT = re.compile(r"Exit code: (-?\d+)\nSTDOUT:\n(.*)\nSTDERR:\n(.*)", re.DOTALL)


class Caption(Value):
    """A call in one line: the tool, and what it is to do."""

    name: str
    about: str = ""


def caption(name: str, args: Mapping[str, Any] | None = None, description: str = "") -> Caption:
    """What a call is about: its most telling argument, else its description, else all arguments."""
    args = args or {}
    for key in _TELLING:
        value = args.get(key)
        if isinstance(value, str) and value.strip():
            return _captioned(name, value)
    if description and description != name:
        return _captioned(name, description.removeprefix(f"{name}: "))
    pairs = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in args.items())
    return _captioned(name, pairs)


def _captioned(name: str, about: str) -> Caption:
    # What nobody would see is shown: a call that was allowed looks as it did when it was asked about.
    line = one_line(visible(about[: 4 * LONGEST_LINE]))
    return Caption(one_line(visible(name[:LONGEST_LINE])), line)


class ResultExcerpt(Value):
    """The part of a result that is shown. `hidden` is how many more lines there are."""

    lines: tuple[str, ...]
    hidden: int = 0


def glance(event: ToolFinished) -> ResultExcerpt:
    """A look at a result that is no diff."""
    if event.output_type == "image":
        return ResultExcerpt(("(an image)",))
    text = clean(event.output)
    if event.status == "success" and event.name == "Read":
        if text.startswith(_UNCHANGED):
            return ResultExcerpt(("unchanged since it was read",))
        count = len(text.splitlines())
        return ResultExcerpt((f"{count} line{'' if count == 1 else 's'}",))
    if event.status == "success" and (found := _IN_BACKGROUND.fullmatch(text)):
        return ResultExcerpt((f"runs in the background as {found[1]}",))
    if event.status == "success" and (found := _BACKGROUND_OUTPUT.fullmatch(text)):
        return _of_background(found)
    text = _command_output(text)
    lines = [line[:LONGEST_LINE] for line in text.strip("\n").split("\n")]
    if event.status == "error":
        # What went wrong is said last.
        shown = lines[-SHOWN_ERROR_LINES:]
    else:
        shown = lines[:SHOWN_LINES]
    if lines == [""]:
        return ResultExcerpt(("(no output)",))
    return ResultExcerpt(tuple(shown), len(lines) - len(shown))


def _of_background(found: re.Match[str]) -> ResultExcerpt:
    """How a command in the background is doing, and the newest of what it has printed."""
    running, code, killed_by, output = found.groups()
    state = "still running" if running else f"ended by {killed_by}" if killed_by else f"exit code {code}"
    lines = [line[:LONGEST_LINE] for line in output.strip("\n").split("\n")]
    shown = lines[-SHOWN_LINES:]
    hidden = len(lines) - len(shown)
    before = f", {hidden} more line{'' if hidden == 1 else 's'} before these" if hidden else ""
    return ResultExcerpt((f"{state}{before}:", *shown))


def _command_output(text: str) -> str:
    """What a command printed, without the form that is made for models."""
    found = _COMMAND_RESULT.fullmatch(text)
    if found is None:
        return text
    code, out, err = found.groups()
    parts = [part.strip("\n") for part in (out, err) if part.strip()]
    return "\n".join([*parts, *([f"exit code {code}"] if code != "0" else [])])


def one_line(text: str) -> str:
    """The first line of a text that says something."""
    lines = clean(text[: 4 * LONGEST_LINE]).strip().split("\n")
    return lines[0][:LONGEST_LINE] + (" …" if len(lines) > 1 or len(lines[0]) > LONGEST_LINE else "")


def clean(text: str) -> str:
    """A text that does nothing to a terminal but appear on it, as far as it would have shown there."""
    text = without_escapes(text).replace("\r\n", "\n").expandtabs(4)
    if "\r" in text:
        # A progress bar writes its line over and over.
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return printable(text)


def in_a_line(text: str) -> str:
    """What somebody types or says, as one line that shows where it has several."""
    return clean(text).replace("\n", " ⏎ ")


def clean_delta(text: str) -> str:
    """A piece of the model's own words. Its control characters are shown, not obeyed."""
    return clean(text.replace("\r", ""))
