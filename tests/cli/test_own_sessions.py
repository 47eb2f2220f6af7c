"""Sessions of one user in one process: kept as `trunkline agent` keeps them, and ended with their last client."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.support.fake_agent import FakeAgent
from tests.support.keeper import FAKE
from tests.support.loop import until
from tests.support.own_sessions import own_sessions
from trunkline.base import paths
from trunkline.core.agent import Approve, OpenRequest
from trunkline.core.events import Envelope, TextDelta, ToolRequested, TurnEnded, TurnStarted, UserMessage
from trunkline.core.faults import (
    AgentBusy,
    ConfigError,
    SessionDamaged,
    SessionExists,
    SessionHeld,
    SessionNotFound,
    UnknownAgent,
)
from trunkline.core.keeper import SessionKeeper
from trunkline.core.turns import State
from trunkline.store.files import FileStore


def store() -> FileStore:
    return FileStore(paths.sessions_dir())


async def test_a_session_is_kept_for_the_next_process_under_the_id_that_the_client_chose(tmp_path: Path) -> None:
    async with own_sessions("echo") as keeper:
        kept: SessionKeeper = keeper
        seat = await kept.open("echo", "mine", workspace=str(tmp_path))
        assert (seat.session.id, seat.agent, seat.workspace, kept.is_shared) == ("mine", "echo", str(tmp_path), False)
        await seat.submit(UserMessage("Hello there"))
        await seat.session.at_rest()
        await seat.leave()
        await seat.leave()
        assert seat.session.status is State.CLOSED
    async with own_sessions("echo") as keeper:
        (known,) = await keeper.sessions()
        assert (known.id, known.agent, known.title, known.workspace) == ("mine", "echo", "Hello there", str(tmp_path))
        seat = await keeper.join("mine")
        assert seat.session.state.turns == 1
        said = [each.event for each in await keeper.read("mine") if isinstance(each, Envelope)]
        assert [event.message.text for event in said if isinstance(event, TurnStarted)] == ["Hello there"]


async def test_two_clients_share_a_session_and_it_ends_with_the_last_of_them() -> None:
    async with own_sessions() as keeper:
        one = await keeper.open(FAKE, "s")
        other = await keeper.join("s")
        assert one.session is other.session
        await one.submit(UserMessage("Go"))
        await until(lambda: keeper.fake.busy)
        keeper.fake.say(ToolRequested("c", "Bash", "exec", {}))
        await until(lambda: one.session.waiting)
        await one.leave()
        other.answer("c", Approve())
        keeper.fake.say(TurnEnded("success"))
        await other.session.at_rest()
        await other.leave()
        assert keeper.fake.closed
        again = await keeper.open(FAKE, "s")
        assert again.session is not other.session
        assert len(keeper.fakes) == 2


async def test_messages_wait_are_put_into_the_turn_or_are_refused_as_the_client_wants() -> None:
    async with own_sessions() as keeper:
        seat = await keeper.open(FAKE)
        mine = await seat.submit(UserMessage("One"))
        waiting = await seat.submit(UserMessage("Two"), "steer")
        with pytest.raises(AgentBusy):
            await seat.submit(UserMessage("Three"), "reject")
        seat.stop(waiting)
        await until(lambda: keeper.fake.busy)
        keeper.fake.say(TextDelta("Yes"), TurnEnded("success"))
        await seat.session.at_rest()
        seat.set_mode("yolo")
        assert (mine, waiting, seat.session.mode) == (1, 2, "yolo")
        assert [message.text for message in keeper.fake.heard] == ["One"]


async def test_who_is_not_there_is_told_with_a_suggestion() -> None:
    async with own_sessions("echo", "scripted:tour") as keeper:
        assert [each.name for each in await keeper.agents()] == ["echo", "scripted:tour"]
        with pytest.raises(UnknownAgent, match=r"There is no agent `ecko` here\. Did you mean `echo`"):
            await keeper.open("ecko")
        with pytest.raises(UnknownAgent, match=r"here\. The agents are `.+`\."):
            await keeper.open("gpt-4o")
        for unknown in ("nothing", "a/b"):
            with pytest.raises(SessionNotFound):
                await keeper.join(unknown)
            with pytest.raises(SessionNotFound):
                await keeper.read(unknown)
            assert await keeper.known(unknown) is None
        with pytest.raises(ConfigError, match="A session id must have"):
            await keeper.open("echo", "a/b")
        with pytest.raises(ConfigError, match="is not a directory"):
            await keeper.open("echo", workspace="/nowhere/at/all")
        assert await keeper.sessions() == []


async def test_a_session_of_another_agent_or_directory_is_refused_with_the_reason(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for place in (here, there):
        place.mkdir()
    async with own_sessions("echo", "scripted:tour") as keeper:
        for leaves in (False, True):
            seat = await keeper.open("echo", "s", workspace=str(here))
            if leaves:
                await seat.leave()
            with pytest.raises(SessionExists, match="Session `s` is with the agent `echo`"):
                await keeper.open("scripted:tour", "s")
            with pytest.raises(ConfigError, match=f"Session `s` belongs to the directory `{here}`"):
                await keeper.open("echo", "s", workspace=str(there))
    async with own_sessions("scripted:tour") as keeper:
        known = await keeper.known("s")
        assert known is not None
        assert known.agent == "echo"
        assert await keeper.sessions() == []
        with pytest.raises(ConfigError, match=r"is with the agent `echo`, who is not here\. Name it with `--agent`"):
            await keeper.join("s")
    os.rmdir(here)
    async with own_sessions("echo") as keeper:
        with pytest.raises(ConfigError, match="is not a directory"):
            await keeper.join("s")


async def test_an_agent_that_calls_itself_otherwise_finds_its_sessions() -> None:
    async with own_sessions("scripted:tour") as keeper:
        seat = await keeper.open("scripted:tour", "s")
        await seat.submit(UserMessage("Go"))
        await seat.session.at_rest()
        await seat.leave()
    assert [info.agent for info in store().list()] == ["scripted"]
    async with own_sessions("scripted:tour") as keeper:
        assert [each.agent for each in await keeper.sessions("scripted:tour")] == ["scripted:tour"]
        assert (await keeper.join("s")).agent == "scripted:tour"


async def test_lists_begin_with_the_newest_and_go_on_before_the_last() -> None:
    async with own_sessions("echo") as keeper:
        for name in ("one", "two", "three"):
            seat = await keeper.open("echo", name)
            await seat.submit(UserMessage(f"This is {name}"))
            await seat.session.at_rest()
        assert [each.id for each in await keeper.sessions(limit=2)] == ["three", "two"]
        assert [each.title for each in await keeper.sessions(before="two")] == ["This is one"]
        with pytest.raises(SessionNotFound):
            await keeper.sessions(before="nothing")


async def test_a_fork_goes_on_from_where_it_was_made() -> None:
    async with own_sessions("echo") as keeper:
        seat = await keeper.open("echo", "s")
        for text in ("One", "Two"):
            await seat.submit(UserMessage(text))
            await seat.session.at_rest()
        ends = [each.seq for each in await keeper.read("s") if isinstance(each, Envelope) and _is_end(each)]
        forked = await keeper.fork("s", ends[0])
        assert (forked.agent, forked.title) == ("echo", "One")
        assert (await keeper.join(forked.id)).session.state.turns == 1
        with pytest.raises(ConfigError, match="has no event 999"):
            await keeper.fork("s", 999)
        with pytest.raises(SessionNotFound):
            await keeper.fork("nothing")


def _is_end(envelope: Envelope) -> bool:
    return isinstance(envelope.event, TurnEnded)


async def test_a_session_for_one_turn_leaves_nothing_behind() -> None:
    async with own_sessions() as keeper:
        seat = await keeper.open(FAKE, "s", passing=True)
        brought = await seat.keep_file("picture.png", b"\x89PNG")
        known = await keeper.known("s")
        assert known is not None
        await seat.submit(UserMessage("Look", (brought,)))
        await until(lambda: keeper.fake.busy)
        await seat.leave()
        assert keeper.fake.closed
        assert await keeper.known("s") is None
        assert not await asyncio.to_thread(os.path.exists, brought)
    assert store().list() == []


async def test_files_that_come_to_several_sessions_at_once_are_all_there() -> None:
    async with own_sessions() as keeper:
        seats = [await keeper.open(FAKE, passing=True) for _ in range(4)]
        brought = await asyncio.gather(*(seat.keep_file("a.txt", b"a") for seat in seats))
        assert [await asyncio.to_thread(os.path.exists, path) for path in brought] == [True] * 4
        await seats[0].leave()
        assert [await asyncio.to_thread(os.path.exists, path) for path in brought] == [False, True, True, True]
        for seat in seats[1:]:
            await seat.leave()
    assert not await asyncio.to_thread(os.path.exists, os.path.dirname(os.path.dirname(brought[0])))


async def test_where_sessions_are_not_kept_they_live_as_long_as_somebody_is_in_them() -> None:
    async with own_sessions("echo", no_session=True) as keeper:
        seat = await keeper.open("echo", "s")
        await seat.submit(UserMessage("Hello"))
        await seat.session.at_rest()
        assert (await keeper.join("s")).session is seat.session
        assert [each.event for each in await keeper.read("s") if isinstance(each, Envelope) and _is_end(each)]
    assert store().list() == []


async def test_a_removed_session_is_gone_with_what_was_brought_to_it_and_its_clients_hear_of_it() -> None:
    heard: list[str] = []
    async with own_sessions("echo") as keeper:
        seat = await keeper.open("echo", "s", removed=lambda: heard.append("removed"))
        brought = await seat.keep_file("a.txt", b"a")
        await keeper.remove("s")
        assert heard == ["removed"]
        with pytest.raises(SessionNotFound):
            await seat.submit(UserMessage("Anybody?"))
        await seat.leave()
        with pytest.raises(SessionNotFound):
            await keeper.remove("s")
        assert not await asyncio.to_thread(os.path.exists, brought)
    assert store().list() == []


async def test_a_damaged_session_is_told_as_such_and_is_not_another_one() -> None:
    log = store().create("s", os.getcwd(), "echo")
    log.close()
    (path,) = Path(paths.sessions_dir()).glob("*.log")  # noqa: ASYNC240  (a file of ours, in a test)
    await asyncio.to_thread(path.write_bytes, b"nothing of ours\n")
    async with own_sessions("echo") as keeper:
        with pytest.raises(SessionDamaged):
            await keeper.join("s")
        with pytest.raises(SessionDamaged):
            await keeper.read("s")
        assert await keeper.known("s") is None


async def test_one_that_another_process_has_open_is_waited_for_and_then_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trunkline.store.waiting.HELD_SECONDS", 0.0)
    monkeypatch.setattr("trunkline.store.waiting.until_free.__defaults__", (0.0,))
    held = store().create("s", os.getcwd(), "echo")
    async with own_sessions("echo") as keeper:
        with pytest.raises(SessionHeld):
            await keeper.join("s")
    held.close()


class SlowAgent(FakeAgent):
    """One that never begins."""

    async def open(self, request: OpenRequest) -> FakeAgent:
        self.busy = True
        try:
            await asyncio.Event().wait()
        finally:
            self.closed = True
        raise AssertionError


async def test_a_client_that_gives_up_while_the_agent_begins_leaves_nothing_open() -> None:
    async with own_sessions() as keeper:
        slow = SlowAgent()
        keeper._make = lambda name, workspace: slow
        opening = asyncio.create_task(keeper.open(FAKE, "s"))
        await until(lambda: slow.busy)
        opening.cancel()
        await asyncio.wait({opening})
        assert slow.closed
        assert store().list() == []


async def test_the_end_of_the_process_ends_what_is_open_or_being_opened_and_nothing_is_opened_after_it() -> None:
    async with own_sessions() as keeper:
        seat = await keeper.open(FAKE, "open")
        await seat.submit(UserMessage("Go"))
        await until(lambda: keeper.fake.busy)
        first, slow = keeper.fake, SlowAgent()
        keeper._make = lambda name, workspace: slow
        opening = asyncio.create_task(keeper.open(FAKE, "opening"))
        await until(lambda: slow.busy)
        await keeper.close()
        assert first.closed
        assert slow.closed
        with pytest.raises(asyncio.CancelledError):
            await opening
        with pytest.raises(AgentBusy):
            await keeper.join("open")
        await seat.leave()
    (info,) = store().list()
    assert info.id == "open"


async def test_a_model_of_this_machine_that_is_named_is_offered_once() -> None:
    async with own_sessions("model:mock", "echo", models=True) as keeper:
        offered = [(each.name, each.is_model) for each in await keeper.agents()]
        assert offered[:2] == [("model:mock", True), ("echo", False)]
        assert len(offered) == len(set(offered))


async def test_the_models_of_this_machine_answer_where_they_are_offered() -> None:
    async with own_sessions("echo", models=True) as keeper:
        offered = {each.name: each.is_model for each in await keeper.agents()}
        assert (offered["echo"], offered["model:mock"]) == (False, True)
        seat = await keeper.open("model:mock", "s")
        await seat.submit(UserMessage("Hello"))
        await seat.session.at_rest()
        assert [each.agent for each in await keeper.sessions()] == ["model:mock"]
    async with own_sessions("echo") as keeper:
        with pytest.raises(UnknownAgent):
            await keeper.open("model:mock")


async def test_what_an_agent_can_do_is_known_before_its_first_session_but_for_the_coding_agent() -> None:
    async with own_sessions("echo", "scripted:tour", "coder", "nope") as keeper:
        for name in ("echo", "scripted:tour"):
            can = await keeper.capabilities_of(name)
            assert can is not None
            assert (can.images, can.mcp) == (False, False)
        assert await keeper.capabilities_of("coder") is None
        assert await keeper.capabilities_of("nope") is None


async def test_there_is_no_session_without_a_name() -> None:
    async with own_sessions("echo") as keeper:
        assert await keeper.known("") is None
