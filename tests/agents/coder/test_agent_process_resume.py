"""The coding agent's sessions: what a crash leaves is mended, and nothing that was agreed is forgotten."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.agent_process import AgentProcess
from tests.support.coding import FAMILY, PROVIDERS, Coder, all_gone, calls, family, of, says, serving, text_of
from trunkline.base import paths
from trunkline.core.state import SessionState
from trunkline.store.files import FileStore

pytestmark = pytest.mark.process

both = pytest.mark.parametrize("provider", PROVIDERS)


def state_of(session_id: str) -> SessionState:
    """What the log of a session says."""
    log = FileStore(paths.sessions_dir()).open(session_id)
    try:
        return log.restore().state
    finally:
        log.close()


@both
def test_a_session_survives_a_kill_in_the_middle_of_a_tool(tmp_path: Path, provider: str) -> None:
    replies = [
        says("Noted."),
        calls(("Bash", {"command": "echo granted"})),
        says("It ran."),
        calls(("Bash", {"command": FAMILY}), ("Glob", {"pattern": "*.none"}), text="Both."),
    ]
    with serving(*replies) as stub:
        with Coder(stub, tmp_path, "--session-id", "s1", provider=provider) as agent:
            agent.send(type="init_history", text="The code word is quokka-4171.")
            agent.ask("Remember this.")
            agent.message("Run it.", "m2")
            agent.approve(agent.request(), "always")
            agent.see_out()
            agent.message("And this.", "m3")
            pids = family(tmp_path)
            agent.kill(signal.SIGKILL)
            assert all_gone(pids)
        before = state_of("s1").total
        assert before is not None
        assert before.output_tokens == 3 * 5
        for reply in (says("I am back."), calls(("Bash", {"command": "echo still granted"})), says("Done.")):
            stub.play(reply)
        with Coder(stub, tmp_path, "--resume", "s1", provider=provider) as agent:
            assert agent.lines[0]["session_id"] == "s1"
            assert text_of(agent.ask("Are you there?", "m4")) == "I am back."
            assert "quokka-4171" in agent.asked.system
            cut_off = [said for said in agent.asked.said if said.results][-1]
            assert "process ended" in cut_off.results[0][1]
            assert [said.text for said in agent.asked.said if said.role == "assistant"][-1] == "Both."
            agent.message("Once more.", "m5")
            lines = agent.until("stream_end")
            assert of(lines, "tool_request") == []
            assert "still granted" in of(lines, "tool_result")[0]["output"]
            assert agent.end() == 0
    after = state_of("s1").total
    assert after is not None
    assert after.output_tokens == 6 * 5


def test_a_session_that_another_process_has_open_is_refused(tmp_path: Path) -> None:
    with serving(says("Hello."), says("Still here.")) as stub, Coder(stub, tmp_path, "--session-id", "s1") as agent:
        agent.ask("Hello?")
        with AgentProcess("--provider", "openai", "--base-url", stub.url, "--resume", "s1", cwd=tmp_path) as second:
            (line,) = second.rest()
            assert second.wait() == 1
        assert (line["type"], line["error"]["code"]) == ("error", "config_error")
        assert "s1" in line["error"]["message"]
        assert text_of(agent.ask("Still there?", "m2")) == "Still here."


def test_a_compacted_session_is_resumed_compacted(tmp_path: Path) -> None:
    with serving(says("A long story."), says("There was a story."), says("Yes.")) as stub:
        with Coder(stub, tmp_path, "--session-id", "s1") as agent:
            agent.ask("Tell me a story.")
            agent.ask("/compact", "m2")
            assert agent.end() == 0
        with Coder(stub, tmp_path, "--resume", "s1") as agent:
            agent.ask("Did you like it?", "m3")
            assert "There was a story." in agent.asked.said[0].text
            assert "A long story." not in agent.requests[-1].body.decode()


def test_a_model_and_an_effort_that_were_set_count_after_a_resume(tmp_path: Path) -> None:
    with serving(*(says(f"{number}.") for number in range(5))) as stub:
        with Coder(stub, tmp_path, "--session-id", "s1") as agent:
            agent.send(type="set_config", model="gpt-5-mini")
            agent.ask("One.")
            agent.send(type="set_config", effort="high")
            agent.until("config_changed")
            assert agent.end() == 0
        with Coder(stub, tmp_path, "--resume", "s1") as agent:
            agent.ask("Two.", "m2")
            sent = agent.requests[-1].json
            assert (sent["model"], sent["reasoning_effort"]) == ("gpt-5-mini", "high")
            # The conversation is the same.
            assert [said.text for said in agent.asked.said] == ["One.", "0.", "Two."]
        with Coder(stub, tmp_path, "--resume", "s1", "--model", "gpt-5", "--effort", "low") as agent:
            agent.ask("Three.", "m3")
            sent = agent.requests[-1].json
            assert (sent["model"], sent["reasoning_effort"]) == ("gpt-5", "low")
        with Coder(stub, tmp_path, "--resume", "s1") as agent:
            agent.ask("Four.", "m4")
            assert agent.requests[-1].json["model"] == "gpt-5-mini"


def test_a_session_in_which_something_was_only_set_is_not_kept(tmp_path: Path) -> None:
    with serving() as stub, Coder(stub, tmp_path, "--session-id", "s1") as agent:
        agent.send(type="set_config", model="gpt-5-mini")
        agent.until("config_changed")
        agent.kill(signal.SIGTERM)
    assert FileStore(paths.sessions_dir()).list() == []
