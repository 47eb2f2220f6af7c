"""Any node takes any client; the owner runs the turns; events come from the stream."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from tests.support.cluster_world import ClusterWorld, outcomes, said, words
from tests.support.loop import until
from trunkline.core.agent import Approve
from trunkline.core.events import ToolRequested, UserMessage
from trunkline.core.faults import SessionNotFound, StoreUnavailable
from trunkline.exchange.acts import Acts
from trunkline.exchange.cluster import joining
from trunkline.exchange.cluster.nodes import Nodes
from trunkline.exchange.cluster.places import SessionPlaces
from trunkline.exchange.forking import fork
from trunkline.exchange.live_session import LiveSession
from trunkline.store.database import DatabaseGone
from trunkline.store.jetstream.errors import StreamGone
from trunkline.store.jetstream.ownership import Ownership, SessionOwner

pytestmark = pytest.mark.process


async def test_a_client_of_another_node_talks_and_hears_everything(world: ClusterWorld) -> None:
    async with world.nodes("a", "b") as (a, b):
        mine = await a.switchboard.open("helper", "s1", by="ana")
        theirs = await b.switchboard.find("s1")
        assert theirs.is_followed
        turn = await b.switchboard.submit(theirs, UserMessage("say hello", id="m1", sender="bob"))
        assert turn == 1
        heard = await said(theirs)
        assert words(heard) == "hello"
        assert outcomes(heard) == ["success"]
        assert [each.seq for each in heard] == [each.seq for each in await said(mine)]
        # The same message again is the same message.
        assert await b.switchboard.submit(theirs, UserMessage("say hello", id="m1", sender="bob")) == 1


async def test_an_approval_asked_on_one_node_is_answered_on_another(world: ClusterWorld) -> None:
    async with world.nodes("a", "b") as (a, b):
        await a.switchboard.open("helper", "s1", by="ana")
        theirs = await b.switchboard.find("s1")
        await b.switchboard.submit(theirs, UserMessage("tool t1", sender="bob"))
        await until(lambda: bool(theirs.session.waiting))
        await a.switchboard.written()
        (approval,) = await b.switchboard.approvals.found("pending")
        await theirs.decide(approval, Approve(), "bob")
        assert outcomes(await said(theirs)) == ["success"]
        assert world.agents["helper"].ran["s1", "t1"] == 1
        found = await b.switchboard.approvals.get(approval.id)
        assert found is not None
        assert (found.state, found.decided_by) == ("approved", "bob")


async def test_a_stop_from_another_node_ends_the_turn(world: ClusterWorld) -> None:
    async with world.nodes("a", "b") as (a, b):
        await a.switchboard.open("helper", "s1")
        theirs = await b.switchboard.find("s1")
        await b.switchboard.submit(theirs, UserMessage("wait"))
        await until(lambda: theirs.session.turn == 1)
        theirs.session.stop("bob")
        assert outcomes(await said(theirs)) == ["cancelled"]


async def test_a_session_that_was_removed_elsewhere_is_gone(world: ClusterWorld) -> None:
    async with world.nodes("a", "b") as (a, b):
        await a.switchboard.open("helper", "s1")
        await b.switchboard.remove("s1")
        with pytest.raises(SessionNotFound):
            await a.switchboard.find("s1")


async def test_a_pinned_agent_runs_on_its_nodes_alone(world: ClusterWorld) -> None:
    world.pinned["helper"] = ("b",)
    async with world.nodes("a", "b") as (a, b):
        live = await a.switchboard.open("helper", "s1", by="ana")
        assert live.is_followed
        assert not (await b.switchboard.find("s1")).is_followed


async def test_a_node_that_stopped_is_taken_over_by_the_next_client(world: ClusterWorld) -> None:
    async with world.node("b") as b:
        async with world.node("a") as a:
            live = await a.switchboard.open("helper", "s1")
            await a.switchboard.submit(live, UserMessage("say one"))
            before = await said(live)
        found = await b.switchboard.find("s1")
        assert not found.is_followed
        await b.switchboard.submit(found, UserMessage("say two"))
        heard = await said(found, ends=2)
        assert words(heard) == "onetwo"
        assert [each.seq for each in heard[: len(before)]] == [each.seq for each in before]


async def test_a_person_is_still_asked_after_the_owner_stopped(world: ClusterWorld) -> None:
    async with world.node("b") as b:
        async with world.node("a") as a:
            live = await a.switchboard.open("helper", "s1")
            await a.switchboard.submit(live, UserMessage("tool t1"))
            await until(lambda: bool(live.session.waiting))
        found = await b.switchboard.find("s1")
        assert [request.call_id for request in found.session.waiting] == ["t1"]
        found.session.answer("t1", Approve(), "ana")
        assert outcomes(await said(found)) == ["success"]
        assert world.agents["helper"].ran["s1", "t1"] == 1


async def test_a_session_that_was_lost_while_it_was_woken_is_not_kept_by_this_node(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.node("a") as a:
        live = await a.switchboard.open("helper", "s1")
        await a.switchboard.submit(live, UserMessage("say one"))
        await said(live)
    async with world.node("b") as b:
        assert b.cluster is not None
        owned = b.cluster.owned

        async def lost_in_the_middle(*args: object, **options: object) -> None:
            owned.clear()

        with monkeypatch.context() as patched:
            # The first thing that is noted of a session that was woken.
            patched.setattr(Acts, "add", lost_in_the_middle)
            with pytest.raises(StoreUnavailable):
                await b.switchboard.find("s1")
        assert b.switchboard.live("s1") is None
        found = await b.switchboard.find("s1")
        await b.switchboard.submit(found, UserMessage("say two"))
        assert words(await said(found, ends=2)) == "onetwo"


async def test_a_question_whose_row_was_closed_by_a_node_that_lost_the_session_can_be_answered(
    world: ClusterWorld,
) -> None:
    async with world.nodes("a", "b") as (a, b):
        live = await a.switchboard.open("helper", "s1")
        await a.switchboard.submit(live, UserMessage("tool t1"))
        await until(lambda: bool(live.session.waiting))
        await a.switchboard.written()
        # As a node does that was asleep while others went on.
        await b.switchboard.approvals.close_all("s1", "It looked like that.")
        await a.switchboard.take_over()
        await a.switchboard.written()
        (approval,) = await b.switchboard.approvals.found("pending")
        await (await b.switchboard.find("s1")).decide(approval, Approve(), "ana")
        assert outcomes(await said(live)) == ["success"]
        await a.switchboard.take_over()
        await a.switchboard.written()
        assert await b.switchboard.approvals.found("pending") == []


async def test_what_another_node_kept_for_a_session_that_it_had_lost_is_answered_soon(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "LOOK_SECONDS", 0.05)
    # Not only when a node has died, which is looked for less often.
    monkeypatch.setattr(joining, "LOOKS", 10**6)
    async with world.node("a") as a:
        live = await a.switchboard.open("helper", "s1")
        await a.switchboard.submit(live, UserMessage("say one"))
        await said(live)
        await a.switchboard.messages.take("s1", UserMessage("say two", id="late"), live.session.shown)
        assert words(await said(live, ends=2)) == "onetwo"


async def test_a_node_whose_owner_cannot_reach_the_database_says_that_it_passes(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*given: object) -> None:
        raise DatabaseGone("terminating connection due to administrator command")

    async with world.nodes("a", "b") as (a, b):
        await a.switchboard.open("helper", "s1")
        theirs = await b.switchboard.find("s1")
        monkeypatch.setattr(a.switchboard.messages, "take", gone)
        with pytest.raises(StoreUnavailable, match="The database does not answer") as raised:
            await b.switchboard.submit(theirs, UserMessage("say one", id="m1"))
        assert raised.value.retryable
        assert raised.value.retry_after


async def test_a_passing_session_that_is_being_opened_is_not_taken_for_a_dead_nodes(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.node("a") as a:
        board, may_open = a.switchboard, asyncio.Event()
        opened, removed = board._opening.opened, list[str]()

        async def later(*given: Any, **named: Any) -> LiveSession:
            await may_open.wait()
            return await opened(*given, **named)

        async def remove(session_id: str) -> None:
            removed.append(session_id)

        monkeypatch.setattr(board._opening, "opened", later)
        opening = asyncio.create_task(board.open("helper", "s1", passing=True))
        while not await board.session_rows.passing():  # noqa: ASYNC110  (a row tells nobody)
            await asyncio.sleep(0)
        with monkeypatch.context() as patched:
            patched.setattr(board, "remove", remove)
            await board.take_over()
        may_open.set()
        live = await opening
        assert removed == []
        live.session.submit(UserMessage("say one"))
        assert words(await said(live)) == "one"


@pytest.mark.parametrize("fault", ["is another's", "is cut off", "fails"])
async def test_a_session_that_could_not_be_begun_is_removed_by_its_owner_alone(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    async with world.nodes("a", "b") as (a, b):
        assert b.cluster is not None
        theirs, ownership = b.cluster, b.cluster.ownership

        async def failing(*given: object, **named: object) -> LiveSession:
            if fault == "is another's":
                # While it was cut off, as long as others take it for dead.
                taken = await ownership.claim("s1", await ownership.find("s1"), "b", theirs.me.run)
                assert taken is not None
                theirs.owned["s1"] = taken
                await b.switchboard.submit(await b.switchboard.find("s1"), UserMessage("say one", id="m1"))
            elif fault == "is cut off":
                meanwhile.setattr(Ownership, "find", gone)
            raise StreamGone("NATS does not say what happened in the session.", retryable=True)

        async def gone(self: Ownership, session: str) -> SessionOwner:
            raise StreamGone("NATS does not answer.", retryable=True)

        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(a.switchboard._opening, "opened", failing)
            with pytest.raises(StreamGone):
                await a.switchboard.open("helper", "s1")
        if fault == "fails":
            with pytest.raises(SessionNotFound):
                await b.switchboard.find("s1")
            return
        live = await b.switchboard.find("s1")
        await b.switchboard.submit(live, UserMessage("say one", id="m1"))
        assert words(await said(live)) == "one"


async def test_a_node_that_is_cut_off_takes_in_nothing_of_what_others_keep(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.node("a") as a:
        live, messages = await a.switchboard.open("helper", "s1"), a.switchboard.messages
        kept = await messages.take("s1", UserMessage("say one", id="m1"), live.session.shown)
        assert a.cluster is not None
        watch = joining._Watch(a.switchboard, a.budgets, a.cluster)
        with monkeypatch.context() as patched:
            patched.setattr(Nodes, "is_held", property(lambda self: False))
            await watch._look()
        assert await messages.forget(kept.number)
        await messages.take("s1", UserMessage("say two", id="m2"), live.session.shown)
        await watch._look()
        assert words(await said(live)) == "two"


async def test_a_node_that_cannot_wake_a_session_closes_no_question_of_its_owner(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.nodes("a", "b") as (a, b):
        live = await a.switchboard.open("helper", "s1")
        await a.switchboard.submit(live, UserMessage("tool t1"))
        await until(lambda: bool(live.session.waiting))
        await a.switchboard.written()
        tried = asyncio.Event()

        async def failing(session_id: str) -> LiveSession:
            tried.set()
            raise ValueError(session_id)

        async def all_of_them(self: SessionPlaces, sessions: Iterable[str]) -> list[str]:
            return list(sessions)

        # Free when it was looked for, and another's when it is woken.
        monkeypatch.setattr(SessionPlaces, "free", all_of_them)
        monkeypatch.setattr(b.switchboard._waking, "_find", failing)
        await b.switchboard.take_over()
        await tried.wait()
        await b.switchboard.awaited()
        assert len(await a.switchboard.approvals.found("pending")) == 1


async def test_draining_a_node_moves_its_sessions_after_their_turns(world: ClusterWorld) -> None:
    async with world.nodes("a", "b") as (a, b):
        live = await a.switchboard.open("simple", "s1")
        await a.switchboard.submit(live, UserMessage("wait; say done"))
        await until(lambda: live.session.turn == 1)
        assert a.cluster is not None
        assert b.cluster is not None
        assert await b.cluster.ask(b.cluster.nodes.others["a"], {"do": "drain"}) == 1
        # Whoever waits until it is drained asks any node.
        await b.cluster.nodes.look()
        node = b.cluster.nodes.others["a"]
        assert (node.draining, node.sessions) == (True, 1)
        world.agents["simple"].gate.set()
        await until(lambda: a.switchboard.live("s1") is None)
        found = await b.switchboard.find("s1")
        assert not found.is_followed
        assert outcomes(await said(found)) == ["success"]


async def test_draining_a_node_waits_for_turns_of_sessions_that_were_woken_meanwhile(world: ClusterWorld) -> None:
    async with world.nodes("a", "b") as (a, b):
        asleep = await a.switchboard.open("simple", "s2")
        await a.switchboard._let_go(asleep)
        live = await a.switchboard.open("simple", "s1")
        await a.switchboard.submit(live, UserMessage("wait; say done"))
        await until(lambda: live.session.turn == 1)
        assert a.cluster is not None
        assert b.cluster is not None
        await b.cluster.ask(b.cluster.nodes.others["a"], {"do": "drain"})
        woken = await a.switchboard.find("s2")
        await a.switchboard.submit(woken, UserMessage("tool t1; say done"))
        await until(lambda: bool(woken.session.waiting))
        world.agents["simple"].gate.set()
        owned = a.cluster.owned
        await until(lambda: "s1" not in owned)
        woken.answer("t1", Approve(), "bob")
        await until(lambda: not owned)
        found = await b.switchboard.find("s2")
        assert not found.is_followed
        assert outcomes(await said(found)) == ["success"]


async def test_draining_a_node_waits_for_a_turn_that_begins_while_the_end_of_the_last_is_kept(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.nodes("a", "b") as (a, b):
        live = await a.switchboard.open("simple", "s1")
        await a.switchboard.submit(live, UserMessage("wait; say one"))
        await until(lambda: live.session.turn == 1)
        at_rest = live.session.at_rest

        async def and_goes_on() -> None:
            await at_rest()
            monkeypatch.setattr(live.session, "at_rest", at_rest)
            await a.switchboard.submit(live, UserMessage("sleep 0.1; say two"))

        monkeypatch.setattr(live.session, "at_rest", and_goes_on)
        assert b.cluster is not None
        await b.cluster.ask(b.cluster.nodes.others["a"], {"do": "drain"})
        world.agents["simple"].gate.set()
        await until(lambda: a.switchboard.live("s1") is None)
        assert outcomes(await said(await b.switchboard.find("s1"), ends=2)) == ["success", "success"]


async def test_what_happened_can_be_read_on_a_node_that_was_never_there(world: ClusterWorld) -> None:
    async with world.nodes("a", "b") as (a, b):
        live = await a.switchboard.open("helper", "s1")
        await a.switchboard.submit(live, UserMessage("say hello"))
        await said(live)
        await b.switchboard.awaited(["s1"])
        read = [each.event for each in b.switchboard.peek("s1").records if not hasattr(each, "first")]
        assert any(isinstance(event, ToolRequested) for event in read) is False
        assert len(read) >= 3


async def test_a_session_that_slept_wakes_with_all_that_happened(world: ClusterWorld) -> None:
    async with world.nodes("a", "b") as (a, b):
        for number in (1, 2, 3):
            live = await a.switchboard.open("helper", "s1")
            assert await a.switchboard.submit(live, UserMessage(f"say {number}")) == number
            await live.session.at_rest()
            await live.written()
            await a.switchboard._let_go(live)
            assert a.switchboard.live("s1") is None
        live = await a.switchboard.find("s1")
        assert words(await said(live, ends=3)) == "123"
        assert words(await said(await b.switchboard.find("s1"), ends=3)) == "123"


async def test_a_fork_goes_on_with_what_it_began_with_on_every_node(world: ClusterWorld) -> None:
    async with world.nodes("a", "b") as (a, b):
        live = await a.switchboard.open("helper", "s1")
        await a.switchboard.submit(live, UserMessage("say one"))
        await said(live)
        made = await fork(a.switchboard, "s1", None, "ana")
        forked = await a.switchboard.find(made.id)
        assert await a.switchboard.submit(forked, UserMessage("say two")) == 2
        assert words(await said(forked, ends=2)) == "onetwo"
        assert words(await said(await b.switchboard.find(made.id), ends=2)) == "onetwo"


async def test_those_who_follow_a_session_hear_that_it_was_removed(world: ClusterWorld) -> None:
    async with world.nodes("a", "b") as (a, b):
        await a.switchboard.open("helper", "s1")
        theirs = await b.switchboard.find("s1")
        await a.switchboard.remove("s1")
        async with asyncio.timeout(60):
            async for _ in theirs.session.subscribe():
                pass
        await until(lambda: b.switchboard.live("s1") is None)
        with pytest.raises(SessionNotFound):
            await b.switchboard.find("s1")


async def test_a_session_that_was_begun_again_under_its_id_is_not_mixed_with_the_old_one(world: ClusterWorld) -> None:
    async with world.nodes("a", "b") as (a, b):
        live = await a.switchboard.open("helper", "s1")
        await a.switchboard.submit(live, UserMessage("say old"))
        await said(await b.switchboard.find("s1"))
        await a.switchboard.remove("s1")
        live = await a.switchboard.open("helper", "s1")
        await a.switchboard.submit(live, UserMessage("say new"))
        await said(live)
        await until(lambda: b.switchboard.live("s1") is None)
        assert words(await said(await b.switchboard.find("s1"))) == "new"


async def test_a_session_at_rest_can_be_used_where_it_was_followed_when_its_owner_is_gone(world: ClusterWorld) -> None:
    async with world.node("b") as b:
        async with world.node("a") as a:
            await a.switchboard.open("helper", "s1")
            assert b.cluster is not None
            await b.cluster.nodes.look()
            theirs = await b.switchboard.find("s1")
            assert theirs.is_followed
        await b.cluster.nodes.look()
        assert await b.switchboard.submit(theirs, UserMessage("say hello")) == 1
        found = await b.switchboard.find("s1")
        assert not found.is_followed
        assert words(await said(found)) == "hello"


async def test_one_id_opened_on_all_nodes_at_once_is_one_session(world: ClusterWorld) -> None:
    async with world.nodes("a", "b", "c") as nodes:
        for number in range(5):
            found = await asyncio.gather(*(node.switchboard.open("helper", f"s{number}") for node in nodes))
            assert sum(not live.is_followed for live in found) == 1


async def test_a_mode_set_on_another_node_is_set_when_that_is_told(world: ClusterWorld) -> None:
    async with world.nodes("a", "b") as (a, b):
        mine = await a.switchboard.open("helper", "s1")
        theirs = await b.switchboard.find("s1")
        await theirs.set_mode("yolo")
        assert mine.session.mode == "yolo"


def test_a_followed_session_answers_for_itself_in_everything_that_clients_ask() -> None:
    from trunkline.core.session import Session
    from trunkline.exchange.cluster.followed_session import FollowedSession

    # What reaches for the agent, or for the turns, is not here.
    own = {
        name
        for name, value in vars(Session).items()
        if not name.startswith("_")
        and any(
            part in (getattr(getattr(value, "fget", value), "__code__", None) or (lambda: 0).__code__).co_names
            for part in ("_performer", "_turns", "_agent", "_meter", "_closing")
        )
    }
    assert own - vars(FollowedSession).keys() == {"abandon"}
