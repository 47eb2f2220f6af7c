from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.base.processes import is_alive
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.redact import MASK, Redactor
from trunkline.tools import bash_background
from trunkline.tools.bash import BashTool
from trunkline.tools.bash_background import BackgroundCommands, BashOutput, KillBash
from trunkline.tools.tool import Tool, ToolOutput
from trunkline.tools.toolbox import Toolbox

pytestmark = pytest.mark.process

SECRET = "tr0ub4dor-and-3"


@pytest.fixture
async def bash(tmp_path: Path) -> AsyncIterator[BashTool]:
    made = BashTool(str(tmp_path), redactor=Redactor([SECRET]))
    yield made
    await made.close()


async def started(bash: BashTool, command: str) -> str:
    output = await run(bash, command=command, run_in_background=True)
    found = re.search(r"^bash_id: (\S+)$", output.text, re.MULTILINE)
    assert found, output.text
    return found[1]


async def run(tool: Tool, **args: object) -> ToolOutput:
    return await asyncio.wait_for(Toolbox([tool]).run(tool.name, args, lambda line: None), PATIENCE_SECONDS)


async def read(bash: BashTool, bash_id: str) -> str:
    return (await run(BashOutput(bash.background), bash_id=bash_id)).text


async def read_until(bash: BashTool, bash_id: str, words: str) -> str:
    """All that is read until it has these words in it."""
    text = ""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while words not in text:
            text += await read(bash, bash_id)
            await asyncio.sleep(0.01)
    return text


class TestOutput:
    async def test_what_is_new_comes_once_and_then_the_exit_code(self, bash: BashTool, tmp_path: Path) -> None:
        bash_id = await started(bash, "echo one; until [ -e go ]; do sleep 0.02; done; echo two >&2; exit 7")
        first = await read_until(bash, bash_id, "one")
        assert "Status: running" in first
        assert "Exit code" not in first
        assert "(nothing new)" in await read(bash, bash_id)
        (tmp_path / "go").touch()
        rest = await read_until(bash, bash_id, "Exit code: 7")
        assert "two" in rest
        assert "one" not in rest
        assert "(nothing new)" in await read(bash, bash_id)

    async def test_what_was_not_kept_is_said(self, bash: BashTool, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bash_background, "UNREAD_BYTES", 10)
        bash_id = await started(bash, "echo 12345678901234567890")
        # Not asked before its end: what was read would not be dropped.
        await asyncio.wait_for(ended(bash.background, bash_id), PATIENCE_SECONDS)
        assert "[11 bytes before this were not kept]" in await read(bash, bash_id)

    async def test_secrets_are_masked(self, bash: BashTool) -> None:
        bash_id = await started(bash, f"echo {SECRET[:5]}''{SECRET[5:]}")
        text = await read_until(bash, bash_id, "Exit code: 0")
        assert MASK in text
        assert SECRET not in text

    async def test_an_unknown_one_is_an_error_that_names_those_there_are(self, bash: BashTool) -> None:
        output = await run(BashOutput(bash.background), bash_id="bash_9")
        assert (output.status, output.text) == ("error", "There is no background command `bash_9`. None was started.")
        bash_id = await started(bash, "true")
        assert bash_id in (await run(KillBash(bash.background), bash_id="bash_9")).text


class TestEnd:
    async def test_kill_ends_the_whole_tree_and_gives_the_last_output(self, bash: BashTool) -> None:
        bash_id = await started(bash, "sleep 600 & echo $! $$; wait")
        text = ""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (found := re.search(r"^(\d+) (\d+)$", text, re.MULTILINE)):
                text += await read(bash, bash_id)
                await asyncio.sleep(0.01)
        pids = [int(pid) for pid in found.groups()]
        output = await run(KillBash(bash.background), bash_id=bash_id)
        assert re.search(r"Exit code: (143|137)\n\[ended by KillBash\]", output.text)
        assert not any(is_alive(pid) for pid in pids)

    async def test_one_that_has_ended_can_be_killed_once_more(self, bash: BashTool) -> None:
        bash_id = await started(bash, "exit 3")
        await read_until(bash, bash_id, "Exit code: 3")
        assert "Exit code: 3\nOUTPUT:" in (await run(KillBash(bash.background), bash_id=bash_id)).text

    async def test_all_end_with_the_tool(self, bash: BashTool, tmp_path: Path) -> None:
        await started(bash, "echo $$ > pid; sleep 600")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await bash.close()
        assert not is_alive(int((tmp_path / "pid").read_text()))

    async def test_a_command_in_the_foreground_that_is_stopped_leaves_it_alone(self, bash: BashTool) -> None:
        bash_id = await started(bash, "sleep 600")
        running = asyncio.create_task(bash.run({"command": "sleep 600"}, lambda line: None))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert "Status: running" in await read(bash, bash_id)


class TestBounds:
    async def test_what_a_command_left_running_ends_when_the_command_is_forgotten(
        self, bash: BashTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bash_background, "MAX_KNOWN", 1)
        bash_id = await started(bash, "sleep 600 > /dev/null 2>&1 & echo $! > pid")
        await ended(bash.background, bash_id)
        left = int((tmp_path / "pid").read_text())
        assert is_alive(left)
        await started(bash, "true")
        assert bash.background.find(bash_id) is None
        assert not is_alive(left)

    async def test_no_more_than_so_many_run_at_once(self, bash: BashTool, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bash_background, "MAX_RUNNING", 1)
        bash_id = await started(bash, "sleep 600")
        output = await run(bash, command="true", run_in_background=True)
        assert output.status == "error"
        assert bash_id in output.text
        await run(KillBash(bash.background), bash_id=bash_id)
        await started(bash, "true")

    async def test_the_oldest_that_has_ended_is_forgotten(
        self, bash: BashTool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bash_background, "MAX_KNOWN", 1)
        first = await started(bash, "true")
        await read_until(bash, first, "Exit code: 0")
        second = await started(bash, "true")
        assert "There is no background command" in await read(bash, first)
        await read_until(bash, second, "Exit code: 0")


class TestEarlierProcesses:
    async def test_ids_go_on_where_the_session_left_off(self, bash: BashTool) -> None:
        counts: list[int] = []
        bash.background.go_on(2, counts.append)
        bash_id = await started(bash, "sleep 600")
        assert (bash_id, counts) == ("bash_3", [3])

    async def test_one_of_theirs_is_said_to_have_ended(self, bash: BashTool) -> None:
        bash.background.go_on(2, lambda count: None)
        for tool in (BashOutput(bash.background), KillBash(bash.background)):
            output = await run(tool, bash_id="bash_2")
            assert output.status == "error"
            assert "`bash_2` ended when the session was closed" in output.text
        assert "There is no background command `bash_3`" in await read(bash, "bash_3")


class TestAsking:
    def test_neither_tool_is_ever_asked_about(self) -> None:
        for tool in (BashOutput(BackgroundCommands()), KillBash(BackgroundCommands())):
            assert (tool.category, tool.asking) == ("info", "allow")

    async def test_starting_one_is_a_command_like_any_other(self, bash: BashTool) -> None:
        assert bash.category == "exec"


async def ended(commands: BackgroundCommands, bash_id: str) -> None:
    command = commands.find(bash_id)
    assert command is not None
    while command.runs:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
