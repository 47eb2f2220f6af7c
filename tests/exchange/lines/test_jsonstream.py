"""Hosts that speak the JSON stream with a session of the exchange."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.attached import asking, client, echo, exchange
from trunkline.base.attach import AttachEnding, AttachHeader
from trunkline.core.agent import Approve
from trunkline.core.events import UserMessage
from trunkline.exchange.lines import connection
from trunkline.exchange.settings import AgentBudget, AgentSettings

HERE = AttachHeader("jsonstream", "a", "s")


def types(lines: list[dict[str, Any]]) -> list[str]:
    return [line["type"] for line in lines]


async def test_a_host_talks_and_its_session_lives_on(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=echo(tmp_path)) as running:
        async with client(running, HERE) as host:
            (ready,) = await host.until("ready")
            assert ready["session_id"] == "s"
            host.send(type="message", msg_id="m1", input="Hello")
            lines = await host.until("stream_end")
            assert types(lines) == ["stream_start", "text_delta", "stream_end"]
            assert {line["msg_id"] for line in lines} == {"m1"}
            assert await host.end() == AttachEnding(0)
        live = running.switchboard.live("s")
        assert live is not None
        assert live.clients == 0
        async with client(running, AttachHeader("jsonstream", resume="s")) as host:
            await host.until("ready")
            host.send(type="message", msg_id="m2", input="Again")
            await host.until("stream_end")
        assert live.session.state.turns == 2


async def test_all_hosts_of_a_session_see_everything_and_who_said_it(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=echo(tmp_path)) as running:
        async with client(running, HERE) as one, client(running, HERE) as other:
            await one.until("ready")
            await other.until("ready")
            one.send(type="message", msg_id="m1", input="Hello")
            assert types(await one.until("stream_end")) == ["stream_start", "text_delta", "stream_end"]
            start, said, text, _ = await other.until("stream_end")
            assert (start["msg_id"], said["message"]) == ("m1", "local: Hello")
            assert text["text"] == "Hello"
            live = await running.switchboard.find("s")
            await running.switchboard.submit(live, UserMessage("And I", sender="ana"))
            for host in (one, other):
                assert (await host.until("stream_end"))[1]["message"] == "ana: And I"


@pytest.mark.parametrize("who", ["host", "other", "api"])
async def test_a_request_is_answered_by_whoever_is_first_and_the_others_are_told(tmp_path: Path, who: str) -> None:
    async with exchange(tmp_path, a=asking(tmp_path)) as running:
        async with client(running, HERE) as host, client(running, HERE) as other:
            await other.until("ready")
            host.send(type="message", msg_id="m1", input="Go")
            request = (await host.until("tool_request"))[-1]
            await other.until("tool_request")
            live = await running.switchboard.find("s")
            await live.written()
            (row,) = await running.switchboard.approvals.found("pending")
            assert (row.tool, row.call_id) == ("Bash", request["call_id"])
            if who == "api":
                await live.decide(row, Approve(), "ana")
            else:
                (host if who == "host" else other).send(type="tool_approve", call_id=request["call_id"])
            seen, seen_there = await host.until("stream_end"), await other.until("stream_end")
            for lines in (seen, seen_there):
                assert "tool_result" in types(lines)
            told = [line["message"] for line in seen if line["type"] == "info"]
            assert told == {"host": [], "other": ["approved by local"], "api": ["approved by ana"]}[who]
            await live.written()
            (row,) = await running.switchboard.approvals.found()
            assert (row.state, row.decided_by) == ("approved", "ana" if who == "api" else "local")
            host.send(type="tool_deny", call_id=request["call_id"])
            assert (await host.until("error"))[-1]["error"]["code"]


async def test_a_host_that_comes_into_the_middle_of_a_turn_is_asked_too(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=asking(tmp_path)) as running:
        async with client(running, HERE) as host:
            host.send(type="message", msg_id="m1", input="Go")
            await host.until("tool_request")
        async with client(running, HERE) as host:
            lines = await host.until("tool_request")
            assert types(lines) == ["ready", "stream_start", "info", "tool_request"]
            host.send(type="tool_approve", call_id=lines[-1]["call_id"])
            assert types(await host.until("stream_end"))[0] == "tool_running"


async def test_a_budget_that_is_spent_refuses_the_message_with_an_error_and_its_end(tmp_path: Path) -> None:
    thrifty = echo(tmp_path).replace(budget=AgentBudget(tokens_per_day=0))
    async with exchange(tmp_path, a=thrifty) as running, client(running, HERE) as host:
        host.send(type="message", msg_id="m1", input="one")
        lines = await host.until("stream_end")
        assert "0 tokens a day" in next(line for line in lines if line["type"] == "error")["error"]["message"]


async def test_a_session_that_is_removed_ends_its_hosts_with_that_reason(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=echo(tmp_path)) as running, client(running, HERE) as host:
        await host.until("ready")
        await running.switchboard.remove("s")
        while await host.more():
            pass
        assert host.ending == AttachEnding(1, "The session was removed.")


async def test_a_host_that_does_not_read_is_let_go_of_and_nobody_else_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_UNREAD", 64 * 1024)
    monkeypatch.setattr(connection, "PATIENCE_SECONDS", 0.01)
    script = tmp_path / "long.yaml"
    script.write_text("turns:\n  - steps:\n" + f"      - text: {'x' * 2000}\n" * 400)
    long = AgentSettings("", f"scripted:{script}", str(tmp_path))
    async with exchange(tmp_path, a=long) as running:
        async with client(running, HERE) as deaf, client(running, HERE) as host:
            deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await host.until("ready")
            host.send(type="message", msg_id="m1", input="Go")
            said = [line for line in await host.until("stream_end") if line["type"] == "text_delta"]
            assert sum(len(line["text"]) for line in said) == 400 * 2000
            live = running.switchboard.live("s")
            assert live is not None
            while live.clients > 1:
                await running.switchboard.written()


async def test_an_agent_whose_program_died_is_started_again_for_the_hosts_next_message(tmp_path: Path) -> None:
    dying = 'import sys\nprint(\'{"type":"ready","version":"0.1.0","capabilities":{}}\', flush=True)\n'
    (tmp_path / "dying.py").write_text(f"{dying}sys.stdin.readline()\nsys.exit(3)\n")
    agent = AgentSettings("", f"jsonstream:{sys.executable} {tmp_path / 'dying.py'}", str(tmp_path))
    async with exchange(tmp_path, a=agent) as running, client(running, HERE) as host:
        await host.until("ready")
        before = running.switchboard.live("s")
        for number in (1, 2):
            host.send(type="message", msg_id=f"m{number}", input="Go")
            lines = await host.until("stream_end")
            assert "error" in types(lines)
            entry = running.directory.find("a")
            entry.worked()
        host.send(type="ping")
        await host.until("pong")
        after = running.switchboard.live("s")
        assert after is not None
        assert after is before
        assert after.clients == 1
