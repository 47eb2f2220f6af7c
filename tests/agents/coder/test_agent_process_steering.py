"""The coding agent is told something in the middle of its work, on the JSON stream and through our own client of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.coding import Coder, calls, coding, of, says, serving
from tests.support.loop import until
from trunkline.agents.external.jsonstream import JsonStreamAgent
from trunkline.core.agent import Approve
from trunkline.core.approvals import Policy
from trunkline.core.events import Steered, TextDelta, ToolRequested, TurnEnded, UserMessage
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.core.turns import State

pytestmark = pytest.mark.process

WRITE = ("Write", {"file_path": "a.txt", "content": "red\n"})


def test_the_model_reads_it_at_its_next_call(tmp_path: Path) -> None:
    with coding(tmp_path, calls(WRITE), says("Blue it is."), says("Yes.")) as agent:
        agent.message("Choose a colour.", "m1")
        request = agent.request()
        agent.send(type="message", msg_id="m2", input="Make it blue.", when="steer")
        agent.approve(request)
        lines = agent.see_out()
        assert (lines[-1]["type"], lines[-1]["msg_id"]) == ("stream_end", "m1")
        assert agent.asked.words == "Make it blue."
        assert agent.asked.said[-1].results or agent.asked.said[-2].results
        assert [agent.line(), agent.line()] == [
            {"type": "stream_start", "msg_id": "m2"},
            {"type": "stream_end", "msg_id": "m2", "usage": {"input_tokens": 0, "output_tokens": 0}},
        ]
        # When idle, it is a message like any other.
        lines = agent.ask("Really?", "m3", when="steer")
        assert [line["msg_id"] for line in of(lines, "stream_start")] == ["m3"]
        assert len(agent.requests) == 3


def test_a_command_waits_for_its_turn(tmp_path: Path) -> None:
    with coding(tmp_path, calls(WRITE), says("Done.")) as agent:
        agent.message("Choose a colour.", "m1")
        request = agent.request()
        agent.send(type="message", msg_id="m2", input="/context", when="steer")
        agent.approve(request)
        assert agent.see_out()[-1]["msg_id"] == "m1"
        lines = agent.see_out()
        assert (lines[0]["msg_id"], lines[-1]["msg_id"]) == ("m2", "m2")
        assert of(lines, "info")
        assert len(agent.requests) == 2


def test_ready_says_that_it_can_be_done(tmp_path: Path) -> None:
    with serving() as stub, Coder(stub, tmp_path, "--no-session") as agent:
        agent.send(type="set_mode", mode="yolo")
        (*_, changed) = agent.until("config_changed")
        assert changed["capabilities"]["steering"] is True


async def test_our_own_client_passes_it_on(tmp_path: Path) -> None:
    with serving(calls(WRITE), says("Blue it is.")) as stub:
        argv = [*Coder.command, "--provider", "openai", "--base-url", stub.url, "--workspace", str(tmp_path)]
        agent = JsonStreamAgent(argv)
        session = await Session.open(agent, MemoryLog("s1"), Policy(), workspace=str(tmp_path))
        try:
            assert agent.capabilities.steerable
            session.submit(UserMessage("Choose a colour."))
            await until(lambda: session.status is State.AWAITING_APPROVAL)
            assert session.steer(UserMessage("Make it blue.", id="m2"))
            (request,) = session.waiting
            session.answer(request.call_id, Approve())
            await session.at_rest()
            events = [item.event for item in session.read(0, session.shown) if hasattr(item, "event")]
        finally:
            await session.close()
        said = [event for event in events if isinstance(event, Steered | TextDelta | TurnEnded | ToolRequested)]
        assert isinstance(said[0], ToolRequested)
        assert said[1] == Steered(UserMessage("Make it blue.", id="m2"))
        assert "".join(event.text for event in said if isinstance(event, TextDelta)) == "Blue it is."
        assert [event.outcome for event in said if isinstance(event, TurnEnded)] == ["success"]
        assert "Make it blue." in stub.requests[-1].body.decode()
