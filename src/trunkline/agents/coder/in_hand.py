"""What a conversation must not lose when room is made: the plan that was approved, the to-dos, the files in hand.

It is found in the conversation itself: in the calls that brought it, or, where these are gone, in what was kept of them
the last time. So it is right after a resume and a rewind, and costs nothing until room is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from trunkline.agents.coder.history import History
from trunkline.agents.coder.words import FILE_KEPT, PLAN_KEPT, TODOS_KEPT
from trunkline.base import jsontext
from trunkline.base.redact import Masked, Redactor
from trunkline.base.vocabulary import EXIT_PLAN
from trunkline.core.events import ToolRequested
from trunkline.core.rules import Rules, holds_back
from trunkline.models.messages import Text, ToolResultBlock, ToolUse
from trunkline.tools.arguments import ToolInputError
from trunkline.tools.exit_plan import APPROVED
from trunkline.tools.foreign_text import framed
from trunkline.tools.read import Read
from trunkline.tools.todo_write import TodoWrite, plan_of
from trunkline.tools.toolbox import Toolbox
from trunkline.tools.truncation import truncate

#: Tools whose files are in hand, besides those that are read.
_CHANGING = ("Edit", "Write")
#: Files that are named, the latest; and of these, those that are shown as they are now.
MOST_NAMED = 20
MOST_SHOWN = 5
#: Of one file, and of all of them, in characters. Less than the least is not worth it.
MOST_FILE_CHARS = 20_000
MOST_FILES_CHARS = 60_000
LEAST_FILE_CHARS = 500
#: How long reading them may take: a disk that hangs must not hold up the answer.
READ_SECONDS = 5.0
#: What all files, a plan and the to-dos may have of a model's window: characters for each token of it, of which a token
#: has about four. So the three have less than a third of it.
_FILES_SHARE, _PLAN_SHARE, _TODOS_SHARE = 0.5, 0.5, 0.25


class InHand:
    """Of one conversation, as it is when it is asked for."""

    def __init__(
        self,
        history: History,
        toolbox: Toolbox,
        *,
        window: int,
        workspace: str,
        rules: Rules,
        redactor: Redactor,
    ) -> None:
        """`window`: how many tokens the model's has. `rules` say which files are not read unasked."""
        self._history = history
        self._toolbox = toolbox
        self._window = window
        self._workspace = workspace
        self._rules = rules
        self._redactor = redactor
        self.shown: list[str] = []
        """The files that were shown."""
        self._plan: str | None = None
        self._todos: str | None = None
        self._files: dict[str, dict[str, Any]] = {}
        """How each is read, by its place on the disk, the latest first."""
        self._places: dict[str, str] = {}
        """By the names that were used for them."""
        self._edited: set[str] = set()
        """The names of those that were edited, and of which it is not known yet which part was read before that."""

    async def blocks(self) -> tuple[Text, ...]:
        """All of it, for the message that takes the place of the others: what counts most comes last."""
        self._look()
        found = await self._shown_files()
        found.reverse()
        for mark, text, share in ((PLAN_KEPT, self._plan, _PLAN_SHARE), (TODOS_KEPT, self._todos, _TODOS_SHARE)):
            if text:
                found.append(f"{mark}\n{truncate(Masked(self._redactor.text(text)), int(share * self._window))}")
        return tuple(map(Text, found))

    # Finding

    def _look(self) -> None:
        results: dict[str, ToolResultBlock] = {}
        for message in reversed(self._history.messages):
            for block in reversed(message.content):
                match block:
                    case ToolResultBlock(id=call_id):
                        results[call_id] = block
                    case ToolUse(id=call_id) if call_id in results and not results[call_id].is_error:
                        with suppress(ToolInputError):
                            self._called(block.name, block.input or {}, results[call_id])
                    case Text(text=text) if message.role == "user":
                        with suppress(ValueError):
                            self._read_kept(text)

    def _called(self, name: str, args: Mapping[str, Any], result: ToolResultBlock) -> None:
        if name == TodoWrite.name and self._todos is None:
            entries = plan_of(args.get("todos")).entries
            self._todos = "\n".join(entry.words for entry in entries)
        elif name == EXIT_PLAN and self._plan is None and result.text.startswith(APPROVED):
            self._plan = str(args.get("plan", ""))
        elif name in (Read.name, *_CHANGING):
            self._in_hand(self._toolbox.read(name, args).args, edited=name in _CHANGING)

    def _read_kept(self, text: str) -> None:
        """What was kept the last time."""
        mark, _, rest = text.partition("\n")
        if mark == PLAN_KEPT and self._plan is None:
            self._plan = rest
        elif mark == TODOS_KEPT and self._todos is None:
            self._todos = rest
        elif mark.startswith(FILE_KEPT):
            args = jsontext.loads(mark.removeprefix(FILE_KEPT).encode())
            if isinstance(args, dict):
                self._in_hand(self._toolbox.read(Read.name, args).args)

    def _in_hand(self, args: Mapping[str, Any], *, edited: bool = False) -> None:
        path = args["file_path"]
        part = {} if edited else {name: args[name] for name in ("offset", "limit") if name in args}
        if path not in self._places and len(self._files) < MOST_NAMED:
            place = self._places[path] = self._toolbox.read(Read.name, {"file_path": path}).place
            if place not in self._files:
                self._files[place] = {"file_path": path, **part}
                self._edited |= {path} if edited else set()
        elif path in self._edited and not edited:
            # The part that it was edited in.
            self._edited.remove(path)
            self._files[self._places[path]] |= part

    # Showing

    async def _shown_files(self) -> list[str]:
        """The latest first."""
        found: list[str] = []
        left = min(MOST_FILES_CHARS, int(_FILES_SHARE * self._window))
        deadline = asyncio.get_running_loop().time() + READ_SECONDS
        for args in list(self._files.values())[:MOST_NAMED]:
            content = Masked("")
            if len(found) < MOST_SHOWN and left >= LEAST_FILE_CHARS:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(deadline):
                        content = truncate(Masked(await self._content(args)), min(left, MOST_FILE_CHARS))
            left -= len(content)
            named = f"{FILE_KEPT} {jsontext.dumps(args).decode()}"
            found.append(f"{named}\n{framed(content)}" if content else named)
            self.shown += [args["file_path"]] if content else []
        return found

    async def _content(self, args: Mapping[str, Any]) -> str:
        """A file as it is now; nothing if somebody would have to be asked."""
        call = self._toolbox.read(Read.name, args)
        if call.outside or holds_back(self._rules, ToolRequested("", Read.name, "info", args), self._workspace):
            return ""
        output = await call.run(lambda line: None)
        return "" if output.images else output.text
