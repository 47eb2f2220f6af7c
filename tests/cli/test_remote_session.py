"""`chat --attach`: a session of the exchange at the terminal."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.terminal.chat_terminal import ENTER, ChatTerminal
from tests.support.attached import asking, echo, exchange
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import local_socket
from trunkline.base.attach import AttachHeader
from trunkline.cli import local_exchange
from trunkline.cli.remote_session import RemoteSession
from trunkline.core.agent import Approve, Deny
from trunkline.core.events import Envelope, Event, Notice, TextDelta, ToolRequested, TurnEnded, UserMessage
from trunkline.core.faults import AgentFailed, ConfigError
from trunkline.exchange.lines.chat import ChatServer
from trunkline.exchange.settings import AgentBudget

HERE = AttachHeader("chat", "a", "s")


class Seen:
    """A sink."""

    congested = False

    def __init__(self) -> None:
        self.events: list[Event] = []

    def show(self, envelopes: Sequence[Envelope]) -> None:
        self.events += [envelope.event for envelope in envelopes]

    async def drain(self) -> None:
        pass

    async def until(self, kind: type[Event]) -> Event:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                for event in self.events:
                    if isinstance(event, kind):
                        return event
                await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    return tmp_path


async def joined(header: AttachHeader = HERE, *, interactive: bool = True) -> tuple[RemoteSession, Seen]:
    session, seen = await RemoteSession.open(header, interactive=interactive), Seen()
    session.attach(seen)
    return session, seen


async def test_a_message_is_answered_in_the_exchange_and_seen_by_everybody(home: Path) -> None:
    async with exchange(home, a=echo(home)):
        one, seen = await joined()
        other, seen_there = await joined()
        assert (one.id, one.agent, one.mode) == ("s", "a", "default")
        one.submit(UserMessage("Hello"))
        await one.at_rest()
        await seen_there.until(TurnEnded)
        for events in (seen.events, seen_there.events):
            assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hello"]
        assert Notice("local: Hello") in seen_there.events
        assert Notice("local: Hello") not in seen.events
        await one.close()
        assert one.state.turns == other.state.turns == 1
        await other.close()


@pytest.mark.parametrize("approved", [True, False])
async def test_what_is_asked_is_answered_here_and_the_session_goes_on_without_us(home: Path, approved: bool) -> None:
    async with exchange(home, a=asking(home)) as running:
        one, seen = await joined()
        one.submit(UserMessage("Go"))
        await seen.until(ToolRequested)
        await one.close()
        other, seen = await joined()
        (request,) = other.waiting
        other.answer(request.call_id, Approve() if approved else Deny("no"))
        await seen.until(TurnEnded)
        await running.switchboard.written()
        (row,) = await running.switchboard.approvals.found()
        assert (row.state, row.decided_by) == ("approved" if approved else "denied", "local")
        other.answer(request.call_id, Approve())
        assert isinstance(await seen.until(Notice), Notice)
        await other.close()


async def test_mode_grants_and_stops_are_the_sessions(home: Path) -> None:
    async with exchange(home, a=asking(home)) as running:
        one, seen = await joined()
        one.submit(UserMessage("Go"))
        request = await seen.until(ToolRequested)
        assert isinstance(request, ToolRequested)
        one.stop()
        await one.at_rest()
        one.set_mode("yolo")
        one.submit(UserMessage("Go"))
        await one.at_rest()
        live = await running.switchboard.find("s")
        assert (one.mode, live.session.mode) == ("yolo", "yolo")
        await one.close()


async def test_a_budget_that_is_spent_is_a_failure_and_the_end(home: Path) -> None:
    async with exchange(home, a=echo(home).replace(budget=AgentBudget(tokens_per_day=0))):
        one, seen = await joined()
        one.submit(UserMessage("Hello"))
        await one.at_rest()
        assert isinstance(seen.events[-1], TurnEnded)
        assert seen.events[-1].outcome == "error"
        await one.close()


async def test_an_exchange_that_goes_away_is_an_error_for_whoever_waits(home: Path) -> None:
    async with exchange(home, a=asking(home)):
        one, seen = await joined()
        one.submit(UserMessage("Go"))
        await seen.until(ToolRequested)
    with pytest.raises(AgentFailed, match="The exchange closed the connection"):
        await one.at_rest()
    await one.close()
    with pytest.raises(ConfigError, match="No exchange is running here"):
        await joined()


async def test_whoever_waits_for_an_exchange_that_is_stopped_hears_so(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with exchange(home, a=echo(home)):
        one, seen = await joined()
        monkeypatch.setattr(local_exchange, "LOOK_SECONDS", 0.0)
        monkeypatch.setattr(local_socket, "stopped_peer", lambda connection: 42)
        one.submit(UserMessage("Hello"))
        with pytest.raises(ConfigError, match=r"stopped, as process 42\."):
            await one.at_rest()
        assert isinstance(await seen.until(TurnEnded), TurnEnded)
        await one.close()
        with pytest.raises(ConfigError, match="stopped"):
            await joined()


async def test_the_turn_of_an_exchange_that_goes_away_has_an_end_here(home: Path) -> None:
    async with exchange(home, a=asking(home)):
        one, seen = await joined()
        one.submit(UserMessage("Go"))
        await seen.until(ToolRequested)
    ended = await seen.until(TurnEnded)
    assert isinstance(ended, TurnEnded)
    assert ended.outcome in ("cancelled", "unknown")
    await one.close()


async def test_who_types_and_who_answers_is_shown_to_the_others(home: Path) -> None:
    async with exchange(home, a=asking(home)) as running:
        one, seen = await joined()
        live = await running.switchboard.find("s")
        await running.switchboard.submit(live, UserMessage("Go", sender="ana"))
        await seen.until(ToolRequested)
        (request,) = one.waiting
        live.session.answer(request.call_id, Approve(), "ben")
        await seen.until(TurnEnded)
        assert [event.message for event in seen.events if isinstance(event, Notice)] == ["ana: Go", "Approved by ben."]
        await one.close()


async def test_a_terminal_that_did_not_read_hears_what_it_missed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with exchange(home, a=asking(home)) as running:
        servers: list[ChatServer] = []
        monkeypatch.setattr(ChatServer, "show", lambda server, envelopes: servers.append(server))
        one, seen = await joined()
        one.submit(UserMessage("Go"))
        live = await running.switchboard.find("s")
        async for _ in live.session.subscribe(0):
            if live.session.waiting:
                break
        live.session.answer(live.session.waiting[0].call_id, Approve(), "ana")
        await live.session.at_rest()
        servers[0].missed(7)
        await seen.until(TurnEnded)
        await one.at_rest()
        assert any("7 events were left out" in event.message for event in seen.events if isinstance(event, Notice))
        await one.close()


@pytest.mark.process
async def test_chat_asks_an_agent_of_the_exchange(home: Path) -> None:
    async with exchange(home, helper=echo(home)) as running:

        def chat(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "trunkline", "chat", "helper", "--attach", *arguments]
            return subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE_SECONDS,
                check=False,
            )

        done = await asyncio.to_thread(chat, "-p", "Hello", "--session-id", "mine")
        assert (done.returncode, done.stdout) == (0, "Hello\n"), done.stderr
        assert "trunkline chat helper --attach --resume mine" in done.stderr
        done = await asyncio.to_thread(chat, "-p", "Again", "--resume", "mine", "--json")
        said = json.loads(done.stdout)
        assert (said["session"], said["agent"], said["text"], said["outcome"]) == ("mine", "helper", "Again", "success")
        assert [row.id for row in await running.switchboard.rows()] == ["mine"]
        # There is nothing to say, and no terminal to say it in.
        assert (await asyncio.to_thread(chat)).returncode == 2
    for arguments in (("-p", "Hello"), ()):
        done = await asyncio.to_thread(chat, *arguments)
        assert done.returncode == 1
        assert "No exchange is running here" in done.stderr


@pytest.mark.process
async def test_what_somebody_elses_turn_asks_is_asked_at_the_prompt_too_and_what_was_typed_stays(home: Path) -> None:
    async with exchange(home, helper=asking(home)) as running:
        live = await running.switchboard.open("helper", "mine", by="ana")
        with ChatTerminal("helper", "--attach", "--session-id", "mine") as chat:
            await asyncio.to_thread(chat.wait_for_prompt)
            chat.type("half a")
            await asyncio.to_thread(chat.sees, "half a")
            await running.switchboard.submit(live, UserMessage("Go", sender="ana"))
            await asyncio.to_thread(chat.sees, "ana: Go", "make", "Allow?")
            chat.type("y")
            await asyncio.to_thread(chat.sees, "after", "half a")
            await live.written()
            (row,) = await running.switchboard.approvals.found()
            assert (row.state, row.decided_by) == ("approved", "local")
            chat.type(" word" + ENTER)
            await asyncio.to_thread(chat.sees, "half a word", "Allow?")
            chat.type("y")
            await asyncio.to_thread(chat.until, lambda: chat.terminal.screen.count("after") == 2)
            await asyncio.to_thread(chat.wait_for_prompt)
            await running.switchboard.remove("mine")
            await asyncio.to_thread(chat.sees, "The session was removed.")


async def test_what_was_said_here_is_awaited_beyond_the_ends_of_others_turns(home: Path) -> None:
    async with exchange(home, a=asking(home)) as running:
        one, seen = await joined()
        live = await running.switchboard.find("s")
        await running.switchboard.submit(live, UserMessage("Go", sender="ana"))
        await seen.until(ToolRequested)
        awaited = [one.is_awaited]
        one.submit(UserMessage("Me, too"))
        for turn in (1, 2):
            await until(lambda turn=turn: one.waiting and one.turn == turn)  # type: ignore[misc]
            awaited.append(one.is_awaited)
            one.answer(one.waiting[0].call_id, Approve())
        await one.at_rest()
        assert [*awaited, one.is_awaited] == [False, True, True, False]
        await one.close()


@pytest.mark.process
async def test_a_terminal_that_cannot_move_is_asked_as_well_and_ends_when_it_is_told_to(home: Path) -> None:
    async with exchange(home, helper=asking(home)) as running:
        live = await running.switchboard.open("helper", "mine", by="ana")
        with ChatTerminal("helper", "--attach", "--session-id", "mine", TERM="dumb") as chat:
            await asyncio.to_thread(chat.wait_for_prompt)
            await running.switchboard.submit(live, UserMessage("Go", sender="ana"))
            await asyncio.to_thread(chat.sees, "ana: Go", "Allow?")
            chat.type("y")
            await asyncio.to_thread(chat.sees, "after")
            await asyncio.to_thread(chat.wait_for_prompt)
            chat.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(chat.process.wait, PATIENCE_SECONDS) == 128 + signal.SIGTERM
