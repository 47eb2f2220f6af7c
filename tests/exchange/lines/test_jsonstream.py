"""Hosts that speak the JSON stream with a session of the exchange."""

from __future__ import annotations

import asyncio
import json
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
from trunkline.wires.jsonstream.serve_shared import TAKEN_BEFORE

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
        assert host.ending == AttachEnding(1, "The session was removed.", "session_not_found")


async def test_a_host_that_does_not_read_hears_what_it_missed_and_nobody_else_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_UNREAD", 64 * 1024)
    monkeypatch.setattr(connection, "PATIENCE_SECONDS", 0.01)
    script = tmp_path / "long.yaml"
    script.write_text(
        "turns:\n  - steps:\n" + f"      - text: {'x' * 2000}\n" * 400 + "  - steps:\n"
        '      - tool: {name: Bash, args: {command: "make"}, description: "make it", output: "made"}\n'
    )
    long = AgentSettings("", f"scripted:{script}", str(tmp_path))
    async with exchange(tmp_path, a=long) as running:
        async with client(running, HERE) as deaf, client(running, HERE) as host:
            await deaf.until("ready")
            deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await host.until("ready")
            host.send(type="message", msg_id="m1", input="Go")
            said = [line for line in await host.until("stream_end") if line["type"] == "text_delta"]
            assert sum(len(line["text"]) for line in said) == 400 * 2000
            host.send(type="message", msg_id="m2", input="Make it")
            asked = (await host.until("tool_request"))[-1]
            deaf.writer.transport.resume_reading()  # type: ignore[attr-defined]
            lines = await deaf.until("tool_request")
            told = [line["message"] for line in lines if line["type"] == "info"]
            assert any("events were left out here" in each for each in told)
            # Where it is now: the one turn has ended, the other waits for an answer.
            assert types(lines)[-4:] == ["stream_end", "stream_start", "info", "tool_request"]
            assert lines[-1]["call_id"] == asked["call_id"]
            assert sum(len(json.dumps(line)) for line in lines) < 400 * 2000
            deaf.send(type="tool_approve", call_id=asked["call_id"])
            for each in (host, deaf):
                await each.until("stream_end")


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


async def test_the_same_message_twice_is_one_on_every_connection(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=echo(tmp_path)) as running:
        async with client(running, HERE) as host:
            await host.until("ready")
            host.send(type="message", msg_id="m1", input="Hello")
            host.send(type="message", msg_id="m1", input="Hello")
            host.send(type="ping")
            lines = await host.until("pong")
            if "stream_end" not in types(lines):
                lines += await host.until("stream_end")
            assert types(lines).count("stream_start") == types(lines).count("stream_end") == 1
            assert [line["message"] for line in lines if line["type"] == "info"] == [TAKEN_BEFORE]
        async with client(running, HERE) as host:
            await host.until("ready")
            host.send(type="message", msg_id="m1", input="Hello")
            # To one that comes back also what became of it.
            lines = await host.until("stream_end")
            assert types(lines) == ["info", "stream_start", "text_delta", "stream_end"]
            assert (lines[2]["text"], {line["msg_id"] for line in lines}) == ("Hello", {"m1"})
        live = await running.switchboard.find("s")
        turn = await running.switchboard.submit(live, UserMessage("Hello", id="m1"))
        assert (turn, live.session.state.turns) == (1, 1)


async def test_what_only_a_node_has_kept_that_had_lost_the_session_is_answered_when_it_is_said_again(
    tmp_path: Path,
) -> None:
    async with exchange(tmp_path, a=echo(tmp_path)) as running, client(running, HERE) as host:
        await host.until("ready")
        messages = running.switchboard.messages
        kept = await messages.take("s", UserMessage("Hello", id="m1"), 0)
        host.send(type="message", msg_id="m1", input="Hello")
        lines = await host.until("stream_end")
        # First that it is known; and what the host has said itself is not told to it as another's.
        assert types(lines) == ["info", "stream_start", "text_delta", "stream_end"]
        assert (lines[0]["message"], lines[2]["text"]) == (TAKEN_BEFORE, "Hello")
        assert not await messages.forget(kept.number)


@pytest.mark.parametrize("id", ["m1", "x" * 1000, "a\n"])
async def test_a_host_that_counts_its_messages_again_loses_none(tmp_path: Path, id: str) -> None:
    async with exchange(tmp_path, a=echo(tmp_path)) as running:
        for text in ("One", "Two"):
            async with client(running, HERE) as host:
                await host.until("ready")
                host.send(type="message", msg_id=id, input=text)
                lines = await host.until("stream_end")
                assert types(lines) == ["stream_start", "text_delta", "stream_end"]
                assert lines[1]["text"] == text
                assert {line["msg_id"] for line in lines} == {id}
        assert (await running.switchboard.find("s")).session.state.turns == 2


async def test_a_stop_right_behind_a_message_stops_that(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=asking(tmp_path)) as running, client(running, HERE) as host:
        await host.until("ready")
        for _ in range(3):
            host.send(type="message", msg_id=f"m{_}", input="Go")
            host.send(type="stop")
            lines = await host.until("stream_end")
            assert "tool_result" not in types(lines)


async def test_a_message_that_was_taken_in_is_answered_after_the_exchange_has_ended(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=asking(tmp_path)) as running:
        async with client(running, HERE) as host:
            host.send(type="message", msg_id="m1", input="Go")
            host.send(type="message", msg_id="m2", input="And again")
            host.send(type="ping")
            await host.until("pong")
    async with exchange(tmp_path, a=asking(tmp_path)) as running, client(running, HERE) as host:
        live = await running.switchboard.find("s")
        while live.session.state.turns < 2:
            if live.session.waiting:
                live.session.answer(live.session.waiting[0].call_id, Approve(), "ana")
            await asyncio.sleep(0)
        assert live.session.state.open_turns[2].message.id == "m2"
