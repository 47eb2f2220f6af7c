"""`trunkline conform` as people and programs call it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.base.processes import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.redact import Redactor
from trunkline.cli import conform_run
from trunkline.cli.conform import command
from trunkline.conform import kit
from trunkline.conform.kit import Check
from trunkline.conform.report import Report

AGENTS = Path(__file__).parents[1] / "conform"
GOOD = (sys.executable, "-S", "-E", str(AGENTS / "run_agent.py"), "GoodAgent")
BAD = (*GOOD[:-1], "broken_approvals.OnceIsAlways")


def conform(*arguments: str, wire: str = "jsonstream") -> Result:
    return CliRunner().invoke(command, [wire, *arguments])


@pytest.mark.process
def test_a_target_that_passes_ends_with_0_and_a_line_for_each_check() -> None:
    done = conform("--only", "js.grant.o*", "--", *GOOD)
    assert done.exit_code == 0
    first, second, target, summary = done.stdout.splitlines()
    assert first.split() == ["js.grant.once", "MUST", "2.3", "passed"]
    assert second.split() == ["js.grant.other-category", "MUST", "2.3", "passed"]
    assert target.endswith("run_agent.py GoodAgent")
    assert summary.startswith("MUST 2/2 · conforms")


@pytest.mark.process
def test_a_target_that_fails_a_must_ends_with_1_and_the_reason() -> None:
    done = conform("--only", "js.grant.once", "--", *BAD)
    assert done.exit_code == 1
    assert "failed  `Write` ran without an approval after an approval for one call only" in done.stdout
    assert "does not conform" in done.stdout


@pytest.mark.process
def test_only_strict_minds_a_should() -> None:
    only = ("--only", "js.deny.told-reason", "--", *GOOD[:-1], "broken_approvals.KeepsTheReason")
    assert conform(*only).exit_code == 0
    assert conform("--strict", *only).exit_code == 1


@pytest.mark.process
def test_json_is_one_object_with_the_conversations() -> None:
    done = conform("--json", "--only", "js.grant.once", "--", *BAD)
    data = json.loads(done.stdout)
    (result,) = data["results"]
    (name,) = result["conversations"]
    lines = next(each["lines"] for each in data["conversations"] if each["name"] == name)
    assert result["result"] == "failed"
    assert any('"tool_approve"' in line["line"] and line["from"] == "host" for line in lines)


@pytest.mark.process
def test_reports_are_written_in_the_form_that_their_name_says(tmp_path: Path) -> None:
    reports = ("--report", str(tmp_path / "r.json"), "--report", str(tmp_path / "r.md"))
    assert conform("--only", "js.ready.arrives", *reports, "--", *GOOD).exit_code == 0
    assert json.loads((tmp_path / "r.json").read_text())["conforms"] is True
    assert "| `js.ready.arrives` | MUST | 1.1 | passed |  |" in (tmp_path / "r.md").read_text()


@pytest.mark.process
def test_secrets_of_the_environment_do_not_reach_a_report(tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text('import os, sys\nsys.exit(os.environ["MY_API_KEY"])\n')
    done = conform("--json", "--env", "MY_API_KEY=very-secret-0123456789", "--only", "js.ready.arrives",
                   "--", sys.executable, str(agent))  # fmt: skip
    assert "[redacted]" in done.stdout
    assert "very-secret" not in done.stdout


@pytest.mark.process
def test_files_that_the_command_names_are_found_from_where_it_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(AGENTS)
    assert conform("--only", "js.ready.arrives", "--", sys.executable, "good_agent.py").exit_code == 0


@pytest.mark.process
def test_the_command_runs_where_it_is_told_to(tmp_path: Path) -> None:
    agent = "import os; open('here', 'w').write(os.getcwd())"
    conform("--cwd", str(tmp_path), "--only", "js.ready.arrives", "--", sys.executable, "-c", agent)
    assert (tmp_path / "here").read_text() == str(tmp_path)


@pytest.mark.process
def test_a_directory_that_was_given_is_left_as_it_was(tmp_path: Path) -> None:
    assert conform("--cwd", str(tmp_path), "--only", "js.tool.[fp]*", "--", *GOOD).exit_code == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
def test_an_agent_that_refuses_to_start_is_quoted() -> None:
    done = conform("--only", "js.ready.arrives", "--", *GOOD, "--provider", "nobody")
    assert done.exit_code == 1
    assert "the agent refused to start: unknown provider" in done.stdout


def test_on_a_terminal_it_is_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    command.main(["jsonstream", "--list", "--only", "js.ready.once"], standalone_mode=False)
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["check", "tier", "section", "requirement"]
    assert row.split()[:3] == ["js.ready.once", "MUST", "1.1"]


@pytest.mark.parametrize("is_terminal", [False, True])
def test_what_is_under_test_does_nothing_to_the_terminal(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    result = kit.CheckResult(Check("t.bad", "MUST", "1.1", "It is so."), "failed", "it said \x1b[2J")
    conform_run._show(Report("jsonstream", "0.1.0", ("agent",), "2026-01-01", 1.0, (result,), (), Redactor()))
    shown = capsys.readouterr().out
    assert "it said \\x1b[2J" in shown
    assert "\x1b" not in shown


@pytest.mark.process
def test_on_a_terminal_the_progress_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pytest.raises(SystemExit):
        command.main(["jsonstream", "--only", "js.ready.arrives", "--", *GOOD], standalone_mode=False)
    assert "1/1 js.ready.arrives: passed" in capsys.readouterr().err


@pytest.mark.process
def test_prompts_can_be_said_in_other_words(tmp_path: Path) -> None:
    words = tmp_path / "words.toml"
    words.write_text('hello = "Nothing that this agent knows."')
    done = conform("--prompts", str(words), "--only", "js.turn.answer", "--", *GOOD)
    assert done.exit_code == 1
    assert "no `text_delta` for the message" in done.stdout


@pytest.mark.process
@pytest.mark.parametrize("wire", ["jsonstream", "agentproc"])
def test_a_target_that_does_not_start_ends_with_2_and_no_usage(wire: str) -> None:
    done = conform("--", "no-such-program-anywhere", wire=wire)
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: there is no program `no-such-program-anywhere` on `PATH`: install it")


@pytest.mark.parametrize(
    ("wire", "arguments", "problem"),
    [
        ("jsonstream", (), "Name the command to test after `--`"),
        ("jsonstream", ("--only", "js.nothing", "--", "true"), "No check matches js.nothing"),
        ("jsonstream", ("--report", "report.pdf", "--", "true"), "must end in .json or .md"),
        ("jsonstream", ("--report", "no/such/folder/r.md", "--", "true"), "there is no directory"),
        ("jsonstream", ("--env", "NAME", "--", "true"), "needs NAME=VALUE"),
        ("jsonstream", ("--jobs", "0", "--", "true"), "--jobs"),
        ("jsonstream", ("--prompts", "no-such-file.toml", "--", "true"), "cannot be read"),
        ("agentproc", (), "trunkline conform agentproc -- ./my_agent.py"),
        ("agentproc", ("--bridge",), "trunkline conform agentproc --bridge -- my-bridge"),
        ("agentproc", ("--bridge", "--", "true"), "must contain `{profile}`"),
        ("agentproc", ("--bridge", "--", "true", "{profile}"), "must contain `{message}`"),
        ("agentproc", ("--bridge", "--protocol", "0.4", "--", "true"), "`--protocol` has no meaning for --bridge"),
        ("agentproc", ("--output", "json", "--", "true"), "`--output` has no meaning for an agent"),
        ("agentproc", ("--prompt", "helo=x", "--", "true"), "did you mean `hello`?"),
        ("agentproc", ("--prompt", "hello", "--", "true"), "NAME=TEXT"),
        ("agentproc", ("--prompt", "repeat=x", "--", "true"), "must contain `{text}`"),
        ("agentproc", ("--prompts", "no-such-file.toml", "--", "true"), "cannot be read"),
        ("agentproc", ("--only", "br.*", "--", "true"), "No check matches br.*"),
        ("agentproc", ("--report", "report.pdf", "--", "true"), "must end in .json or .md"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_to_do(wire: str, arguments: tuple[str, ...], problem: str) -> None:
    done = conform(*arguments, wire=wire)
    assert done.exit_code == 2
    assert problem in done.stderr


def test_list_shows_the_checks_without_running_anything() -> None:
    done = conform("--list", "--only", "js.ready.on*")
    assert done.stdout.split(maxsplit=3)[:3] == ["js.ready.once", "MUST", "1.1"]
    (check,) = json.loads(conform("--list", "--json", "--only", "js.ready.on*").stdout)
    assert check["requirement"] == "A process sends `ready` exactly once."


@pytest.mark.parametrize("wire", ["jsonstream", "agentproc"])
def test_the_prompts_are_shown_in_the_form_in_which_they_are_read(wire: str, tmp_path: Path) -> None:
    shown = conform("--show-prompts", wire=wire).stdout
    again = tmp_path / "prompts.toml"
    again.write_text(shown, encoding="utf-8")
    assert conform("--prompts", str(again), "--show-prompts", wire=wire).stdout == shown


@pytest.mark.process
def test_ctrl_c_ends_it_with_130_and_leaves_nothing_running(tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(
        f"import os, time\nopen({str(tmp_path / 'pid.new')!r}, 'w').write(str(os.getpid()))\n"
        f"os.rename({str(tmp_path / 'pid.new')!r}, {str(tmp_path / 'pid')!r})\ntime.sleep(600)\n"
    )
    arguments = [sys.executable, "-m", "trunkline", "conform", "jsonstream", "--", sys.executable, str(agent)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        until((tmp_path / "pid").exists)
        target = int((tmp_path / "pid").read_text())
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(target, 0)
