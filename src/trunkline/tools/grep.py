"""The Grep tool: lines of files that match a regular expression.

By ripgrep where there is one, on `PATH` or beside our Python; else, and for patterns that ripgrep does not know, by
`trunkline.tools.grep_fallback`, which finds the same. Either runs in a process of its own and is stopped when enough
was found or time is up. Files that git ignores and hidden ones are left out, and so are binary files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from trunkline.base.own_python import module_command
from trunkline.base.process_errors import SpawnError
from trunkline.base.programs import program_folders
from trunkline.base.redact import Redactor
from trunkline.base.values import Value
from trunkline.core.credentials import opens_something
from trunkline.core.events import Category
from trunkline.tools.files import reason
from trunkline.tools.helper import Ended, collect
from trunkline.tools.threads import in_thread, reporting
from trunkline.tools.tool import Report, ToolOutput
from trunkline.tools.truncation import ELLIPSIS, one_line
from trunkline.tools.workspace import Workspace

NO_MATCHES = "No matches found"
#: How many lines are shown.
MOST_LINES = 250
#: How much of a line is shown, in characters: enough for source; the rest of a generated one helps nobody.
LONGEST_LINE = 500
#: How long a search may take. The whole of a large repository takes ripgrep less than that.
GREP_SECONDS = 30.0

#: What ripgrep says of look-around and of references to groups, which Python knows.
_UNKNOWN_TO_RIPGREP = ("look-around", "backreferences are not supported")

#: Why a ripgrep that was found is none: gone meanwhile, or not made for this machine.
_UNUSABLE = ("not-found", "not-executable", "bad-format", "bad-interpreter")

_EXIT_NOTHING = 1
_RIPGREP_OPTIONS = (
    "--no-config", "--color=never", "--no-heading", "--line-number", "--with-filename", "--null", "--crlf",
    "--no-messages", "--sort=path", "--no-require-git", "--no-ignore-global", "--no-ignore-dot",
)  # fmt: skip


#: Tells of a file whether a search leaves it out.
Hides = Callable[[str], bool] | None


class GrepQuery(Value):
    """What to look for: a pattern in a file or below a directory, which is given from the workspace if it is inside."""

    pattern: str
    path: str
    glob: str | None
    ignore_case: bool


class Grep:
    """Finds lines in files."""

    name = "Grep"
    category: Category = "info"
    limit = 20_000
    concurrent = True
    description = (
        "Search in files for a regular expression, line by line. Gives `path:line:text` for the first "
        f"{MOST_LINES} lines that match. Leaves out what git ignores, hidden files and binary files. "
        "`glob` limits the search to some files, such as `*.py` or `src/**/*.{ts,tsx}`."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "The regular expression."},
            "path": {"type": "string", "description": "A file or a directory. Default: the workspace."},
            "glob": {"type": "string", "description": "Which files, by a pattern. With `!` before it: which not."},
            "case_insensitive": {"type": "boolean", "description": "Whether `a` matches `A`. Default false."},
        },
        "required": ["pattern"],
    }

    def __init__(self, workspace: Workspace, ripgrep: str | None = None, *, redactor: Redactor | None = None) -> None:
        """`ripgrep` is its program; unless given it is looked for when it is needed, and empty means none."""
        self._workspace = workspace
        self._ripgrep = ripgrep
        self._redactor = redactor

    def describe(self, args: Mapping[str, Any]) -> str:
        path = args.get("path") or "."
        return one_line(f"Grep '{args['pattern']}' in {path}")

    def outside(self, args: Mapping[str, Any]) -> bool:
        return self._workspace.reads_outside(args.get("path", ""))

    def place(self, args: Mapping[str, Any]) -> str:
        return self._workspace.place(args.get("path", ""))

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        path = args.get("path") or "."
        resolved = self._workspace.resolve(path)
        try:
            await in_thread(lambda stop: os.stat(resolved))
        except (OSError, ValueError) as error:
            return ToolOutput(f"Failed to search {path}: {reason(error)}", status="error")
        relative = self._workspace.relative(resolved)
        # Only where it begins so is the beginning taken away again from what is found.
        start = relative if relative == "." or os.path.isabs(relative) else f"./{relative}"
        wanted = GrepQuery(args["pattern"], start, args.get("glob"), args.get("case_insensitive", False))
        hides = self._workspace.hidden_below(path, self.name)
        wary = _Wary(hides) if self._workspace.wary() and not self._names_credentials(args) else None
        output = await reporting(self._search(wanted, wary or hides), report, self.describe(args))
        return wary.noted(output) if wary is not None else output

    def _names_credentials(self, args: Mapping[str, Any]) -> bool:
        from trunkline.core.risks import searches_credentials  # most sessions have no need of it

        return searches_credentials(args, self._workspace.root)

    async def _search(self, wanted: GrepQuery, hides: Hides) -> ToolOutput:
        if self._ripgrep is None:
            self._ripgrep = find_ripgrep()
        if self._ripgrep:
            try:
                output = await self._run(_ripgrep_command(self._ripgrep, wanted), "rg", hides)
            except SpawnError as error:
                if error.reason not in _UNUSABLE:
                    return ToolOutput(f"rg error: {error}", status="error")
                self._ripgrep = ""
            else:
                if output.status == "success" or not any(word in output.text for word in _UNKNOWN_TO_RIPGREP):
                    return output
        try:
            return await self._run(_fallback_command(wanted), "grep", hides)
        except SpawnError as error:
            return ToolOutput(f"grep error: {error}", status="error")

    async def _run(self, argv: Sequence[str], program: str, hides: Hides) -> ToolOutput:
        lines = MatchLines(self._redactor, hides)
        ended = await collect(argv, self._workspace.root, lines.feed, GREP_SECONDS)
        return _output(lines, ended, program)


class _Wary:
    """Leaves out files with credentials, too, and counts those in which something was found."""

    def __init__(self, hides: Hides) -> None:
        self._hides = hides
        self._left: set[str] = set()

    def __call__(self, path: str) -> bool:
        if self._hides is not None and self._hides(path):
            return True
        if opens_something(path):
            self._left.add(path)
            return True
        return False

    def noted(self, output: ToolOutput) -> ToolOutput:
        """What was found, and how much was left out."""
        if not self._left:
            return output
        files = "file that holds" if len(self._left) == 1 else "files that hold"
        note = f"({len(self._left)} {files} credentials left out; to search one, give its path)"
        return output.replace(text=f"{output.text}\n{note}")


class MatchLines:
    """The first lines of a search's output, which come as `path`, a NUL, the number, a colon and the text.

    Sans-IO: feed bytes, take the lines. Memory is bounded, however long the lines are.
    """

    #: In bytes: what a path and a text that is shown can have.
    _LONGEST = 4096 + 4 * LONGEST_LINE + 32

    def __init__(self, redactor: Redactor | None = None, hides: Hides = None) -> None:
        """`hides` tells of each file whether it is left out."""
        self.lines: list[str] = []
        self._hides = lru_cache(maxsize=64)(hides) if hides is not None else None
        self._redactor = Redactor() if redactor is None else redactor
        self._pending = bytearray()
        self._dropped = False

    @property
    def full(self) -> bool:
        """Whether there are more lines than are shown."""
        return len(self.lines) > MOST_LINES

    def feed(self, data: bytes) -> bool:
        """Take the next bytes; false when no more are needed."""
        *complete, rest = data.split(b"\n")
        for piece in complete:
            self._keep(piece)
            self._end_line()
            if self.full:
                return False
        self._keep(rest)
        return True

    def finish(self) -> None:
        """There is no more: what is left is a line if anything is."""
        if self._pending:
            self._end_line()

    def _keep(self, piece: bytes) -> None:
        room = self._LONGEST - len(self._pending)
        self._pending += piece[:room]
        self._dropped = self._dropped or len(piece) > room

    def _end_line(self) -> None:
        text = self._pending.decode("utf-8", "replace").removesuffix("\r")
        path, found, rest = text.partition("\0")
        if found and self._hides is not None and self._hides(path):
            self._pending.clear()
            self._dropped = False
            return
        number, _, line = rest.partition(":")
        line = self._redactor.beginning(line) if self._dropped else self._redactor.text(line)
        if len(line) > LONGEST_LINE or self._dropped:
            line = line[:LONGEST_LINE] + ELLIPSIS
        self.lines.append(f"{path.removeprefix('./')}:{number}:{line}" if found else path.removeprefix("./"))
        self._pending.clear()
        self._dropped = False


def _output(lines: MatchLines, ended: Ended, program: str) -> ToolOutput:
    lines.finish()
    found = lines.lines[:MOST_LINES]
    if ended.timed_out:
        found.append(f"(stopped after {GREP_SECONDS:.0f} s; narrow the path, the glob or the pattern)")
        return ToolOutput("\n".join(found), status="success" if len(found) > 1 else "error", foreign=True)
    if not found:
        if ended.code == _EXIT_NOTHING or not ended.complaint:
            return ToolOutput(NO_MATCHES)
        complaint = ended.complaint.removeprefix(f"{program}: ")
        return ToolOutput(f"{program} error: {complaint}", status="error")
    if lines.full:
        found.append(f"(only the first {MOST_LINES} lines are shown; narrow the path, the glob or the pattern)")
    return ToolOutput("\n".join(found), foreign=True)


def find_ripgrep() -> str:
    """The program, on `PATH` or where a package beside our Python puts it; empty if there is none."""
    for folder in (*program_folders(), os.path.dirname(sys.executable)):
        path = os.path.join(folder, "rg")
        if os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


def _ripgrep_command(program: str, wanted: GrepQuery) -> list[str]:
    options = [f"--glob={wanted.glob}"] if wanted.glob else []
    options += ["--ignore-case"] if wanted.ignore_case else []
    return [program, *_RIPGREP_OPTIONS, *options, f"--regexp={wanted.pattern}", "--", wanted.path]


def _fallback_command(wanted: GrepQuery) -> tuple[str, ...]:
    case = "ignore-case" if wanted.ignore_case else "case"
    return module_command("trunkline.tools.grep_fallback", (wanted.pattern, wanted.path, wanted.glob or "", case))
