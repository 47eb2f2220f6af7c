"""`trunkline chat --attach` with somebody at the keyboard: a session that others are in, too."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal.chat_terminal import CTRL_D, ENTER, ChatTerminal
from tests.support.attached import asking, echo, settings
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.events import UserMessage
from trunkline.exchange.attach import attach_socket
from trunkline.exchange.exchange import Exchange

pytestmark = pytest.mark.process


class Beside:
    """An exchange in a thread of its own, with its sockets."""

    def __init__(self, exchange: Exchange, loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
        self.exchange = exchange
        self._loop = loop
        self._stop = stop

    def do(self, work: Callable[[Exchange], Any]) -> Any:
        """Something in its loop."""
        return asyncio.run_coroutine_threadsafe(work(self.exchange), self._loop).result(PATIENCE_SECONDS)

    def say(self, text: str, sender: str, session: str = "s") -> None:
        async def said(exchange: Exchange) -> None:
            board = exchange.switchboard
            await board.submit(await board.find(session), UserMessage(text, sender=sender))

        self.do(said)

    def end(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)


@contextmanager
def running(home: Path, **agents: Any) -> Iterator[Beside]:
    """Sessions `s` with the first agent, and `t` with the second."""
    (home / "exchange").mkdir()
    begun: list[Beside] = []
    ready = threading.Event()

    async def serve() -> None:
        from trunkline.base import asgi, local_socket
        from trunkline.base.exchange_home import API_SOCKET
        from trunkline.exchange.api.app import application

        stop = asyncio.Event()
        async with Exchange.opened(settings(home, **agents)) as exchange, attach_socket(exchange):
            for id, agent in zip("st", agents, strict=False):
                await exchange.switchboard.open(agent, id)
            app = application(exchange, local=True)
            with local_socket.listening(str(home / "exchange"), API_SOCKET) as listening:
                begun.append(Beside(exchange, asyncio.get_running_loop(), stop))
                ready.set()
                await asgi.serve_on(app, listening, stop, stopping=app.state.streams.close)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(PATIENCE_SECONDS)
        yield begun[0]
    finally:
        begun[0].end()
        thread.join(PATIENCE_SECONDS)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    return tmp_path


def test_what_waits_already_is_asked_when_one_attaches_and_who_types_is_shown(home: Path) -> None:
    with running(home, a=asking(home)) as beside:
        beside.say("Go", "ana")
        with ChatTerminal("--attach", "--resume", "s") as chat:
            chat.sees("ana: Go", "make", "Allow?")
            chat.type("y")
            chat.sees("after")
            chat.wait_for_prompt()
            chat.type("half a li")
            beside.say("Once more", "ben")
            # What somebody else asked for is asked here, too, and what was typed stays.
            chat.sees("ben: Once more", "Allow?")
            chat.type("n" + ENTER)
            chat.until(lambda: chat.last_line.endswith("half a li"))


def test_the_sessions_of_the_exchange_are_listed_and_resumed(home: Path) -> None:
    with running(home, a=echo(home), b=echo(home)) as beside:
        with ChatTerminal("a", "--attach", "--session-id", "first") as chat:
            chat.say("Is the bridge open?")
            chat.sees("Is the bridge open?")
            chat.wait_for_prompt()
        with ChatTerminal("a", "--attach", "--session-id", "s") as chat:
            chat.say("/sessions")
            chat.sees("a: Is the bridge open?")
            chat.sees("(this one)", "b: t")
            chat.say("/resume t")
            chat.sees("Session t, 0 turns so far.")
            chat.say("Hello")
            chat.sees("Hello")
            chat.wait_for_prompt()
            chat.type(CTRL_D)
            assert chat.leaves() == 0
            assert "trunkline chat b --attach --resume t" in chat.terminal.screen
        assert beside.do(turns_of_t) == 1


def test_a_session_that_is_resumed_shows_its_last_turn_and_its_id_is_completed(home: Path) -> None:
    with running(home, a=echo(home), b=echo(home)) as beside:
        beside.do(talk_about_notes)
        with ChatTerminal("a", "--attach", "--session-id", "s") as chat:
            chat.wait_for_prompt()
            chat.type("/resume rel")
            chat.sees("release-notes")
            chat.type("\t")
            chat.sees("/resume release-notes")
            # The first one takes the completion, the second one sends.
            chat.type(ENTER)
            chat.type(ENTER)
            chat.sees("Session release-notes, 2 turns so far.", "What came last?")
            assert "What was first?" not in chat.terminal.screen
            chat.wait_for_prompt()


async def talk_about_notes(exchange: Exchange) -> None:
    live = await exchange.switchboard.open("b", "release-notes")
    for text in ("What was first?", "What came last?"):
        await exchange.switchboard.submit(live, UserMessage(text, sender="ana"))
    await live.session.at_rest()


async def turns_of_t(exchange: Exchange) -> int:
    return (await exchange.switchboard.find("t")).session.state.turns


def test_an_exchange_that_goes_away_ends_the_chat_at_its_prompt(home: Path) -> None:
    with running(home, a=echo(home)) as beside:
        with ChatTerminal("--attach") as chat:
            chat.wait_for_prompt()
            beside.end()
            assert chat.leaves() == 1
            assert chat.terminal.screen.count("The exchange closed the connection") == 1


def test_a_session_that_was_removed_is_not_offered_to_go_on_with(home: Path) -> None:
    with running(home, a=echo(home)) as beside, ChatTerminal("--attach", "--resume", "s") as chat:
        chat.say("Hello")
        chat.sees("Hello")
        chat.wait_for_prompt()
        beside.do(lambda exchange: exchange.switchboard.remove("s"))
        assert chat.leaves() == 1
        assert "The session was removed." in chat.terminal.screen
        assert "Go on with" not in chat.terminal.screen
