"""`trunkline conform agentproc` as people and programs call it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trunkline.cli import conform_agentproc
from trunkline.cli.conform import command
from trunkline.conform.agentproc.agent import stage as agent_stage
from trunkline.conform.agentproc.bridge import stage as bridge_stage

KITS = Path(__file__).parents[1] / "conform" / "agentproc"
AGENT = (sys.executable, "-S", "-E", str(KITS / "run_agent.py"))
BRIDGE = (sys.executable, "-S", "-E", str(KITS / "run_bridge.py"))
PLACES = ("{profile}", "{message}", "{session}", "={session_name}", "={from}", "={image}", "={file}")


def conform(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["agentproc", *arguments])


@pytest.mark.process
def test_an_agent_that_passes_ends_with_0_and_a_line_for_each_check() -> None:
    done = conform("--only", "ap.stream.*", "--", *AGENT, "GoodAgent", "0.1")
    assert done.exit_code == 0
    first, *_, summary = done.stdout.splitlines()
    assert first.split() == ["ap.stream.off", "MUST", "Core", "passed"]
    assert summary.startswith("MUST 1/1 · SHOULD 1/1 · MAY 1/1 · conforms")


@pytest.mark.process
def test_the_newer_dialect_has_checks_of_its_own() -> None:
    only = ("--protocol", "0.4", "--only", "ap4.event.result-once", "--", *AGENT)
    assert conform(*only, "GoodAgent", "0.4").exit_code == 0
    done = conform(*only, "broken_agents_lines.HasTwoResults", "0.4")
    assert done.exit_code == 1
    assert "2 results in one turn, in the conversation `ap4.turn.answer`" in done.stdout


@pytest.mark.process
def test_a_prompt_can_be_said_in_other_words() -> None:
    words = ("--prompt", "hello=Nothing that this agent knows", "--only", "ap.turn.answer")
    done = conform("--json", *words, "--", *AGENT, "GoodAgent", "0.1")
    lines = [line["line"] for talk in json.loads(done.stdout)["conversations"] for line in talk["lines"]]
    assert "AGENT_MESSAGE=Nothing that this agent knows" in lines
    assert 'AGENT_PARTIAL:"You said: Nothing that this agent knows"' in lines


@pytest.mark.process
def test_a_bridge_is_judged_by_what_its_agent_was_given_and_by_what_it_shows() -> None:
    only = ("--bridge", "--only", "br.error.body", "--json", "--", *BRIDGE)
    assert json.loads(conform(*only, "GoodBridge", *PLACES).stdout)["conforms"] is True
    done = conform(*only, "broken_bridges_ends.SendsWhatThereIs", *PLACES)
    data = json.loads(done.stdout)
    assert done.exit_code == 1
    assert data["results"][0]["reason"].startswith("the reply contains 'body-before'")
    remarks = [line["line"] for talk in data["conversations"] for line in talk["lines"]]
    assert any(remark.startswith("profile: command: ") for remark in remarks)
    assert any("'AGENT_MESSAGE': 'conform'" in remark for remark in remarks)


def test_list_shows_the_checks_of_the_kit_that_is_meant() -> None:
    assert conform("--list", "--only", "ap.stdin.none").stdout.split()[:3] == ["ap.stdin.none", "MUST", "stdin"]
    assert conform("--list", "--bridge", "--only", "br.cut.limit").stdout.split()[1] == "MUST"
    (check,) = json.loads(conform("--list", "--json", "--protocol", "0.4", "--only", "ap4.event.result-once").stdout)
    assert check["requirement"] == "There is at most one `result`."


def test_the_help_names_the_patience_that_the_kits_have() -> None:
    assert conform_agentproc.DEFAULT_TIMEOUT == agent_stage.TIMEOUT_SECONDS
    assert conform_agentproc.DEFAULT_BRIDGE_TIMEOUT == bridge_stage.TIMEOUT_SECONDS
