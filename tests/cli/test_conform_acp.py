"""`trunkline conform acp` as people and programs call it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trunkline.cli.conform import command

RUN_AGENT = Path(__file__).parents[1] / "conform" / "acp" / "run_agent.py"
AGENT = (sys.executable, "-S", "-E", str(RUN_AGENT))


def conform(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["acp", *arguments])


@pytest.mark.process
def test_an_agent_that_passes_ends_with_0_and_a_line_for_each_check() -> None:
    done = conform("--only", "acp.session.un*", "--", *AGENT, "GoodAgent")
    assert done.exit_code == 0, done.output
    first, *_, summary = done.stdout.splitlines()
    assert first.split() == ["acp.session.unique", "MUST", "Session", "Setup", "passed"]
    assert summary.startswith("MUST 1/1 · SHOULD 1/1 · conforms")


@pytest.mark.process
def test_a_failure_says_what_was_sent_what_came_back_and_what_was_expected() -> None:
    done = conform("--json", "--only", "acp.init.version", "--", *AGENT, "broken_beginnings.RepeatsTheVersion")
    assert done.exit_code == 1
    data = json.loads(done.stdout)
    assert (data["wire"], data["protocol_version"], data["conforms"]) == ("acp", "1", False)
    (result,) = data["results"]
    assert result["reason"].startswith('`initialize` {"protocolVersion":9999,')
    assert "'protocolVersion': 9999" in result["reason"]
    assert result["reason"].endswith("not with a version that the agent speaks")
    assert data["conversations"][0]["roles"] == ["client", "agent"]


@pytest.mark.process
def test_a_should_counts_only_when_it_is_asked_to() -> None:
    only = ("--only", "acp.init.answer", "--only", "acp.init.info", "--", *AGENT, "broken_beginnings.HasNoName")
    assert conform(*only).exit_code == 0
    assert conform("--strict", *only).exit_code == 1


@pytest.mark.process
def test_what_is_not_applicable_is_no_failure() -> None:
    done = conform("--strict", "--only", "acp.load.*", "--", *AGENT, "DoesLittle")
    assert done.exit_code == 0
    assert "MUST 0/3 (3 not applicable) · conforms" in done.stdout


@pytest.mark.process
def test_a_prompt_can_be_said_in_other_words() -> None:
    words = ("--prompt", "hello=Nothing that this agent knows", "--only", "acp.prompt.answer")
    done = conform("--json", *words, "--", *AGENT, "GoodAgent")
    lines = [line["line"] for talk in json.loads(done.stdout)["conversations"] for line in talk["lines"]]
    assert any("Nothing that this agent knows" in line for line in lines)


def test_wrong_usage_ends_with_2() -> None:
    assert conform().exit_code == 2
    assert conform("--only", "acp.init.answer", "--", "/no/such/program").exit_code == 2
    assert conform("--only", "no.such.check", "--", "x").exit_code == 2
    assert conform("--prompt", "nothing=x", "--", "x").exit_code == 2


def test_the_checks_and_the_prompts_are_told_without_an_agent() -> None:
    listed = json.loads(conform("--list", "--json").stdout)
    assert listed[0]["id"] == "acp.init.answer"
    assert {"id", "tier", "section", "requirement"} == set(listed[0])
    assert "write = " in conform("--show-prompts").stdout
