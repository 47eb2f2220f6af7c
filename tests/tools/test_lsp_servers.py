"""Diagnostics after an edit: what servers say is behind the result, and what they do wrong costs no edit."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import language_server
from tests.support.agent_process import gone
from tests.support.language_server import LATE
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.redact import Redactor
from trunkline.tools.client_side import ClientSide
from trunkline.tools.edit import Edit
from trunkline.tools.files import FileMemory
from trunkline.tools.lsp import server, servers
from trunkline.tools.lsp.server import LanguageServer
from trunkline.tools.lsp.servers import MOST_FAILURES, MOST_TOLD, LanguageServers
from trunkline.tools.lsp.tool import DiagnosedTool
from trunkline.tools.tool import Interrupted, ToolOutput
from trunkline.tools.toolbox import Toolbox
from trunkline.tools.workspace import Workspace
from trunkline.tools.write import Write

SCRIPT = str(Path(language_server.__file__))


class Place:
    """A workspace whose edits servers look at."""

    def __init__(self, root: Path, specs: list[LanguageServer]) -> None:
        self.root = root
        self.problems: list[str] = []
        self.heard = root.parent / "heard"
        workspace, client, memory = Workspace(root), ClientSide(), FileMemory()
        env = {"HEARD": str(self.heard), "PATH": "/usr/bin:/bin"}
        self.servers = LanguageServers(
            specs,
            workspace,
            client,
            env=lambda: env,
            redactor=Redactor(["seen enough"]),
            on_problem=self.problems.append,
        )
        tools = (Write(workspace, memory, client), Edit(workspace, memory, client))
        self.toolbox = Toolbox(DiagnosedTool(tool, self.servers) for tool in tools)

    async def call(self, tool: str, **args: Any) -> ToolOutput:
        async with asyncio.timeout(PATIENCE_SECONDS):
            output = await self.toolbox.run(tool, args, lambda line: None)
        assert output.status == "success", output.text
        return output

    async def write(self, content: str, path: str = "a.py") -> str:
        return (await self.call("Write", file_path=path, content=content)).text


@asynccontextmanager
async def place(folder: Path, *flags: str, **more: Any) -> AsyncIterator[Place]:
    root = folder / "workspace"
    root.mkdir()
    made = Place(root, [LanguageServer("fake", (sys.executable, SCRIPT, *flags), (".py",), **more)])
    try:
        yield made
    finally:
        await made.servers.close()


WRITTEN = "Created a.py (2 lines)"
FOUND = "fake finds in a.py:\n- 2:5 error: BAD found in 'x = BAD' (T1)"


@pytest.mark.parametrize("flags", [(), ("--pull",), ("--no-version",), ("--twice",), ("--asks",), ("--odd",)])
async def test_what_is_wrong_is_told_behind_the_result(tmp_path: Path, flags: tuple[str, ...]) -> None:
    async with place(tmp_path, *flags) as made:
        output = await made.call("Write", file_path="a.py", content="HINT\nx = BAD\n")
        assert output.text == f"{WRITTEN}\n\n{FOUND}"
        assert output.metadata is not None
        assert output.metadata["diagnostics"] == ["2:5 error: BAD found in 'x = BAD' (T1)"]
        assert made.problems == []


async def test_what_is_right_is_not_worth_a_word(tmp_path: Path) -> None:
    async with place(tmp_path) as made:
        assert await made.write("x = 1\ny = 2\n") == WRITTEN


async def test_new_ones_come_first_and_errors_before_warnings(tmp_path: Path) -> None:
    async with place(tmp_path) as made:
        await made.write("ODD\nBAD 1\n")
        output = await made.call("Edit", file_path="a.py", old_string="ODD\n", new_string="top\nODD\n\nODD 2\nBAD 2\n")
        assert output.text.split("\n\n")[1].splitlines() == [
            "fake finds in a.py:",
            "- new: 5:1 error: BAD found in 'BAD 2' (T1)",
            "- new: 4:1 warning: ODD found in 'ODD 2' (T2)",
            "- 6:1 error: BAD found in 'BAD 1' (T1)",
            "- 2:1 warning: ODD found in 'ODD' (T2)",
        ]
        assert output.output_type == "diff"
        assert (await made.write("fine\n")).endswith("\n\nfake: no errors or warnings in a.py any more.")


async def test_many_are_counted(tmp_path: Path) -> None:
    async with place(tmp_path) as made:
        text = await made.write("BAD\n" * 100)
        assert text.count("error:") == MOST_TOLD
        assert text.endswith(f"- and {100 - MOST_TOLD} more")


async def test_a_server_is_started_when_it_is_needed_and_then_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "GOODBYE_SECONDS", PATIENCE_SECONDS)
    async with place(tmp_path, root="sub/..") as made:
        await made.write("x", "notes.txt")
        await made.write("x", str(tmp_path / "outside.py"))
        assert not made.heard.exists()
        await made.write("x")
        await made.write("y", "b.py")
        await made.write("z")
    assert made.heard.read_text().split("\n")[:-1] == [
        "initialize",
        f"root file://{made.root} secret None",
        "initialized",
        *("textDocument/didOpen", "open python", "textDocument/didSave"),
        *("textDocument/didOpen", "open python", "textDocument/didSave"),
        *("textDocument/didChange", "textDocument/didSave"),
        *("shutdown", "exit"),
    ]


async def test_what_a_server_asks_is_answered(tmp_path: Path) -> None:
    async with place(tmp_path, "--asks") as made:
        await made.write("x")
        # (Between the questions, it hears of the change once more.)
        heard = made.heard.read_text()
        assert '"result": [null, null]' in heard
        assert '"result": {"applied": false}' in heard


@pytest.mark.parametrize(
    ("flags", "limits", "said"),
    [
        (("--mute",), {"START_SECONDS": 0.2}, "it did not answer within 0.2 s"),
        (("--die",), {}, "it ended with exit code 1; its last words: I have [redacted]"),
        (("--nonsense",), {}, "it sends something else than messages"),
        (("--flood",), {"FLOOD_BYTES": 1_000_000}, "it sends without an end"),
    ],
)
async def test_a_server_that_does_wrong_costs_a_notice_and_no_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], limits: dict[str, float], said: str
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(server, name, value)
    async with place(tmp_path, *flags) as made:
        for _ in range(MOST_FAILURES + 1):
            assert "a.py (1 lines)" in await made.write("BAD")
        expected = f"The language server `fake` gives no diagnostics: {said}."
        assert made.problems == [expected] * (MOST_FAILURES - 1) + [f"{expected} It is not used any more."]
    assert (made.root / "a.py").read_text() == "BAD"


@pytest.mark.parametrize("flags", [("--late",), ("--silent",)])
async def test_one_that_is_slow_is_not_waited_for_until_it_says_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    monkeypatch.setattr(server, "DIAGNOSTICS_SECONDS", 0.2)
    async with place(tmp_path, *flags) as made:
        for _ in range(LATE + 1):
            assert "finds" not in await made.write("BAD")
        expected = "The language server `fake` gives no diagnostics: it said nothing within 0.2 s."
        assert made.problems == [expected] * (LATE - 1) + [f"{expected} It is not waited for until it says something."]
        (kept,) = made.servers._servers
        running = kept.running
        assert running is not None
        if "--late" in flags:
            # It has been told of all changes, and comes to its senses.
            await _until(lambda: not running.is_late)
            monkeypatch.setattr(server, "DIAGNOSTICS_SECONDS", PATIENCE_SECONDS)
            assert "fake finds in a.py" in await made.write("BAD BAD")
        assert len(made.problems) == LATE


async def test_one_that_says_to_ask_again_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "AGAIN_SECONDS", 0.01)
    async with place(tmp_path, "--pull", "--loading") as made:
        assert "fake finds in a.py" in await made.write("BAD")
        assert made.problems == []


async def test_one_that_says_so_for_long_is_not_waited_for_until_it_says_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "DIAGNOSTICS_SECONDS", 0.5)
    monkeypatch.setattr(server, "AGAIN_SECONDS", PATIENCE_SECONDS)
    async with place(tmp_path, "--pull", "--loading") as made:
        for _ in range(LATE):
            assert "finds" not in await made.write("BAD")
        assert made.problems[-1].endswith("It is not waited for until it says something.")
        (kept,) = made.servers._servers
        running = kept.running
        assert running is not None
        assert "finds" not in await made.write("BAD BAD")
        # It was asked once more, and nobody has waited for the answer.
        await _until(lambda: not running.is_late)
        monkeypatch.setattr(server, "DIAGNOSTICS_SECONDS", PATIENCE_SECONDS)
        assert "fake finds in a.py" in await made.write("BAD BAD BAD")


async def test_one_that_sends_what_nobody_can_read_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise UnicodeError("of ours")

    async with place(tmp_path) as made:
        await made.write("BAD")
        monkeypatch.setattr(server, "diagnostics", broken)
        await made.write("BAD BAD")
        assert "it sends something that cannot be read (UnicodeError)" in made.problems[0]


async def test_a_program_that_is_not_there_costs_a_notice(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    made = Place(root, [LanguageServer("none", ("no-such-server",), (".py",))])
    assert await made.write("x\n") == "Created a.py (1 lines)"
    assert "it could not be started" in made.problems[0]
    await made.servers.close()


async def test_who_stops_the_wait_does_not_lose_the_edit(tmp_path: Path) -> None:
    async with place(tmp_path, "--silent") as made:
        tool = made.toolbox.find("Write")
        assert tool is not None
        task = asyncio.create_task(tool.run({"file_path": "a.py", "content": "x\n"}, lambda line: None))
        await _until(lambda: made.heard.exists() and "didSave" in made.heard.read_text())
        task.cancel()
        with pytest.raises(Interrupted) as caught:
            await task
        assert caught.value.output.text == "Created a.py (1 lines)"


async def test_nothing_is_left_running(tmp_path: Path) -> None:
    async with place(tmp_path, "--silent") as made:
        (made.root / "a.py").write_text("x")
        looking = asyncio.create_task(made.servers.changed(str(made.root / "a.py")))
        await _until(lambda: made.heard.exists() and "didSave" in made.heard.read_text())
        running = made.servers._servers[0].running
        assert running is not None
        pid = running._child.pid
    assert gone(pid)
    assert await looking == []
    assert made.problems == []


async def test_a_file_that_is_no_text_is_not_looked_at(tmp_path: Path) -> None:
    async with place(tmp_path) as made:
        (made.root / "a.py").write_bytes(b"\xff\xfe\0")
        assert await made.servers.changed(str(made.root / "a.py")) == []
        assert await made.servers.changed(str(made.root / "gone.py")) == []


async def test_several_servers_look_at_once(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    specs = [LanguageServer(name, (sys.executable, SCRIPT), (".py", ".pyi")) for name in ("one", "two")]
    made = Place(root, specs)
    text = await made.write("BAD\n")
    assert "one finds in a.py:" in text
    assert "two finds in a.py:" in text
    await made.servers.close()


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so():  # noqa: ASYNC110  (another process does it)
            await asyncio.sleep(0.01)


def test_what_is_told_of_nothing_is_nothing() -> None:
    assert servers.told("a.py", []) == ""
