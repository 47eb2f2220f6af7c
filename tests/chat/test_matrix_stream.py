"""The stream of events: nothing lost, nothing taken too early, and no room that holds up the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support import loop
from trunkline.chat.matrix.client import Homeserver, MatrixRefused
from trunkline.chat.matrix.events import Happened, MatrixMessage
from trunkline.chat.matrix.state import StateKeeper
from trunkline.chat.matrix.stream import LONGEST_WAIT_SECONDS, MOST_MISSED, TRIES, SyncStream
from trunkline.chat.platform import NotNow, TokenRefused, Unclear
from trunkline.core.faults import ConfigError

pytestmark = pytest.mark.virtual_time

ME = "@bot:here"
ANN = "@ann:here"


class Requests:
    """Describes a request by its name and arguments."""

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        return lambda *arguments, **named: (name, *arguments[1:])


class FakeServer:
    """Answers each kind of request from a list; the last answer stays, and an exception is raised."""

    def __init__(self, **answers: list[Any]) -> None:
        self.api = Requests()
        self.closed = asyncio.Event()
        self.answers = answers
        self.asked: list[tuple[Any, ...]] = []

    async def call(self, request: tuple[Any, ...], *, seconds: float = 0) -> dict[str, Any]:
        self.asked.append(request)
        answers = self.answers.get(request[0])
        if not answers:
            # No news, for as long as anybody waits.
            await asyncio.Event().wait()
            raise AssertionError
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return cast("dict[str, Any]", answer)

    def requests(self, name: str) -> list[tuple[Any, ...]]:
        return [request for request in self.asked if request[0] == name]


def text(body: str) -> dict[str, Any]:
    content = {"msgtype": "m.text", "body": body}
    return {"type": "m.room.message", "event_id": f"${body}", "sender": ANN, "content": content}


def news(following: str, *bodies: str, room: str = "!r", gap: str | None = None) -> dict[str, Any]:
    timeline = {"events": [text(body) for body in bodies], "limited": gap is not None, "prev_batch": gap}
    return {"next_batch": following, "rooms": {"join": {room: {"timeline": timeline}}}}


def invitation(following: str, sender: str) -> dict[str, Any]:
    member = {"type": "m.room.member", "state_key": ME, "sender": sender, "content": {"membership": "invite"}}
    return {"next_batch": following, "rooms": {"invite": {"!new": {"invite_state": {"events": [member]}}}}}


class Opened:
    def __init__(self, server: FakeServer, keeper: StateKeeper, events: AsyncIterator[Happened]) -> None:
        self.server = server
        self.keeper = keeper
        self._events = events

    async def texts(self, number: int) -> list[str]:
        found = [await anext(self._events) for _ in range(number)]
        return [item.text for item in found if isinstance(item, MatrixMessage)]

    def begin(self) -> asyncio.Future[Happened | None]:
        """Ask for what comes next."""
        waiting: asyncio.Future[Happened | None] = asyncio.ensure_future(cast("Any", anext(self._events, None)))
        return waiting

    async def waiting(self) -> asyncio.Future[Happened | None]:
        """Ask for what comes next, until there is no more news."""
        waiting = self.begin()
        await loop.until(lambda: not any(self.server.answers.values()))
        for _ in range(20):
            await asyncio.sleep(0)
        return waiting

    async def end(self) -> None:
        """Wait until there is no more news, and close."""
        waiting = await self.waiting()
        self.server.closed.set()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


@asynccontextmanager
async def opened(tmp_path: Path, since: str = "s0", renew: Any = None, **answers: list[Any]) -> AsyncIterator[Opened]:
    keeper = StateKeeper.file(str(tmp_path))
    keeper.keep(since=since)
    server = FakeServer(**answers)

    async def refuse() -> None:
        raise ConfigError("no other token")

    stream = SyncStream(
        cast("Homeserver", server), keeper, ME, may_invite=lambda sender: sender == ANN, renew=renew or refuse
    )
    async with aclosing(stream.events()) as events:
        yield Opened(server, keeper, events)


async def test_a_token_is_kept_when_what_came_with_it_was_taken_and_not_before(tmp_path: Path) -> None:
    async with opened(tmp_path, sync=[news("s1", "a", "b"), news("s2", "c")]) as stream:
        assert await stream.texts(2) == ["a", "b"]
        assert StateKeeper.file(str(tmp_path)).state.since == "s0"
        assert await stream.texts(1) == ["c"]
        assert StateKeeper.file(str(tmp_path)).state.since == "s1"


async def test_who_begins_without_a_token_begins_now(tmp_path: Path) -> None:
    async with opened(tmp_path, since="", sync=[news("s1", "old"), news("s2", "new")]) as stream:
        assert await stream.texts(1) == ["new"]
        assert [request[1] for request in stream.server.requests("sync")] == [None, "s1"]


async def test_what_one_answer_does_not_hold_is_asked_for_and_comes_first(tmp_path: Path) -> None:
    pages = [{"chunk": [text("c"), text("b")], "end": "p2"}, {"chunk": [text("a")]}]
    async with opened(tmp_path, sync=[news("s1", "d", gap="p1")], room_messages=pages) as stream:
        assert await stream.texts(4) == ["a", "b", "c", "d"]
        assert [request[2:4] for request in stream.server.requests("room_messages")] == [("p1", "s0"), ("p2", "s0")]


async def test_a_server_that_pages_in_circles_is_not_followed(tmp_path: Path) -> None:
    pages = [{"chunk": [text("x")] * 100, "end": f"p{number % 2}"} for number in range(100)]
    async with opened(tmp_path, sync=[news("s1", "last", gap="p9")], room_messages=pages) as stream:
        assert (await stream.texts(MOST_MISSED + 1))[-1] == "last"


async def test_a_gap_before_our_coming_is_none(tmp_path: Path) -> None:
    answer = news("s1", "old", gap="p1")
    joined = {"type": "m.room.member", "state_key": ME, "content": {"membership": "join"}}
    answer["rooms"]["join"]["!r"]["timeline"]["events"] += [joined, text("new")]
    async with opened(tmp_path, sync=[answer]) as stream:
        assert await stream.texts(1) == ["new"]
        assert not stream.server.requests("room_messages")


async def test_it_goes_on_after_every_kind_of_failure_and_waits_longer_each_time(tmp_path: Path) -> None:
    failures = [NotNow("no connection"), Unclear("500"), MatrixRefused("no", 403, "M_FORBIDDEN"), {"rooms": {}}]
    async with opened(tmp_path, sync=[*failures * 3, news("s1", "a")]) as stream:
        assert await stream.texts(1) == ["a"]
        assert 2 * LONGEST_WAIT_SECONDS < asyncio.get_running_loop().time() < 12 * LONGEST_WAIT_SECONDS


async def test_it_waits_as_long_as_the_server_asks_for(tmp_path: Path) -> None:
    async with opened(tmp_path, sync=[NotNow("slowly", 7.0), news("s1", "a")]) as stream:
        await stream.texts(1)
        assert asyncio.get_running_loop().time() == pytest.approx(7.0)


async def test_a_token_that_the_server_does_not_know_is_given_up(tmp_path: Path) -> None:
    answers = [MatrixRefused("unknown token", 400, "M_UNKNOWN"), news("n1", "old"), news("n2", "new")]
    async with opened(tmp_path, sync=answers) as stream:
        assert await stream.texts(1) == ["new"]


async def test_a_refused_access_token_is_renewed_or_ends_it(tmp_path: Path) -> None:
    renewed = []
    away: list[ConfigError] = []

    async def renew() -> None:
        if away:
            raise away.pop()
        renewed.append(True)

    async with opened(tmp_path, sync=[TokenRefused("401"), news("s1", "a")], renew=renew) as stream:
        assert await stream.texts(1) == ["a"]
        assert renewed == [True]
    refused = [TokenRefused("401"), TokenRefused("401"), news("s2", "b")]
    away.append(ConfigError("Nobody answers.", retryable=True))
    async with opened(tmp_path, sync=refused, renew=renew) as stream:
        assert await stream.texts(1) == ["b"]
    async with opened(tmp_path, sync=[TokenRefused("401")]) as stream:
        with pytest.raises(ConfigError, match="no other token"):
            await stream.texts(1)


@pytest.mark.parametrize(("sender", "action"), [(ANN, "join"), ("@eve:here", "room_leave")])
async def test_only_those_who_may_are_followed_into_a_room(tmp_path: Path, sender: str, action: str) -> None:
    answers: dict[str, Any] = {action: [{}], "sync": [invitation("s1", sender), news("s2", "a")]}
    async with opened(tmp_path, **answers) as stream:
        await stream.texts(1)
        assert [request for request in stream.server.asked if request[0] != "sync"] == [(action, "!new")]


async def test_a_room_that_cannot_be_joined_does_not_hold_up_the_others(tmp_path: Path) -> None:
    broken = [Unclear("502")] * TRIES
    async with opened(tmp_path, sync=[invitation("s1", ANN), news("s2", "a")], join=broken) as stream:
        assert await stream.texts(1) == ["a"]
        assert len(stream.server.requests("join")) == TRIES


async def test_a_lost_network_in_the_middle_of_a_gap_loses_nothing(tmp_path: Path) -> None:
    pages = [*[NotNow("no connection")] * 20, {"chunk": [text("a")]}]
    async with opened(tmp_path, sync=[news("s1", "b", gap="p1")], room_messages=pages) as stream:
        assert await stream.texts(2) == ["a", "b"]


async def test_closing_ends_it_while_it_waits(tmp_path: Path) -> None:
    async with opened(tmp_path, sync=[NotNow("no connection", 1e6)]) as stream:
        waiting = asyncio.ensure_future(stream.texts(1))
        await loop.until(lambda: not stream.server.answers["sync"])
        stream.server.closed.set()
        with pytest.raises(StopAsyncIteration):
            await waiting


async def test_news_without_anything_in_it_move_the_token_on(tmp_path: Path) -> None:
    async with opened(tmp_path, sync=[{"next_batch": "s1"}, {"next_batch": "s2"}]) as stream:
        await stream.end()
        assert stream.keeper.state.since == "s2"


async def test_a_cancellation_while_the_connection_closes_is_not_forgotten(tmp_path: Path) -> None:
    for passes in range(8):
        async with opened(tmp_path, sync=[NotNow("busy", 60.0)]) as stream:
            waiting = await stream.waiting()
            stream.server.closed.set()
            for _ in range(passes):
                await asyncio.sleep(0)
            was_waiting = waiting.cancel()
            await asyncio.wait({waiting})
            assert waiting.cancelled() is was_waiting, passes


async def test_a_cancellation_while_a_pause_ends_is_not_forgotten(tmp_path: Path) -> None:
    for passes in range(40):
        async with opened(tmp_path, sync=[NotNow("busy", 0.0) for _ in range(100)]) as stream:
            waiting = stream.begin()
            for _ in range(passes):
                await asyncio.sleep(0)
            assert waiting.cancel()
            await asyncio.wait({waiting})
            assert waiting.cancelled(), passes
