"""The coding agent when it is stopped, or ended: with nothing left running, and fit to go on."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.coding import (
    FAMILY,
    PROVIDERS,
    all_gone,
    begins,
    calls,
    coding,
    eventually,
    family,
    of,
    says,
    text_of,
)
from tests.support.conversations import unmarked

pytestmark = pytest.mark.process

both = pytest.mark.parametrize("provider", PROVIDERS)

RUN_FAMILY = ("Bash", {"command": FAMILY})


@both
def test_an_answer_that_is_stopped_lets_go_of_the_provider_and_stays_in_the_conversation(
    tmp_path: Path, provider: str
) -> None:
    with coding(tmp_path, begins("One two three"), says("Four."), provider=provider) as agent:
        agent.message("Count.")
        while not text_of(agent.lines).endswith("three"):
            agent.line()
        lines = agent.stop()
        assert [line["type"] for line in lines] == ["stream_end"]
        # One says at the beginning what it has read, the other at the end.
        assert ("usage" in lines[0]) is (provider == "anthropic")
        eventually(agent.requests[0].left.is_set, "the request was given up")
        assert text_of(agent.ask("Go on.", "m2")) == "Four."
        assert [said.text for said in agent.asked.said if said.role == "assistant"] == ["One two three"]
        assert agent.asked.words.endswith("Go on.")


@both
def test_a_stop_ends_a_command_with_all_that_it_started(tmp_path: Path, provider: str) -> None:
    with coding(tmp_path, calls(RUN_FAMILY), says("Sorry."), provider=provider) as agent:
        agent.message("Run it.")
        agent.approve(agent.request())
        agent.until("tool_running")
        pids = family(tmp_path)
        lines = agent.stop()
        assert len(of(lines, "tool_cancelled")) + len(of(lines, "tool_result")) == 1
        assert all_gone(pids)
        assert text_of(agent.ask("What happened?", "m2")) == "Sorry."
        # Otherwise the provider would refuse the conversation; `asked` has looked.
        assert [len(said.results) for said in agent.asked.said if said.results] == [1]


@both
def test_a_stop_settles_the_calls_that_wait_for_approval(tmp_path: Path, provider: str) -> None:
    two = calls(*(("Write", {"file_path": name, "content": "x"}) for name in ("a", "b")))
    with coding(tmp_path, two, says("All right."), provider=provider) as agent:
        agent.message("Write both.")
        wanted = [agent.request()["call_id"], agent.request()["call_id"]]
        lines = agent.stop()
        assert sorted(line["call_id"] for line in of(lines, "tool_cancelled")) == sorted(wanted)
        agent.send(type="tool_approve", call_id=wanted[0])
        assert agent.until("error")[-1]["error"]["code"] == "protocol_error"
        assert text_of(agent.ask("Never mind.", "m2")) == "All right."
        (said,) = [said for said in agent.asked.said if said.results]
        assert [text for _, text in said.results] == ["Stopped by user"] * 2
    assert not list(tmp_path.iterdir())


def test_what_ran_before_a_stop_is_not_lost(tmp_path: Path) -> None:
    two = calls(("Bash", {"command": "echo first > first; echo it ran"}), RUN_FAMILY)
    with coding(tmp_path, two, says("I see.")) as agent:
        agent.message("Run both.")
        agent.approve(agent.request())
        agent.approve(agent.request())
        agent.until("tool_result")
        family(tmp_path)
        agent.stop()
        agent.ask("What happened?", "m2")
        (said,) = [said for said in agent.asked.said if said.results]
        first, second = (text for _, text in said.results)
        assert "it ran" in first
        assert unmarked(second).startswith("Stopped by user")


@both
def test_what_a_stopped_command_had_printed_reaches_the_model_with_the_next_message(
    tmp_path: Path, provider: str
) -> None:
    command = "echo so far; echo and this >&2; touch started; trap '' TERM; while true; do sleep 1; done"
    with coding(tmp_path, calls(("Bash", {"command": command})), says("I see."), provider=provider) as agent:
        agent.message("Run it.")
        agent.approve(agent.request())
        eventually((tmp_path / "started").exists, "the command was started")
        lines = agent.stop()
        assert [line["reason"] for line in of(lines, "tool_cancelled")] == ["Stopped by user"]
        agent.ask("What happened?", "m2")
        ((_, text),) = [result for said in agent.asked.said for result in said.results]
        assert unmarked(text).startswith("Stopped by user. ")
        assert "STDOUT:\nso far\n" in text
        assert "STDERR:\nand this\n" in text


@pytest.mark.parametrize(("way", "code"), [("eof", 0), ("sigterm", 143)])
def test_an_end_within_a_command_takes_it_along(tmp_path: Path, way: str, code: int) -> None:
    with coding(tmp_path, calls(RUN_FAMILY), flags=("--session-id", "s1")) as agent:
        agent.message("Run it.")
        agent.approve(agent.request())
        pids = family(tmp_path)
        assert (agent.end() if way == "eof" else agent.kill(signal.SIGTERM)) == code
        assert all_gone(pids)
        assert [line["type"] for line in agent.rest()][-1] == "stream_end"


def test_a_background_command_ends_with_the_agent(tmp_path: Path) -> None:
    command = "sleep 300 > /dev/null 2>&1 & echo $! > pids; mv pids family"
    with coding(tmp_path, calls(("Bash", {"command": command})), says("Started.")) as agent:
        (result,) = of(agent.ask("Start it."), "tool_result")
        assert result["status"] == "success"
        pids = family(tmp_path)
        assert agent.end() == 0
        assert all_gone(pids)
