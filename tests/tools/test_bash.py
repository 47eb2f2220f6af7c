from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.base import processes
from tests.base.processes import exists, is_alive
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.process import spawn
from trunkline.base.watchdog import read_file
from trunkline.tools import bash, bash_client, bash_live, bash_process
from trunkline.tools.bash import BashTool, find_shell
from trunkline.tools.bash_output import HEAD_BYTES, TAIL_BYTES
from trunkline.tools.tool import Interrupted, Tool, ToolOutput
from trunkline.tools.toolbox import Toolbox

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def _no_descriptor_is_left_open() -> Iterator[None]:
    spawn(["true"]).close()
    before = len(os.listdir("/proc/self/fd"))
    yield
    # A thread that helped to end a tree may need a moment to let go of its pidfd.
    processes.until(lambda: len(os.listdir("/proc/self/fd")) <= before)


@pytest.fixture
async def tool(tmp_path: Path) -> AsyncIterator[BashTool]:
    made = BashTool(str(tmp_path))
    yield made
    await made.close()


def ignore(_: str) -> None:
    """For tests that do not look at the reports."""


async def run(tool: BashTool, command: str, **more: object) -> ToolOutput:
    return await asyncio.wait_for(tool.run({"command": command, **more}, ignore), PATIENCE_SECONDS)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110  (another process makes it true, and cannot wake this loop)
            await asyncio.sleep(0.01)


@pytest.fixture
def from_its_sign(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The clock of a command begins when it has made the file `up`: what its start takes does not count."""

    async def begin(
        ending: Coroutine[Any, Any, int], seconds: float, still: Callable[[float], None], every: float
    ) -> int | None:
        await until((tmp_path / "up").exists)
        return await bash_client.finished(ending, seconds, still, every)

    monkeypatch.setattr(bash, "finished", begin)


async def content(path: Path) -> str:
    """What a command writes into a file, once it is there."""
    await until(lambda: read(path).endswith("\n"))
    return read(path).strip()


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


class TestResult:
    async def test_exit_code_and_both_outputs(self, tool: BashTool) -> None:
        output = await run(tool, "echo out; echo err >&2")
        assert output == ToolOutput("Exit code: 0\nSTDOUT:\nout\n\nSTDERR:\nerr\n", foreign=True)

    async def test_a_command_that_fails_is_an_error(self, tool: BashTool) -> None:
        output = await run(tool, "echo no >&2; exit 3")
        assert output == ToolOutput("Exit code: 3\nSTDOUT:\n\nSTDERR:\nno\n", "error", foreign=True)

    async def test_the_command_may_be_called_cmd(self, tool: BashTool) -> None:
        output = await Toolbox([tool]).run("Bash", {"cmd": "echo hi"}, ignore)
        assert "hi" in output.text

    @pytest.mark.parametrize("args", [{}, {"command": "  "}, {"command": None}])
    async def test_without_a_command_nothing_runs(self, tool: BashTool, args: dict[str, object]) -> None:
        output = await Toolbox([tool]).run("Bash", args, ignore)
        assert output == ToolOutput("Missing required parameter: command", "error")

    async def test_a_signal_that_ended_the_command_is_named(self, tool: BashTool) -> None:
        output = await run(tool, "kill -SEGV $$")
        assert output.status == "error"
        assert output.text.startswith("Exit code: 139\n")
        assert output.text.endswith("[exit code 139 means that SIGSEGV ended the command]")

    async def test_binary_output_becomes_text(self, tool: BashTool) -> None:
        output = await run(tool, r"printf 'a\xff\x00\xc3\xa9b'")
        assert "STDOUT:\na�\0éb\n" in output.text

    async def test_it_runs_in_its_folder(self, tool: BashTool, tmp_path: Path) -> None:
        assert f"\n{tmp_path}\n" in (await run(tool, "pwd -P")).text

    @pytest.mark.parametrize(
        ("command", "says"), [("echo \0", "NUL"), ("x" * 200_000, "long"), ("echo \ud800", "could not be started")]
    )
    async def test_what_cannot_be_started_is_an_error_that_says_why(
        self, tool: BashTool, command: str, says: str
    ) -> None:
        output = await run(tool, command)
        assert output.status == "error"
        assert says.lower() in output.text.lower()

    async def test_in_a_toolbox_a_long_result_loses_its_middle_and_cmd_is_understood(self, tool: BashTool) -> None:
        output = await Toolbox([tool]).run("Bash", {"cmd": "seq 50000", "timeout": "20000"}, ignore)
        assert output.status == "success"
        assert output.text.startswith("Exit code: 0\nSTDOUT:\n1\n2\n")
        assert output.text.endswith("\n49999\n50000\n\nSTDERR:\n")
        assert len(output.text) < 51_000

    async def test_a_folder_that_is_gone_is_an_error_that_names_it(self, tmp_path: Path) -> None:
        output = await run(BashTool(str(tmp_path / "gone")), "true")
        assert output.status == "error"
        assert "gone" in output.text


class TestSurroundings:
    async def test_standard_input_is_empty(self, tool: BashTool) -> None:
        assert (await run(tool, "cat; echo end")).text == "Exit code: 0\nSTDOUT:\nend\n\nSTDERR:\n"

    async def test_there_is_no_terminal_and_no_file_of_ours(self, tool: BashTool) -> None:
        output = await run(tool, "ls /proc/$$/fd; (: < /dev/tty) 2> /dev/null && echo terminal")
        descriptors = output.text.split("STDOUT:\n")[1].split("\nSTDERR")[0].split()
        # Bash keeps its script's descriptor at 255; everything else is the three standard ones.
        assert set(descriptors) <= {"0", "1", "2", "255"}

    async def test_the_environment_is_the_users_without_pagers_and_colours(self, tmp_path: Path) -> None:
        tool = BashTool(str(tmp_path), env={"PATH": os.environ["PATH"], "MINE": "1", "FORCE_COLOR": "3", "TERM": "x"})
        output = await run(tool, 'echo "$MINE/$TERM/$PAGER/$GIT_PAGER/${FORCE_COLOR-none}"')
        assert "\n1/dumb/cat/cat/none\n" in output.text

    async def test_it_is_the_leader_of_its_own_session(self, tool: BashTool) -> None:
        output = await run(tool, "echo $$; cut -d' ' -f5,6 /proc/$$/stat")
        pid, group, session = output.text.split("STDOUT:\n")[1].split("STDERR")[0].split()
        assert pid == group == session
        assert int(session) != os.getsid(0)

    def test_the_users_shell_is_taken_if_it_is_one_of_those_we_know(self, tmp_path: Path) -> None:
        for name in ("zsh", "fish", "bash"):
            (tmp_path / name).touch(0o755)
        path = str(tmp_path)
        assert find_shell({"SHELL": f"{path}/zsh", "PATH": path}) == f"{path}/zsh"
        assert find_shell({"SHELL": f"{path}/fish", "PATH": path}) == f"{path}/bash"
        assert find_shell({"SHELL": "/gone/bash", "PATH": path}) == f"{path}/bash"
        assert find_shell({"PATH": "/nowhere"}) == "/bin/sh"

    def test_a_shell_is_not_taken_from_wherever_somebody_works(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "bin").mkdir()
        for folder in (tmp_path, tmp_path / "bin"):
            (folder / "bash").touch(0o755)
        monkeypatch.chdir(tmp_path)
        for path in ("bin", ".", "", "./bin:bin"):
            assert find_shell({"PATH": path}) == "/bin/sh"
            assert find_shell({"SHELL": "./bash", "PATH": path}) == "/bin/sh"


class TestFloods:
    async def test_a_flood_is_bounded_and_its_end_is_kept(self, tool: BashTool) -> None:
        output = await run(tool, "echo first; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo last")
        assert len(output.text) < HEAD_BYTES + TAIL_BYTES + 1000
        assert "STDOUT:\nfirst\nxxx" in output.text
        assert "xxx\nlast\n" in output.text
        assert output.text.endswith("[standard output had 30000012 bytes; its middle was not kept]")

    @pytest.mark.usefixtures("from_its_sign")
    async def test_an_endless_flood_ends_with_the_time(self, tool: BashTool) -> None:
        output = await run(tool, "yes | (head -c 1000; touch up; cat)", timeout=300)
        assert output.text.startswith("Command timed out after 300ms\nSTDOUT:\ny\ny\n")

    async def test_the_loop_stays_usable_during_a_flood(self, tool: BashTool) -> None:
        flood = asyncio.create_task(run(tool, "yes"))
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert not flood.done()
        flood.cancel()
        with pytest.raises(asyncio.CancelledError):
            await flood


@pytest.mark.usefixtures("from_its_sign")
class TestTimeout:
    async def test_what_was_written_before_is_kept(self, tool: BashTool) -> None:
        output = await run(tool, "echo before; echo bad >&2; touch up; sleep 600", timeout=500)
        assert output == ToolOutput(
            "Command timed out after 500ms\nSTDOUT:\nbefore\n\nSTDERR:\nbad\n", "error", foreign=True
        )

    async def test_last_words_are_kept(self, tool: BashTool, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bash, "GRACE_SECONDS", PATIENCE_SECONDS)
        command = "trap 'echo bye; exit' TERM; echo up; touch up; while :; do sleep 0.05; done"
        output = await run(tool, command, timeout=500)
        assert "up\nbye\n" in output.text

    async def test_the_whole_tree_is_killed(self, tool: BashTool, tmp_path: Path) -> None:
        command = "trap '' TERM; (sleep 600 & echo $! > child; wait) & setsid sleep 600 & echo $! > strayed; "
        await run(tool, command + "while [ ! -s child ]; do sleep 0.05; done; touch up; sleep 600", timeout=100)
        for name in ("child", "strayed"):
            assert not is_alive(int((tmp_path / name).read_text()))

    @pytest.mark.parametrize(
        ("given", "taken"),
        [(None, 120_000), (5, 5), (10**9, 600_000), (-1, 120_000), (0.2, 1), (True, 120_000), (float("nan"), 120_000)],
    )
    def test_its_limits(self, given: object, taken: int) -> None:
        assert bash._timeout_ms({"timeout": given}) == taken


class TestCancel:
    async def cancelled(self, tool: BashTool, command: str, started: Path) -> None:
        """Cancel a command when it has written to the file."""
        task = asyncio.create_task(run(tool, command))
        await content(started)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def test_the_command_and_its_children_are_gone_when_it_returns(self, tool: BashTool, tmp_path: Path) -> None:
        await self.cancelled(tool, "(sleep 600 & echo $! > pid; wait); sleep 600", tmp_path / "pid")
        assert not is_alive(int((tmp_path / "pid").read_text()))

    async def test_what_ignores_signals_and_left_the_session_is_killed(self, tool: BashTool, tmp_path: Path) -> None:
        stubborn = 'trap "" TERM HUP INT; echo $$ > pid; while :; do sleep 1; done'
        await self.cancelled(tool, f"setsid sh -c '{stubborn}' & wait", tmp_path / "pid")
        assert not is_alive(int((tmp_path / "pid").read_text()))

    async def test_it_may_tidy_up(self, tool: BashTool, tmp_path: Path) -> None:
        command = "touch lock; trap 'rm lock; exit' TERM; echo > up; while :; do sleep 0.05; done"
        await self.cancelled(tool, command, tmp_path / "up")
        assert not (tmp_path / "lock").exists()

    async def test_it_has_its_output_up_to_then_to_show(self, tool: BashTool, tmp_path: Path) -> None:
        async def stopped() -> ToolOutput | None:
            try:
                return await tool.run({"command": "echo so far; echo > up; sleep 600"}, lambda line: None)
            except Interrupted as stop:
                return stop.output

        task = asyncio.create_task(stopped())
        await content(tmp_path / "up")
        task.cancel()
        output = await task
        assert output is not None
        assert output.status == "error"
        assert output.text.startswith("Stopped by user. ")
        assert "STDOUT:\nso far\n" in output.text

    async def test_cancelled_twice_it_is_gone_all_the_same(self, tool: BashTool, tmp_path: Path) -> None:
        task = asyncio.create_task(run(tool, "trap '' TERM; echo $$ > pid; while :; do sleep 1; done"))
        pid = int(await content(tmp_path / "pid"))
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await tool.close()
        assert not exists(pid)


class TestBackground:
    async def test_it_does_not_keep_the_call_waiting(self, tool: BashTool) -> None:
        output = await run(tool, "sleep 600 & echo $!")
        pid = re.search(r"STDOUT:\n(\d+)\n", output.text)
        assert pid
        assert output.status == "success"
        assert output.text.endswith(f"[still running in the background: process {pid[1]}; ends with the session]")

    @pytest.mark.parametrize("start", ["sleep 600 &", "setsid sleep 600 > /dev/null 2>&1 &", "nohup sleep 600 &"])
    async def test_it_survives_the_call_and_ends_with_close(self, tool: BashTool, start: str) -> None:
        output = await run(tool, f"{start} echo $!")
        found = re.search(r"background: process (\d+);", output.text)
        assert found
        await run(tool, "true")
        assert is_alive(int(found[1]))
        await tool.close()
        assert not is_alive(int(found[1]))

    async def test_one_in_the_middle_of_exec_is_looked_at_again(
        self, tool: BashTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looks = 0

        def read(path: str) -> bytes | None:
            nonlocal looks
            if path != f"/proc/{int((tmp_path / 'pid').read_text())}/environ":
                return read_file(path)
            looks += 1
            return b"" if looks <= 2 else read_file(path)

        monkeypatch.setattr(bash_process, "read_file", read)
        daemon = "setsid sh -c 'echo $$ > pid; exec sleep 600' > /dev/null 2>&1"
        output = await run(tool, f"{daemon} & until [ -s pid ]; do sleep 0.02; done")
        pid = int((tmp_path / "pid").read_text())
        assert f"[still running in the background: process {pid};" in output.text
        assert is_alive(pid)

    async def test_it_can_go_on_writing_to_the_pipe(self, tool: BashTool, tmp_path: Path) -> None:
        await run(tool, "(while echo noise; do echo x >> beats; sleep 0.05; done; echo > died) & echo")
        beats = tmp_path / "beats"
        begun = beats.stat().st_size if beats.exists() else 0
        await until(lambda: beats.exists() and beats.stat().st_size > begun + 10)
        assert not (tmp_path / "died").exists()

    async def test_a_flood_from_it_costs_next_to_nothing(self, tool: BashTool) -> None:
        await run(tool, "yes & echo")
        used = time.process_time()
        await run(tool, "sleep 0.5")
        assert time.process_time() - used < 0.25

    async def test_what_has_ended_by_itself_is_let_go(self, tool: BashTool, tmp_path: Path) -> None:
        await run(tool, "while [ ! -e go ]; do sleep 0.02; done & echo $! > pid")
        pid = int((tmp_path / "pid").read_text())
        (tmp_path / "go").touch()
        await until(lambda: not is_alive(pid))
        await run(tool, "true")
        assert tool._background == []

    async def test_too_many_end_the_oldest(
        self, tool: BashTool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(bash, "MAX_BACKGROUND", 2)
        for number in range(3):
            await run(tool, f"sleep 600 & echo $! > {number}")
        lives = [is_alive(int((tmp_path / str(number)).read_text())) for number in range(3)]
        assert lives == [False, True, True]

    async def test_close_ends_a_call_that_still_runs(self, tool: BashTool, tmp_path: Path) -> None:
        task = asyncio.create_task(run(tool, "echo $$ > pid; sleep 600"))
        pid = int(await content(tmp_path / "pid"))
        await tool.close()
        assert not exists(pid)
        assert (await task).status == "error"


class TestZombies:
    @pytest.mark.parametrize("command", ["true", "sh -c 'exit 3'", "kill -9 $$"])
    async def test_none_is_left_of_a_command(self, tool: BashTool, command: str) -> None:
        output = await run(tool, f"echo $$; {command}")
        assert not exists(int(output.text.split("STDOUT:\n")[1].split()[0]))

    async def test_none_is_left_of_one_that_had_a_background(self, tool: BashTool) -> None:
        output = await run(tool, "echo $$; sleep 600 &")
        pid = int(output.text.split("STDOUT:\n")[1].split()[0])
        await tool.close()
        assert not exists(pid)


class TestReports:
    async def test_what_a_command_prints_is_told_while_it_runs(self, tool: BashTool, tmp_path: Path) -> None:
        said: list[str] = []

        def report(line: str) -> None:
            said.append(line)
            (tmp_path / f"seen {line}").touch()

        command = 'for n in 1 2; do echo "step $n"; while [ ! -e "seen step $n" ]; do sleep 0.02; done; done'
        output = await asyncio.wait_for(tool.run({"command": command}, report), PATIENCE_SECONDS)
        assert said == ["step 1", "step 2"]
        assert "STDOUT:\nstep 1\nstep 2\n" in output.text

    async def test_a_silent_one_says_that_it_lives(
        self, tool: BashTool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(bash_live, "SILENT_SECONDS", 0.0)
        said: list[str] = []

        def report(line: str) -> None:
            said.append(line)
            (tmp_path / "go").touch()

        await asyncio.wait_for(tool.run({"command": "until [ -e go ]; do sleep 0.02; done"}, report), PATIENCE_SECONDS)
        assert re.fullmatch(r"still running after \d+ s", said[0])

    async def test_a_quick_one_says_nothing(self, tool: BashTool) -> None:
        said: list[str] = []
        await tool.run({"command": "true"}, said.append)
        assert said == []

    def test_signs_of_life_come_before_a_host_gives_up(self) -> None:
        assert max(bash_client.PROGRESS_SECONDS, bash_live.SILENT_SECONDS) <= 10

    def test_output_is_told_within_a_second(self) -> None:
        assert bash_live.LIVE_SECONDS < 1


class TestDescription:
    def test_a_call_is_described_by_its_beginning(self, tmp_path: Path) -> None:
        tool = BashTool(str(tmp_path))
        assert tool.describe({"command": "ls -l"}) == "Execute: ls -l"
        assert tool.describe({"command": "é" * 60}) == "Execute: " + "é" * 40
        assert tool.describe({"command": "x" + "é" * 60}) == "Execute: x" + "é" * 39
        assert tool.describe({"command": "a\nb"}) == "Execute: a b"
        assert tool.describe({"command": "\ud800"}) == "Execute: ?"

    def test_what_an_agent_asks_of_it(self, tmp_path: Path) -> None:
        tool: Tool = BashTool(str(tmp_path))
        assert (tool.name, tool.category, tool.limit, tool.concurrent) == ("Bash", "exec", 50_000, False)
        assert tool.parameters["required"] == ["command"]
        assert not tool.outside({})
        assert "bash" in BashTool(".", shell="/bin/bash").description


def test_signals_have_names() -> None:
    assert bash._signal_name(signal.SIGKILL) == "SIGKILL"
    assert bash._signal_name(signal.SIGRTMIN + 1) == f"signal {signal.SIGRTMIN + 1}"


async def test_a_command_is_none_that_lies_in_the_workspace(tmp_path: Path) -> None:
    theirs = tmp_path / "git"
    theirs.write_text("#!/bin/sh\necho theirs\n")
    theirs.chmod(0o755)
    made = BashTool(str(tmp_path), env={"PATH": f".{os.pathsep}{os.pathsep}{os.defpath}"})
    try:
        output = await run(made, "git --version; ./git")
    finally:
        await made.close()
    assert str(output.text).count("theirs") == 1
