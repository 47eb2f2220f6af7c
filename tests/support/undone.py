"""A session's turns as the recorder of the coding agent sees them, without a model: each call is a function.

world = UndoWorld(tmp_path)
await world.turn(world.runs(lambda: (world.root / "a").write_text("new")))
assert world.undo().restored == ("a",)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trunkline.agents.coder.undo import diffs, recovering, undoing
from trunkline.agents.coder.undo.checkpoints import Checkpoints
from trunkline.agents.coder.undo.recorder import ChangeRecorder
from trunkline.agents.coder.undo.undoing import UndoOutcome
from trunkline.base.redact import Redactor
from trunkline.core.events import Category
from trunkline.tools.tool import Report, ToolOutput
from trunkline.tools.toolbox import PreparedCall

SESSION = "the session"


class Act:
    """A tool that does what a test says."""

    description = ""
    parameters: Mapping[str, Any] = {}
    limit = 100
    concurrent = False

    def __init__(self, act: Callable[[], object], name: str, category: Category, place: str = "") -> None:
        self.act = act
        self.name = name
        self.category = category
        self._place = place

    def describe(self, args: Mapping[str, Any]) -> str:
        return self.name

    def outside(self, args: Mapping[str, Any]) -> bool:
        return False

    def place(self, args: Mapping[str, Any]) -> str:
        return self._place

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        self.act()
        return ToolOutput("")


class UndoWorld:
    """A workspace, and what records its changes."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "work"
        self.root.mkdir(exist_ok=True)
        self.said: list[str] = []
        self.recorder = self.next_process()

    def next_process(self) -> ChangeRecorder:
        """Another process goes on with the session."""
        self.recorder = ChangeRecorder(str(self.root), SESSION, self.said.append)
        return self.recorder

    def runs(self, act: Callable[[], object], **args: Any) -> PreparedCall:
        """A command."""
        return PreparedCall(Act(act, "Bash", "exec"), args, Redactor())

    def writes(self, path: str | Path, text: str) -> PreparedCall:
        """What Write does."""
        place = Path(os.path.realpath(self.root / path))

        def act() -> None:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)

        return PreparedCall(Act(act, "Write", "edit", str(place)), {}, Redactor())

    async def call(self, call: PreparedCall) -> None:
        async with self.recorder.watching(call):
            await call.run(lambda line: None)

    async def turn(self, *calls: PreparedCall) -> str:
        name = self.recorder.begin()
        for call in calls:
            await self.call(call)
        await self.recorder.end()
        return name

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(str(self.root))

    def undo(self, turns: int = 1) -> UndoOutcome:
        return undoing.undo(self.checkpoints, SESSION, lambda recorded: undoing.last_turns(recorded, turns))

    def diff(self, turns: int = 1) -> str:
        return diffs.diff(self.checkpoints, undoing.last_turns(recovering.all_turns(self.checkpoints, SESSION), turns))

    def left(self, outcome: UndoOutcome) -> dict[str, str]:
        return {left.path: left.why for left in outcome.left}
