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
    assert data["results"][0]["reason"].startswith("the reply holds 'body-before'")
    remarks = [line["line"] for talk in data["conversations"] for line in talk["lines"]]
    assert any(remark.startswith("profile: command: ") for remark in remarks)
    assert any("'AGENT_MESSAGE': 'conform'" in remark for remark in remarks)


@pytest.mark.process
def test_a_target_that_does_not_start_is_wrong_usage() -> None:
    done = conform("--", "no-such-program-anywhere")
    assert done.exit_code == 2
    assert "there is no program `no-such-program-anywhere`" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "trunkline conform agentproc -- ./my_agent.py"),
        (("--bridge",), "trunkline conform agentproc --bridge -- my-bridge"),
        (("--bridge", "--", "true"), "must hold `{profile}`"),
        (("--bridge", "--", "true", "{profile}"), "must hold `{message}`"),
        (("--bridge", "--protocol", "0.4", "--", "true"), "`--protocol` means nothing for --bridge"),
        (("--output", "json", "--", "true"), "`--output` means nothing for an agent"),
        (("--prompt", "helo=x", "--", "true"), "did you mean `hello`?"),
        (("--prompt", "hello", "--", "true"), "NAME=TEXT"),
        (("--prompt", "repeat=x", "--", "true"), "must hold `{text}`"),
        (("--prompts", "no-such-file.toml", "--", "true"), "cannot be read"),
        (("--only", "br.*", "--", "true"), "No check matches br.*"),
        (("--report", "report.pdf", "--", "true"), "must end in .json or .md"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_to_do(arguments: tuple[str, ...], problem: str) -> None:
    done = conform(*arguments)
    assert done.exit_code == 2
    assert problem in done.stderr


def test_list_shows_the_checks_of_the_kit_that_is_meant() -> None:
    assert conform("--list", "--only", "ap.stdin.none").stdout.split()[:3] == ["ap.stdin.none", "MUST", "stdin"]
    assert conform("--list", "--bridge", "--only", "br.cut.limit").stdout.split()[1] == "MUST"
    (check,) = json.loads(conform("--list", "--json", "--protocol", "0.4", "--only", "ap4.event.result-once").stdout)
    assert check["requirement"] == "There is at most one `result`."


def test_the_prompts_are_shown_in_the_form_in_which_they_are_read(tmp_path: Path) -> None:
    shown = conform("--show-prompts").stdout
    again = tmp_path / "prompts.toml"
    again.write_text(shown, encoding="utf-8")
    assert conform("--prompts", str(again), "--show-prompts").stdout == shown


def test_the_help_names_the_patience_that_the_kits_have() -> None:
    assert conform_agentproc.DEFAULT_TIMEOUT == agent_stage.TIMEOUT_SECONDS
    assert conform_agentproc.DEFAULT_BRIDGE_TIMEOUT == bridge_stage.TIMEOUT_SECONDS
