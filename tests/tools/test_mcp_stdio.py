from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.base.processes import is_alive
from tests.support.mcp_client import SMALL_SERVER, Watched, small, until, watched
from tests.support.mcp_server import PICTURE
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.extras import install_hint
from trunkline.core.agent import AddMcpServer
from trunkline.core.faults import ConfigError, ToolError
from trunkline.tools.mcp import connection, messages, sdk, stdio, tool
from trunkline.tools.mcp.servers import McpServers
from trunkline.tools.tool import Tool, ToolOutput

pytestmark = pytest.mark.process


class TestConnect:
    async def test_the_tools_of_all_pages_are_offered_and_announced(self, client: Watched) -> None:
        names = await client.connect(small())
        assert {"echo", "die", "progress", "structured"} <= set(names)
        assert client.ready == [("small", names)]
        assert tuple(tool.name for tool in client.servers.tools) == names
        echo: Tool = client.tool("echo")
        assert (echo.category, echo.limit, echo.concurrent) == ("mcp", 50_000, False)
        assert echo.description == "Shows echo."
        assert echo.parameters == {"type": "object", "properties": {}}
        assert not echo.outside({})

    async def test_noise_and_warnings_do_no_harm_and_are_logged(
        self, client: Watched, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
    ) -> None:
        caplog.set_level(logging.INFO, "trunkline")
        await client.connect(small("--noise"))
        assert (await client.call("noise")).text == "through the noise"
        assert "welcome to the server" in caplog.text
        assert "a warning" in caplog.text
        assert capfd.readouterr() == ("", "")

    async def test_it_runs_where_and_with_what_it_was_told(self, client: Watched, tmp_path: Path) -> None:
        await client.connect(small(env={"GIVEN": "this"}))
        assert (await client.call("pid")).text.split(maxsplit=1)[1] == f"{tmp_path} this"

    async def test_only_the_variables_that_it_may_have_reach_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("A_KEY_OF_OURS", "secret")
        env = {name: value for name, value in os.environ.items() if name != "A_KEY_OF_OURS"}
        async with watched(tmp_path, env=env | {"GIVEN": "by all", "KEPT": "yes"}) as client:
            await client.connect(small(env={"GIVEN": "by its own"}))
            seen = json.loads((await client.call("environment")).text)
        assert "A_KEY_OF_OURS" not in seen
        assert (seen["GIVEN"], seen["KEPT"]) == ("by its own", "yes")

    async def test_unless_told_otherwise_it_has_our_variables(
        self, client: Watched, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("A_SETTING_OF_OURS", "this")
        await client.connect(small())
        assert json.loads((await client.call("environment")).text)["A_SETTING_OF_OURS"] == "this"

    async def test_a_python_takes_modules_from_where_it_runs_only_if_that_is_trusted(self, tmp_path: Path) -> None:
        shutil.copy(SMALL_SERVER, tmp_path / "server_of_the_repository.py")
        spec = AddMcpServer("mine", "stdio", command=sys.executable, args=("-m", "server_of_the_repository"))
        untrusted = McpServers(str(tmp_path), startup_seconds=PATIENCE_SECONDS)
        with pytest.raises(ToolError, match="No module named server_of_the_repository"):
            await untrusted.connect(spec)
        await untrusted.close()
        trusted = McpServers(str(tmp_path), trusted=True, startup_seconds=PATIENCE_SECONDS)
        assert "echo" in await trusted.connect(spec)
        await trusted.close()

    async def test_a_server_without_tools_is_a_server(self, client: Watched) -> None:
        assert await client.connect(small("--no-tools")) == ()

    async def test_several_connect_at_once_and_one_that_fails_stops_no_other(self, client: Watched) -> None:
        specs = [small(name="a"), small("--die", name="b"), small(name="c"), AddMcpServer("d", "stdio")]
        await client.servers.connect_all(specs)
        assert {name for name, _ in client.ready} == {"a", "c"}
        assert {name for name, _ in client.problems} == {"b", "d"}

    async def test_connecting_the_same_again_changes_nothing(self, client: Watched) -> None:
        await client.connect(small())
        before = (await client.call("pid")).text
        await client.connect(small())
        assert (await client.call("pid")).text == before

    async def test_another_server_of_that_name_takes_its_place(self, client: Watched) -> None:
        await client.connect(small())
        before = int((await client.call("pid")).text.split()[0])
        await client.connect(small("--noise"))
        await until(lambda: not is_alive(before))
        assert int((await client.call("pid")).text.split()[0]) != before
        assert len(client.servers.tools) == len({tool.name for tool in client.servers.tools})
        assert client.problems == []


class TestFailures:
    async def test_one_that_hangs_is_given_up_in_time(self, tmp_path: Path) -> None:
        async with watched(tmp_path, startup_seconds=0.5) as client:
            with pytest.raises(ToolError, match=r"`small` did not answer within 0\.5 s\. Check"):
                await client.connect(small("--hang"))
            assert client.servers.tools == ()

    async def test_what_to_do_when_the_first_connect_fails_is_said(self, client: Watched) -> None:
        with pytest.raises(ToolError, match="once it is put right, use `/mcp reconnect small`") as caught:
            await client.connect(small("--die"))
        assert caught.value.hint
        assert 'env = { GITHUB_TOKEN = "${GITHUB_TOKEN}" }' in caught.value.hint
        assert await client.connect(small())

    async def test_one_that_dies_is_quoted(self, client: Watched) -> None:
        with pytest.raises(ToolError, match="`small` ended with exit code 1; its last words: cannot start like this"):
            await client.connect(small("--die"))

    async def test_one_that_does_not_exist_is_named(self, client: Watched) -> None:
        with pytest.raises(ToolError, match="`small` could not be started: there is no program `no-such-server`"):
            await client.connect(AddMcpServer("small", "stdio", command="no-such-server"))

    async def test_one_that_is_no_mcp_server_is_an_error(self, client: Watched) -> None:
        with pytest.raises(ToolError, match="`true` ended with exit code 0"):
            await client.connect(AddMcpServer("true", "stdio", command="true"))

    @pytest.mark.parametrize(
        ("spec", "says"),
        [
            (AddMcpServer("", "stdio", command="x"), "no name"),
            (AddMcpServer("s", "stdio"), "no `command`"),
            (AddMcpServer("s", "sse", command="x"), "no `url`"),
            (AddMcpServer("s", "streamable-http", url="ftp://x"), "no `url`"),
            (AddMcpServer("s", "smoke"), "unknown transport `smoke`"),  # type: ignore[arg-type]
        ],
    )
    async def test_what_cannot_work_is_refused(self, client: Watched, spec: AddMcpServer, says: str) -> None:
        with pytest.raises(ConfigError, match=says):
            await client.connect(spec)

    async def test_without_the_sdk_the_package_is_named(self, client: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sdk, "_MODULES", ("no_such_module",))
        with pytest.raises(ConfigError, match=r"MCP server `small` needs the package `mcp`") as error:
            await client.connect(small())
        assert install_hint("coder") in str(error.value)

    async def test_cancelling_leaves_no_server_behind(self, client: Watched, tmp_path: Path) -> None:
        starts = tmp_path / "starts"
        task = asyncio.create_task(client.connect(small("--hang", "--starts", str(starts))))
        await until(starts.exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert client.servers.tools == ()


class TestCalls:
    async def test_arguments_arrive_and_text_comes_back(self, client: Watched) -> None:
        await client.connect(small())
        assert await client.call("echo", a=1, b=["é"]) == ToolOutput('{"a": 1, "b": ["\\u00e9"]}', foreign=True)

    async def test_all_kinds_of_parts(self, client: Watched) -> None:
        await client.connect(small())
        output = await client.call("parts")
        assert output.text.splitlines() == [
            "one",
            "[image: image/png]",
            "[audio: audio/wav]",
            "inside",
            "[resource] file:///b.bin",
            "[resource] file:///c.txt",
        ]
        assert output.images == (("image/png", PICTURE),)

    @pytest.mark.parametrize(
        ("name", "output"),
        [
            ("fail", ToolOutput("it did not work", "error", foreign=True)),
            ("structured", ToolOutput('{"answer":42}', foreign=True)),
            ("empty", ToolOutput("(no output)", foreign=True)),
            ("surrogate", ToolOutput("half � of a pair", foreign=True)),
        ],
    )
    async def test_special_answers(self, client: Watched, name: str, output: ToolOutput) -> None:
        await client.connect(small())
        assert await client.call(name) == output

    async def test_lone_surrogates_in_arguments_do_no_harm(self, client: Watched) -> None:
        await client.connect(small())
        assert await client.call("echo", a="\ud800") == ToolOutput('{"a": "\\ufffd"}', foreign=True)

    async def test_an_answer_that_is_not_mcp_is_an_error(self, client: Watched) -> None:
        await client.connect(small())
        output = await client.call("nonsense")
        assert output.status == "error"
        assert output.text.startswith("MCP server `small` gave an answer that cannot be used: ")

    async def test_an_error_of_the_protocol_is_an_error(self, client: Watched) -> None:
        await client.connect(small())
        await client.call("grow", name="ghost")
        await until(lambda: "ghost" in client.ready[-1][1])
        assert await client.call("ghost") == ToolOutput("MCP error -32602: no tool ghost", "error", foreign=True)

    async def test_a_large_answer_arrives_whole(self, client: Watched) -> None:
        await client.connect(small())
        assert len((await client.call("huge", size=5_000_000)).text) == 5_000_000

    async def test_an_answer_that_cannot_be_read_is_an_error_of_its_call_alone(
        self, client: Watched, tmp_path: Path
    ) -> None:
        await client.connect(small())
        started, cancelled = tmp_path / "started", tmp_path / "cancelled"
        other = asyncio.create_task(client.call("hang", started=str(started), cancelled=str(cancelled)))
        await until(started.exists)
        deep = "[" * 500 + "]" * 500
        output = await client.call("raw", line=f'{{"jsonrpc": "2.0", "id": REQUEST, "result": {{"a": {deep}}}}}')
        assert output.status == "error"
        assert output.text.endswith("the answer cannot be read: nested deeper than 200 levels.")
        assert not other.done()
        assert (await client.call("echo")).text == "{}"
        other.cancel()
        await until(cancelled.exists)

    @pytest.mark.usefixtures("quick_restart")
    async def test_an_answer_to_nobody_knows_which_call_costs_the_connection(self, client: Watched) -> None:
        await client.connect(small())
        output = await client.call("raw", line='{"jsonrpc": "2.0", "result": {"a": NaN}}')
        assert output.status == "error"
        assert "`small` sent an answer that cannot be read: `NaN` is not JSON, while `raw` was running." in output.text
        assert (await client.call("echo")).text == "{}"

    @pytest.mark.usefixtures("quick_restart")
    async def test_a_line_without_end_costs_the_connection_and_not_the_memory(
        self, client: Watched, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stdio, "MAX_LINE_BYTES", messages.MAX_LINE_BYTES >> 8)
        await client.connect(small())
        output = await client.call("huge", size=1_000_000)
        assert "`small` sent a message of more than 131072 bytes" in output.text

    @pytest.mark.usefixtures("quick_restart")
    async def test_why_a_call_was_lost_is_told_also_where_the_server_goes_on_writing(
        self, client: Watched, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stdio, "MAX_LINE_BYTES", messages.MAX_LINE_BYTES >> 8)
        # Stuck as it is, it would never hear a goodbye.
        monkeypatch.setattr(stdio, "GOODBYE_SECONDS", 10 * PATIENCE_SECONDS)
        monkeypatch.setattr(connection, "REASON_SECONDS", PATIENCE_SECONDS / 2)
        await client.connect(small())
        output = await client.call("raw", line="x" * 200_000 + "\n" + "y" * 1_000_000)
        assert "`small` sent a message of more than 131072 bytes" in output.text

    async def test_a_call_is_described_in_one_line(self, client: Watched) -> None:
        await client.connect(small())
        echo = client.tool("echo")
        assert echo.describe({"a": 1, "b": "x\ny"}) == 'MCP small/echo: {"a":1,"b":"x\\ny"}'
        assert echo.describe({"a": object()}) == "MCP small/echo: ?"
        assert len(echo.describe({"a": "x" * 10_000})) < 600


class TestCancel:
    async def test_the_server_is_told_and_nobody_waits(self, client: Watched, tmp_path: Path) -> None:
        await client.connect(small())
        started, cancelled = tmp_path / "started", tmp_path / "cancelled"
        call = asyncio.create_task(client.call("hang", started=str(started), cancelled=str(cancelled)))
        await until(started.exists)
        call.cancel()
        async with asyncio.timeout(PATIENCE_SECONDS):
            with pytest.raises(asyncio.CancelledError):
                await call
        await until(cancelled.exists)
        assert (await client.call("echo")).text == "{}"


class TestReports:
    async def test_a_long_call_says_that_it_lives_and_how_far_it_is(
        self, client: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tool, "PROGRESS_SECONDS", 0.05)
        await client.connect(small())
        call = asyncio.create_task(client.call("progress", go=str(tmp_path / "go")))
        await until(lambda: client.reports and client.reports[-1].endswith(" s: half"))
        (tmp_path / "go").touch()
        assert (await call).text == "done"
        assert client.reports[-1].startswith("still waiting for small/progress after ")

    def test_signs_of_life_come_before_a_host_gives_up(self) -> None:
        assert tool.PROGRESS_SECONDS <= 10


class TestCollisions:
    async def test_a_name_that_is_taken_is_changed(self, tmp_path: Path) -> None:
        async with watched(tmp_path, taken={"echo"}) as client:
            assert "mcp__small__echo" in await client.connect(small())
            names = await client.connect(small(name="other"))
            assert "mcp__other__echo" in names
            assert "mcp__other__pid" in names
            assert (await client.call("mcp__small__echo", a=1)).text == '{"a": 1}'
            assert (await client.call("pid")).text != (await client.call("mcp__other__pid")).text


class TestClose:
    async def test_no_server_is_left(self, client: Watched) -> None:
        await client.connect(small(name="a"))
        await client.connect(small(name="b"))
        pids = [int((await client.call(name)).text.split()[0]) for name in ("pid", "mcp__b__pid")]
        await client.servers.close()
        assert not any(is_alive(pid) for pid in pids)
        assert client.servers.tools == ()
        assert client.problems == []

    async def test_one_that_does_not_listen_is_killed(self, client: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
        await client.connect(small("--deaf"))
        pid = int((await client.call("pid")).text.split()[0])
        # Its owner ends it, not whoever has waited for that in vain.
        monkeypatch.setattr(connection, "CLOSE_SECONDS", 10 * PATIENCE_SECONDS)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await client.servers.close()
        assert not is_alive(pid)

    async def test_a_call_that_runs_meanwhile_ends(self, client: Watched, tmp_path: Path) -> None:
        await client.connect(small())
        started = tmp_path / "started"
        call = asyncio.create_task(client.call("hang", started=str(started), cancelled=str(tmp_path / "c")))
        await until(started.exists)
        await client.servers.close()
        assert (await call).status == "error"


def test_nothing_is_imported_before_a_server_is_wanted() -> None:
    script = "import sys, trunkline.tools.mcp.servers; print([m for m in sys.modules if m.split('.')[0] in {heavy!r}])"
    heavy = ["mcp", "mcp_types", "anyio", "httpx", "httpx2", "pydantic"]
    done = subprocess.run(
        [sys.executable, "-c", script.format(heavy=heavy)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    assert done.stdout.strip() == "[]"
