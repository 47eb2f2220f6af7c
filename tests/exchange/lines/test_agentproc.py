"""Chat bridges whose process relays to a session of the exchange."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.support.attached import asking, client, echo, exchange
from tests.support.loop import until
from trunkline.base import shapes
from trunkline.base.attach import STOP, AttachEnding, AttachHeader
from trunkline.core.agent import Approve
from trunkline.core.events import Envelope, Event, StopAsked, TurnEnded, UserMessage
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.messages import QueuedMessage
from trunkline.exchange.settings import AgentBudget
from trunkline.wires.agentproc.messages import TurnRequest


def header(turn: TurnRequest, dialect: str = "0.4", resume: str | None = None) -> AttachHeader:
    return AttachHeader("agentproc", "a", resume=resume, dialect=dialect, turn=shapes.encode(turn))


async def test_a_message_is_answered_in_the_session_that_the_bridge_is_told(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=echo(tmp_path)) as running:
        async with client(running, header(TurnRequest("Hello", from_user="ana"), "0.1")) as bridge:
            while await bridge.more():
                pass
            assert bridge.ending == AttachEnding(0)
            assert bridge.raw.decode() == f'AGENT_SESSION:{bridge.answer.session}\nAGENT_PARTIAL:"Hello"\n'
        again = header(TurnRequest("More", session_id=bridge.answer.session or ""), resume=bridge.answer.session or "")
        async with client(running, again) as bridge:
            while await bridge.more():
                pass
            assert b"More" in bridge.raw
        live = await running.switchboard.find(bridge.answer.session or "")
        assert live.session.state.turns == 2
        await live.written()
        assert {row["person"] for row in await running.budgets.usage("person")} >= {"ana"}


async def test_a_turn_without_permission_waits_for_whoever_else_can_be_asked(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=asking(tmp_path)) as running:
        async with client(running, header(TurnRequest("Go"))) as bridge:
            live = await running.switchboard.find(bridge.answer.session or "")
            async for item in live.session.subscribe(0):
                if live.session.waiting:
                    break
                del item
            await live.written()
            (row,) = await running.switchboard.approvals.found("pending")
            await live.decide(row, Approve(), "ana")
            while await bridge.more():
                pass
            assert bridge.ending == AttachEnding(0)
            assert b"after" in bridge.raw


async def test_a_bridge_that_can_be_asked_answers(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=asking(tmp_path)) as running:
        async with client(running, header(TurnRequest("Go", permission=True))) as bridge:
            request = (await bridge.until("permission_request"))[-1]
            bridge.send(type="permission_response", request_id=request["request_id"], behavior="allow")
            while await bridge.more():
                pass
            assert bridge.ending == AttachEnding(0)
        await running.switchboard.written()
        (row,) = await running.switchboard.approvals.found()
        assert (row.state, row.decided_by) == ("approved", "local")


async def test_a_turn_whose_bridge_leaves_goes_on(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=asking(tmp_path)) as running:
        async with client(running, header(TurnRequest("Go", permission=True))) as bridge:
            await bridge.until("permission_request")
        live = await running.switchboard.find(bridge.answer.session or "")
        await live.written()
        (row,) = await running.switchboard.approvals.found("pending")
        await live.decide(row, Approve(), "ana")
        await live.session.at_rest()
        assert live.session.state.open_turns == {}


async def test_a_stop_leaves_others_their_turn_and_withdraws_the_message_of_the_bridge(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=asking(tmp_path)) as running:
        live = await running.switchboard.open("a", "s")
        await running.switchboard.submit(live, UserMessage("Theirs", sender="ana"))
        await until(lambda: live.session.waiting)
        withdrawn: list[str] = []
        async with client(running, header(TurnRequest("Mine", session_id="s"), resume="s")) as bridge:
            bridge.writer.write(b"\n" + STOP + b"\n")
            while not withdrawn:
                withdrawn = [
                    id for event in _events(running, "s") if isinstance(event, StopAsked) for id in event.dropped
                ]
                await asyncio.sleep(0)
        await live.written()
        (row,) = await running.switchboard.approvals.found("pending")
        await live.decide(row, Approve(), "ana")
        await live.session.at_rest()
        await live.written()
        assert await running.switchboard.messages.waiting("s") == []
        outcomes = [event.outcome for event in _events(running, "s") if isinstance(event, TurnEnded)]
        assert outcomes == ["success", "cancelled"]


def _events(running: Exchange, session: str) -> list[Event]:
    return [item.event for item in running.switchboard.peek(session).records if isinstance(item, Envelope)]


async def test_other_peoples_turns_are_not_told_to_a_bridge(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=echo(tmp_path)) as running:
        host = AttachHeader("jsonstream", "a", "s")
        async with client(running, host) as other:
            await other.until("ready")
            other.send(type="message", msg_id="m1", input="Theirs")
            await other.until("stream_start")
            async with client(running, header(TurnRequest("Mine", session_id="s"), resume="s")) as bridge:
                while await bridge.more():
                    pass
            said = [json.loads(line) for line in bridge.raw.splitlines()]
            assert "Theirs" not in json.dumps(said)
            assert "Mine" in json.dumps(said)


async def test_a_message_of_a_bridge_is_kept_until_it_has_begun(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=asking(tmp_path)) as running:
        async with client(running, header(TurnRequest("Go", permission=True))) as bridge:
            await bridge.until("permission_request")
            session = bridge.answer.session or ""
            async with client(running, header(TurnRequest("More", session_id=session), resume=session)) as later:
                assert later.answer.session == session
                kept: list[QueuedMessage] = []
                while not kept or kept[-1].turn is None:
                    await running.switchboard.written()
                    kept = await running.switchboard.messages.waiting(session)
            assert [(each.message.text, each.turn) for each in kept] == [("More", 2)]


async def test_a_budget_that_is_spent_refuses_the_turn_of_a_bridge(tmp_path: Path) -> None:
    thrifty = echo(tmp_path).replace(budget=AgentBudget(tokens_per_day=0))
    async with exchange(tmp_path, a=thrifty) as running, client(running, header(TurnRequest("Hello"))) as bridge:
        while await bridge.more():
            pass
        assert b"0 tokens a day" in bridge.raw
        assert bridge.ending is not None
        assert bridge.ending.exit != 0
