"""Finds what the documentation tells people to type, and what it says they will see.

The conventions, for whoever writes documentation:

- ```console: each line that begins with `$ ` is run by `sh`, in a directory that one document has for itself. Lines
  that begin with `> ` continue it. What follows, up to the next `$ `, is what it prints, standard error included.
  Without such lines, any output will do. A command that is to fail ends with `  # exits with N`.
- ```python: run as a program by itself.
- "Save this as `NAME`:" before any block puts it into a file of that name instead.
- ```text after a block and a line that ends in "prints:" is what the block prints.
- In expected output, `...` stands for any text within a line, and by itself for any lines.
- ```sh: what would install something, or needs a key, a download or a terminal; not run. Its `make` verbs must exist,
  and its `trunkline` commands must be understood.
- ```toml: a configuration file, without a single warning.
- ```json: all of it is one JSON text, or each line is one; those with a `type` are lines of the JSON stream.
- All other blocks are only read by people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

_FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=fence)[ ]*$", re.MULTILINE | re.DOTALL
)
_SAVE = re.compile(r"Save this as `(?P<name>[\w.-]+)`:\s*\Z")
_PRINTS = re.compile(r"prints:\s*\Z")
_EXIT = re.compile(r"\s+# exits with (?P<code>\d+)\Z")


class Block(NamedTuple):
    """A fenced block, and the line that its content begins at."""

    language: str
    body: str
    line: int
    saved_as: str | None
    is_output: bool


class Command(NamedTuple):
    """Something to run."""

    argv: list[str]
    expected: str | None
    exit_code: int
    line: int


class Save(NamedTuple):
    """A file to be there."""

    name: str
    content: str


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a document."""
    end = 0
    for found in _FENCE.finditer(text):
        before = text[end : found.start()]
        save = _SAVE.search(before)
        line = text.count("\n", 0, found.start("body")) + 1
        is_output = found["language"] == "text" and _PRINTS.search(before) is not None
        yield Block(found["language"], found["body"], line, save["name"] if save else None, is_output)
        end = found.end()


def steps(text: str, python: str) -> Iterator[Command | Save]:
    """What to do for a document, in order; `python` runs its programs."""
    waiting: Command | None = None
    for block in blocks(text):
        if waiting is not None:
            yield waiting._replace(expected=block.body if block.is_output else None)
            waiting = None
        if block.saved_as is not None:
            yield Save(block.saved_as, block.body)
        elif block.language == "console":
            yield from commands(block)
        elif block.language == "python":
            waiting = Command([python, "-W", "error", "-c", block.body], None, 0, block.line)
    if waiting is not None:
        yield waiting


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block."""
    typed: list[str] = []
    printed: list[str] = []
    line = block.line
    for number, text in enumerate([*block.body.splitlines(), "$ "], block.line):
        if text.startswith("$ "):
            if typed:
                yield _command(typed, printed, line)
            typed, printed, line = [text[2:]], [], number
        elif text.startswith("> ") and not printed:
            typed.append(text[2:])
        else:
            assert typed, f"line {number}: output before any command"
            printed.append(text)


def _command(typed: list[str], printed: list[str], line: int) -> Command:
    script = "\n".join(typed)
    code = _EXIT.search(script)
    if code:
        script = script[: code.start()]
    expected = "".join(f"{text}\n" for text in printed) if printed else None
    return Command(["sh", "-c", script], expected, int(code["code"]) if code else 0, line)


#: How far something is that takes longer than a moment, which on a busy machine anything may.
_PROGRESS = re.compile(r"^\S+: \d+ %\n", re.MULTILINE)


def matches(expected: str, printed: str) -> bool:
    """Whether a program printed what was expected; see the module for what `...` means. Progress does not count."""
    pattern = ""
    for line in expected.rstrip("\n").split("\n"):
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += r"[^\n]*".join(map(re.escape, line.rstrip().split("..."))) + r"[ ]*\n"
    return re.fullmatch(pattern, _PROGRESS.sub("", printed).rstrip("\n") + "\n") is not None
