from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.conftest import require
from trunkline.models.credentials import without_credentials
from trunkline.tools.bash import BashTool
from trunkline.tools.sandbox import sandbox as module
from trunkline.tools.sandbox.availability import problem
from trunkline.tools.sandbox.sandbox import Sandbox
from trunkline.tools.tool import ToolOutput

Run: TypeAlias = Callable[[str], Awaitable[ToolOutput]]


@pytest.fixture(autouse=True)
def _where_there_is_one() -> None:
    why_not = problem()
    require("a sandbox", not why_not, why_not)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


@pytest.fixture
async def bash(workspace: Path) -> AsyncIterator[BashTool]:
    made = BashTool(str(workspace), sandbox=Sandbox(str(workspace), clean=without_credentials))
    yield made
    await made.close()


@pytest.fixture
def run(bash: BashTool) -> Run:
    """Runs a command in the sandbox."""

    async def run(command: str) -> ToolOutput:
        return await bash.run({"command": command}, lambda line: None)

    return run


@pytest.fixture(params=["alone", "among others"])
def run_anywhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The same, and again on a machine on which processes get no namespace of their own."""
    if request.param != "alone":
        hold = module._hold

        async def held(words: list[str]) -> tuple[object, bool]:
            return (await hold(words))[0], False

        monkeypatch.setattr(module, "_hold", held)
    run: Run = request.getfixturevalue("run")
    return run
