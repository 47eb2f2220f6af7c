"""Sessions that are opened, joined, left, let go of, and taken up again by the next process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support import simulated
from tests.support.exchange_world import CommandedAgent, World
from tests.support.loop import until
from trunkline.core.agent import Approve, Deny
from trunkline.core.events import Envelope, ModeChanged, TurnStarted, UserMessage
from trunkline.core.faults import AgentBusy, AgentFailed, ConfigError, SessionDamaged, SessionExists, SessionNotFound
from trunkline.core.turns import State
from trunkline.exchange.acts import Act
from trunkline.exchange.approvals import AlreadyDecided
from trunkline.exchange.directory import FIRST_DELAY_MS
from trunkline.exchange.messages import QueuedMessage
from trunkline.exchange.session_rows import SessionRow, SessionRows
from trunkline.exchange.waking import WOKEN_AT_ONCE
from trunkline.store.database import DatabaseGone
from trunkline.store.filelog import FileLog
from trunkline.store.files import FileStore


async def test_messages_are_answered_in_order_and_the_same_id_is_one_message(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        turns = await asyncio.gather(*(life.say(live, f"say {n}", f"m{n % 5}") for n in range(20)))
        assert sorted(set(turns)) == [1, 2, 3, 4, 5]
        assert all(turns[n] == turns[n % 5] for n in range(20))
        await life.rest(live)
        started = [
            (item.turn, item.event.message.id) for item in world.log("s1") if isinstance(item.event, TurnStarted)
        ]
        assert started == sorted((turns[n], f"m{n}") for n in range(5))
    assert world.ends("s1") == ["success"] * 5
    async with world.living() as life:
        assert await life.say(await life.switchboard.find("s1"), "say 0", "m0") == turns[0]
    assert world.ends("s1") == ["success"] * 5


async def test_fifty_who_open_the_same_session_at_once_get_the_same_one(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent, other=CommandedAgent())
    async with world.living() as life:
        found = await asyncio.gather(*(life.open() for _ in range(50)))
        assert len(set(map(id, found))) == 1
        assert agent.opened == 1
        with pytest.raises(SessionExists, match="with the agent `agent`"):
            await life.open(agent="other")
        assert not life.switchboard._doors._doors
    assert not agent.is_open


async def test_who_leaves_while_a_session_is_opened_or_a_message_taken_leaves_nothing_half_done(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        for passes in range(12):
            opening = asyncio.create_task(life.open(f"s{passes}"))
            for _ in range(passes):
                await asyncio.sleep(0)
            opening.cancel()
            await asyncio.wait({opening})
            live = await life.open(f"s{passes}")
            sending = asyncio.create_task(life.say(live, "say hello", "m1"))
            for _ in range(passes):
                await asyncio.sleep(0)
            sending.cancel()
            await asyncio.wait({sending})
            assert await life.say(live, "say hello", "m1") == 1
            await life.rest(live)
            assert world.ends(f"s{passes}") == ["success"]


async def test_a_message_in_a_turn_waits_is_steered_or_is_refused(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        assert await life.say(live, "wait", "m1") == 1
        await until(lambda: agent.heard)
        assert await life.say(live, "say later", "m2") == 2
        assert await life.say(live, "by the way", "m3", when="steer") == 1
        assert await life.say(live, "by the way", "m3", when="steer") == 1
        with pytest.raises(AgentBusy):
            await life.say(live, "say never", "m4", when="reject")
        agent.gate.set()
        await life.rest(live)
        # A refused one may come again.
        assert await life.say(live, "say now", "m4", when="reject") == 3
        await life.rest(live)
    assert agent.heard == ["wait", "by the way", "say later", "say now"]
    assert world.ends("s1") == ["success"] * 3


async def test_one_who_cannot_be_steered_gets_the_message_as_the_next(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        assert await life.say(live, "say idle", when="steer") == 1
        await life.rest(live)
    assert world.ends("s1") == ["success"]


@pytest.mark.parametrize("kind", ["row", "log"])
async def test_a_message_that_was_taken_in_is_answered_once_wherever_the_process_died(
    tmp_path: Path, kind: str
) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        if kind == "row":
            # Died before the session heard of it.
            await life.switchboard.messages.take("s1", UserMessage("say hello", id="m1"), live.session.seq)
        else:
            # Died when the log had it, and the row did not know.
            assert await life.say(live, "say hello", "m1") == 1
            await life.rest(live)
            await life.database.write(lambda tx: tx.execute("UPDATE message SET state = 'queued', text = 'say hello'"))
    async with world.living() as life:
        live = await life.open()
        await life.rest(live)
        assert await life.say(live, "say hello", "m1") == 1
        assert not await life.switchboard.messages.sessions_waiting()
    assert agent.heard == ["say hello"]


async def test_a_turn_that_was_cut_off_has_its_end_after_the_next_start_without_anybody(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "say hello", "m1")
        await life.rest(live)
        await live.written()
        # As a process leaves it that dies in the middle: the log and the row know that it began.
        cut_off = UserMessage("say more", id="m2")
        live.session._recorder.emit(2, TurnStarted(cut_off))
        await live.written()
        await live.session.suspend()
        life.switchboard._live.clear()
    assert world.ends("s1") == ["success"]
    async with world.living():
        assert world.ends("s1") == ["success", "unknown"]


async def test_a_turn_that_was_cut_off_before_its_row_has_its_end_after_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()

        async def dies(*_: object) -> None:
            """No row of the turn is written any more."""

        def begins(message: UserMessage) -> int:
            """The log has its beginning."""
            live.session._recorder.emit(1, TurnStarted(message))
            return 1

        monkeypatch.setattr(live.meter, "turn_began", dies)
        monkeypatch.setattr(live.session, "submit", begins)
        assert await live.submit_once(UserMessage("say hello")) == 1
        await live.written()
        await live.session.suspend()
        life.switchboard._live.clear()
    assert world.ends("s1") == []
    async with world.living():
        assert world.ends("s1") == ["unknown"]


async def test_a_turn_that_was_expected_behind_another_is_still_expected_when_that_has_begun(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "wait")
        await until(lambda: agent.heard)
        await live.meter.turn_expected(live.session.latest + 1)
        await live.meter.turn_began(1)
        agent.gate.set()
        await life.rest(live)
        await live.written()
        assert await life.switchboard._tallies.uncounted() == [("s1", "agent")]


async def test_a_turn_that_was_expected_and_did_not_begin_wakes_nobody_and_is_forgotten(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        await (await life.open()).meter.turn_expected(1)
    assert agent.opened == 1
    async with world.living() as life:
        assert agent.opened == 1
        assert await life.switchboard._tallies.uncounted() == []


async def test_a_message_for_a_session_that_was_removed_is_not_taken(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        await life.switchboard.remove("s1")
        with pytest.raises(SessionNotFound, match=r"The session was removed\."):
            await live.submit_once(UserMessage("say hello"))


async def test_an_exchange_that_ends_in_good_order_keeps_who_is_asked_and_what_waits(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "tool t1; say done", "m1")
        await life.say(live, "say next", "m2")
        await until(lambda: world.asked)
    assert not agent.is_open
    async with world.living() as life:
        (pending,) = await life.switchboard.approvals.found("pending")
        assert (pending.call_id, pending.turn) == ("t1", 1)
        live = await life.switchboard.find("s1")
        assert live.session.status is State.AWAITING_APPROVAL
        await live.decide(pending, Approve(), "bob")
        await life.rest(live)
    assert agent.ran == {("s1", "t1"): 1}
    assert world.ends("s1") == ["success", "success"]
    assert agent.heard == ["tool t1; say done", "say next"]


async def test_a_call_of_an_agent_that_cannot_come_back_is_closed_with_the_reason(tmp_path: Path) -> None:
    agent = CommandedAgent(continues=False)
    world = World(tmp_path, agent=agent, other=(other := CommandedAgent()))
    async with world.living() as life:
        await life.say(await life.open(), "tool t1")
        await life.say(await life.open("s2", "other"), "tool t2")
        await until(lambda: len(world.asked) == 2)
        await life.switchboard.written()
    other.refuses = ConfigError("It has no key.")
    async with world.living() as life:
        closed = {each.call_id: each for each in await life.switchboard.approvals.found("closed")}
        assert "cannot come back: It has no key." in (closed["t2"].reason or "")
        assert closed["t1"].reason
        assert not await life.switchboard.approvals.found("pending")
        with pytest.raises(AlreadyDecided):
            await (await life.switchboard.find("s1")).decide(closed["t1"], Approve(), "bob")
    assert not agent.ran + other.ran


async def test_a_session_is_removed_while_it_works_and_its_id_can_be_had_again(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "tool t1", "m1")
        await life.say(live, "say later", "m2")
        await until(lambda: world.asked)
        await asyncio.gather(*(life.switchboard.remove("s1") for _ in range(3)), return_exceptions=True)
        assert not agent.is_open
        with pytest.raises(SessionNotFound):
            await life.switchboard.find("s1")
        with pytest.raises(SessionNotFound):
            await life.say(live, "say too late")
        with pytest.raises(SessionNotFound):
            await life.switchboard.remove("s1")
        assert not await life.switchboard.approvals.found()
        assert not await life.switchboard.rows()
        assert await life.say(await life.open(), "say anew", "m1") == 1
    assert agent.ran == {}


async def test_what_is_left_of_a_row_or_a_log_alone_can_be_used_and_removed(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        await life.open("row")
        await life.open("gone")
    for id in ("row", "gone"):
        FileStore(tmp_path / "sessions").remove(id)
    async with world.living() as life:
        assert await life.say(await life.switchboard.find("row"), "say hello") == 1
        await life.switchboard.remove("gone")
        assert [row.id for row in await life.switchboard.rows()] == ["row"]


async def nobody_uses_it(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    world.evict_seconds = 60.0
    world.simulate()
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "say one")
        await life.rest(live)
        async with life.switchboard.attached("s1"):
            await asyncio.sleep(200)
            assert life.switchboard.live("s1") is live
        await asyncio.sleep(200)
        assert life.switchboard.live("s1") is None
        assert not agent.is_open
        assert "let_go" in [act.what for act in await life.switchboard.acts.of("s1")]
        # Whoever still holds the old one reaches the new one.
        assert await life.say(live, "say two") == 2
        woken = await life.switchboard.find("s1")
        assert woken is not live
        await life.say(woken, "tool t1")
        await asyncio.sleep(200)
        assert world.asked
        assert life.switchboard.live("s1") is woken
    assert world.ends("s1") == ["success", "success"]


def test_a_session_that_nobody_uses_is_let_go_of_and_woken_by_the_next(tmp_path: Path) -> None:
    simulated.run(nobody_uses_it(tmp_path))


async def test_an_agent_that_cannot_be_opened_is_tried_again_later_and_leaves_no_session(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    agent.refuses = AgentFailed("It ended at once.")
    async with world.living() as life:
        with pytest.raises(AgentFailed, match="at once"):
            await life.open()
        agent.refuses = None
        with pytest.raises(AgentFailed, match=r"next try is in 0\.2 s"):
            await life.open()
        entry = life.switchboard.directory.find("agent")
        assert (entry.healthy, entry.last_error) == (False, "It ended at once.")
        assert not await life.switchboard.rows()
        world.now += 250
        await life.open()
        assert entry.healthy


async def test_a_session_that_its_agent_cannot_read_keeps_nobody_else_from_the_agent(tmp_path: Path) -> None:
    world = World(tmp_path, agent=(agent := CommandedAgent()))
    async with world.living() as life:
        await life.open("s1")
    agent.refuses = SessionDamaged("It was written by another one.")
    async with world.living() as life:
        with pytest.raises(SessionDamaged) as refused:
            await life.open("s1")
        assert refused.value.retry_after is None
        agent.refuses = None
        await life.open("s2")
        assert life.switchboard.directory.find("agent").last_error == ""


async def test_a_turn_that_crashes_ends_and_others_of_the_agent_do_not_notice(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        live, other = await life.open(), await life.open("s2")
        await life.say(live, "say a; crash")
        await life.say(live, "vanish")
        await life.rest(live)
        entry = life.switchboard.directory.find("agent")
        assert [entry.healthy] == [False]
        assert "told to" in entry.last_error or "stopped in the middle" in entry.last_error
        await life.open("s3")
        await life.say(other, "say fine")
        await life.rest(other)
        assert entry.healthy
        await life.say(live, "say better")
        await life.rest(live)
    assert world.ends("s1") == ["error", "error", "success"]
    assert world.ends("s2") == ["success"]


@pytest.mark.parametrize("id", ["", "x" * 201, "a/b", "..", "a\nb", "\ud800", "a\0b"])
async def test_an_id_that_cannot_be_kept_is_refused(tmp_path: Path, id: str) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        with pytest.raises(ConfigError, match="A session id must have"):
            await life.open(id)


async def test_halves_of_characters_in_a_message_are_replaced(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        assert await life.say(live, "say \ud800\0", "m\udfff") == await life.say(live, "say \ud800\0", "m\udfff") == 1
        await life.rest(live)
    assert agent.heard == ["say ?\0"]


async def test_lists_are_newest_first_and_go_on_before_an_id(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent(), other=CommandedAgent())
    async with world.living() as life:
        for number in range(5):
            world.now += number % 2
            await life.open(f"s{number}", "agent" if number < 4 else "other")
        ids = [row.id for row in await life.switchboard.rows()]
        assert ids == ["s4", "s3", "s2", "s1", "s0"]
        assert [row.id for row in await life.switchboard.rows(limit=2, before="s3")] == ["s2", "s1"]
        assert [row.id for row in await life.switchboard.rows("other")] == ["s4"]
        assert await life.switchboard.rows(before="nobody") == []


async def test_a_denied_call_is_not_run(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "tool t1")
        pending = await life.pending()
        await live.decide(pending, Deny("no"), "bob")
        await life.rest(live)
        (row,) = await life.switchboard.approvals.found()
        assert (row.state, row.decided_by) == ("denied", "bob")
    assert agent.ran == {}


async def test_the_newest_session_comes_first_also_within_a_millisecond(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        for id in ("b", "c", "a"):
            await life.open(id)
        world.now -= 1000
        await life.open("d")
        assert [row.id for row in await life.switchboard.rows()] == ["d", "a", "c", "b"]
        assert [row.id for row in await life.switchboard.rows(limit=2, before="a")] == ["c", "b"]


async def test_a_session_that_cannot_be_woken_does_not_cost_the_others_of_its_agent_their_questions(
    tmp_path: Path,
) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    ids = [f"s{number:02}" for number in range(2 * WOKEN_AT_ONCE)]
    async with world.living() as life:
        for id in ids:
            await life.say(await life.open(id), "tool t1")
        await until(lambda: len(world.asked) == len(ids))
    refused = iter([AgentFailed("It is ill.")])
    agent.refusing = lambda: next(refused, None)
    async with world.living() as life:

        async def waiting() -> list[str]:
            return [row.session for row in await life.switchboard.approvals.found("pending")]

        found = await waiting()
        assert len(found) == len(ids) - 1
        world.now += FIRST_DELAY_MS
        # Those that had to wait are tried again, and can be answered.
        await until(lambda: len(life.switchboard.at_work) == len(found))
        assert await waiting() == found


async def test_a_session_is_closed_even_if_that_cannot_be_noted_and_others_are_let_go_of_later(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    world.evict_seconds = 0.01
    async with world.living() as life:
        await life.open()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(life.switchboard.acts, "keep", _full)
            await until(lambda: not agent.is_open)
        await life.switchboard.find("s1")
        await until(lambda: not agent.is_open)
        await until(lambda: life.switchboard.live("s1") is None)


async def _full(session: str, acts: Sequence[Act]) -> None:
    raise DatabaseGone("the disk is full")


async def test_people_are_told_of_a_question_that_the_last_process_had_no_time_to_write_down(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        await life.say(await life.open(), "tool t1")
        await life.pending()
    async with world.living() as life:
        assert world.asked == ["t1"]
        await life.database.write(lambda tx: tx.execute("DELETE FROM approval"))
        await life.database.write(lambda tx: tx.execute("UPDATE tally SET begun = 1"))
    async with world.living() as life:
        assert world.asked == ["t1", "t1"]
        assert (await life.pending()).call_id == "t1"


async def test_one_who_is_overtaken_while_a_message_is_taken_in_is_refused_and_may_come_again(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        take = life.switchboard.messages.take

        async def overtaken(session: str, message: UserMessage, seq: int) -> QueuedMessage:
            live.session.submit(UserMessage("wait"))
            return await take(session, message, seq)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(life.switchboard.messages, "take", overtaken)
            with pytest.raises(AgentBusy):
                await life.say(live, "say hello", "m1", when="reject")
        agent.gate.set()
        await life.rest(live)
        assert await life.say(live, "say hello", "m1", when="reject") == 2
        await life.rest(live)
    assert agent.heard == ["wait", "say hello"]


async def test_a_steered_message_is_called_begun_only_once_the_log_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "wait")
        await until(lambda: agent.heard)
        await live.written()
        began, logged = life.switchboard.messages.began, []

        async def noted(session: str, turn: int, message: UserMessage) -> None:
            logged.append("Steered" in world.kinds("s1"))
            await began(session, turn, message)

        monkeypatch.setattr(life.switchboard.messages, "began", noted)
        await life.say(live, "by the way", "m1", when="steer")
        assert logged == [True]
        agent.gate.set()
        await life.rest(live)


async def test_a_session_that_is_taken_up_again_at_the_last_moment_is_not_let_go_of(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        async with life.switchboard._doors.alone("s1"):
            leaving = asyncio.create_task(life.switchboard._let_go(live))
            await life.say(live, "wait")
            await until(lambda: agent.heard)
        await leaving
        assert life.switchboard.live("s1") is live
        agent.gate.set()
        await life.rest(live)
    assert world.ends("s1") == ["success"]


async def test_who_reads_a_session_at_work_reads_all_of_it(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        live.session.set_mode("yolo")
        (event,) = [item for item in life.switchboard.peek("s1").records if isinstance(item, Envelope)]
        assert isinstance(event.event, ModeChanged)


async def test_a_copied_log_is_on_the_disk_before_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    order = []
    sync, insert = FileLog.sync, SessionRows.insert

    async def synced(log: FileLog) -> None:
        order.append("log")
        await sync(log)

    async def inserted(rows: SessionRows, row: SessionRow, turns: int = 0) -> None:
        order.append("row")
        await insert(rows, row, turns)

    async with world.living() as life:
        monkeypatch.setattr(FileLog, "sync", synced)
        monkeypatch.setattr(SessionRows, "insert", inserted)
        await life.switchboard.adopt("agent", str(tmp_path), "ana", iter(()))
        assert order == ["log", "row"]


async def test_a_message_that_is_sent_again_before_its_turn_is_written_down_is_told_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        assert await life.say(live, "wait", "m1") == 1
        await live.written()
        may_write = asyncio.Event()
        placed = life.switchboard.messages.placed

        async def later(number: int, turn: int) -> None:
            await may_write.wait()
            await placed(number, turn)

        monkeypatch.setattr(life.switchboard.messages, "placed", later)
        assert await life.say(live, "say 2", "m2") == 2
        assert await life.say(live, "say 3", "m3") == 3
        again = [asyncio.create_task(life.say(live, "say 2", "m2")), asyncio.create_task(live.known("m3"))]
        unwritten = await life.switchboard.messages.find("s1", "m3")
        assert unwritten is not None
        assert unwritten.turn is None
        assert not any(task.done() for task in again)
        may_write.set()
        assert await again[0] == 2
        known = await again[1]
        assert isinstance(known, QueuedMessage)
        assert (known.turn, known.message.id) == (3, "m3")
        live.session.stop()
        await life.rest(live)


async def test_messages_whose_turns_were_not_written_down_are_answered_once_and_in_order(tmp_path: Path) -> None:
    agent = CommandedAgent()
    world = World(tmp_path, agent=agent)
    async with world.living() as life:
        live = await life.open()
        for number in range(1, 4):
            assert await life.say(live, "wait" if number == 1 else f"say {number}", f"m{number}") == number
        await live.written()
        # Died when the first had begun, and of no message was its turn written down.
        await life.database.write(lambda tx: tx.execute("UPDATE message SET turn = NULL, state = 'queued'"))
        await life.database.write(lambda tx: tx.execute("UPDATE message SET text = 'wait' WHERE msg_id = 'm1'"))
    async with world.living() as life:
        live = await life.open()
        await life.rest(live)
        turns = [await life.say(live, "again", f"m{number}") for number in range(1, 4)]
    assert turns == [1, 2, 3]
    assert agent.heard == ["wait", "say 2", "say 3"]


async def test_a_passing_session_that_cannot_be_removed_keeps_nobody_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        await life.switchboard.open("agent", "passing", passing=True)
        await life.open("stays")
    remove = FileStore.remove

    def refuse(store: FileStore, session: str) -> None:
        raise PermissionError(13, "no")

    monkeypatch.setattr(FileStore, "remove", refuse)
    async with world.living() as life:
        assert [row.id for row in await life.switchboard.rows()] == ["stays", "passing"]
    monkeypatch.setattr(FileStore, "remove", remove)
    async with world.living() as life:
        assert [row.id for row in await life.switchboard.rows()] == ["stays"]
