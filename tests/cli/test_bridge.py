"""`trunkline bridge`, as it is typed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tests.base.processes import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.config import user_file
from trunkline.chat.delivery.rows import Rows, TextBody
from trunkline.chat.delivery.states import MessageState
from trunkline.chat.delivery.store import ChatStore
from trunkline.cli.bridge import command

RUN = [sys.executable, "-m", "trunkline", "bridge", "run", "terminal"]


def bridge(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


def own(text: str) -> None:
    path = Path(user_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


# Running.


@pytest.mark.process
def test_what_is_piped_in_is_answered_and_the_bridge_ends(tmp_path: Path) -> None:
    done = subprocess.run(
        [*RUN, "--agent", "echo"],
        input=b"hello\n",
        capture_output=True,
        cwd=tmp_path,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"hello\n"), done.stderr
    assert done.stderr == b"Serving terminal. Ctrl-C ends it.\n"


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_turn_with_a_notice(tmp_path: Path, number: signal.Signals) -> None:
    begun = tmp_path / "begun"
    (tmp_path / "agent.yaml").write_text(f'command: sh\nargs: ["-c", "touch {begun}; sleep 60"]\n')
    argv = [*RUN, "--agent", "agentproc:agent.yaml"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as process:
        try:
            assert process.stdin is not None
            process.stdin.write(b"work\n")
            process.stdin.flush()
            until(begun.exists)
            process.send_signal(number)
            said, _ = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            process.kill()
    assert process.returncode == 128 + number
    assert b"(stopped: the bridge " in said


def test_without_a_platform_it_says_which_there_are() -> None:
    result = bridge("run")
    assert result.exit_code == 1
    assert "trunkline bridge run terminal" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("terminal", "--agent", "ech"), "Did you mean `echo`?"),
        (("terminal", "--allow", "12345"), "is not a sender"),
        (("terminal", "--workspace", "/nowhere/at/all"), "is not a directory"),
        (("telegram", "--agent", "echo"), "There is no token"),
        (("matrix", "--agent", "echo"), "`bridge.matrix.homeserver` is missing."),
        (("terminal", "--allow", "telegram:@me"), "Telegram's ids are numbers"),
        (
            ("terminal", "--agent", "agentproc:nope"),
            "The agent `agentproc:nope` cannot answer. There is no profile `nope`",
        ),
        (("terminal", "--agent", "agentproc:codex"), "There is no program `codex` on `PATH`. Install it with"),
        (("terminal", "--agent", "jsonstream:nope"), "There is no program `nope` on `PATH`."),
    ],
)
def test_what_cannot_work_is_said_before_anything_begins(
    arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    result = bridge("run", *arguments)
    assert result.exit_code == 1
    assert said in result.output


def test_a_key_that_is_missing_is_told_with_the_file_to_write_it_in() -> None:
    own('[bridge.telegram]\ntoken_env = "NOWHERE"\n')
    for platform in ("telegram", "matrix"):
        for what in ("run", "check"):
            assert f"`{user_file()}`." in bridge(what, platform, "--agent", "echo", "--allow", "*").output


@pytest.mark.process
def test_an_agent_that_cannot_answer_is_warned_about_if_another_one_answers_first(tmp_path: Path) -> None:
    own('[bridge.agents]\necho = "echo"\nbroken = "agentproc:broken.yaml"\n')
    done = subprocess.run(
        RUN, input=b"hello\n", capture_output=True, cwd=tmp_path, timeout=PATIENCE_SECONDS, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"hello\n"), done.stderr
    path = Path(user_file()).with_name("broken.yaml")
    assert f"warning: the agent `broken` cannot answer. There is no profile `{path}`." in done.stderr.decode()


def test_a_platform_that_does_not_exist_is_wrong_usage() -> None:
    assert bridge("run", "pigeon").exit_code == 2


# Checking.


def test_check_tells_who_is_let_in_and_who_answers(tmp_path: Path) -> None:
    own(f'[bridge]\nworkspace = "{tmp_path}"\nallow = ["telegram:1"]\napprovers = ["telegram:1"]\n')
    result = bridge("check", "terminal", "--agent", "echo")
    assert result.exit_code == 0, result.output
    for line in (
        f"workspace: {tmp_path}",
        "allowed: telegram:1, you, at this terminal",
        "approvers: telegram:1",
        "agent echo: ok (answers first)",
        "platform terminal: ok",
    ):
        assert line in result.output.splitlines()


def test_check_finds_what_is_missing_and_shows_no_secret(tmp_path: Path) -> None:
    own(
        f"""
        [bridge]
        workspace = "{tmp_path}"
        [bridge.agents]
        broken = "jsonstream:'very-secret-token"
        [bridge.telegram]
        token = "very-secret-token"
        api_url = "nowhere"
        """
    )
    result = bridge("check")
    assert result.exit_code == 1
    assert "allowed: nobody" in result.output
    assert "nobody on telegram: write to it" in result.output
    assert f'Then write `allow = ["telegram:12345"]` below `[bridge]` in `{user_file()}`' in result.output
    assert "agent broken (jsonstream:'[redacted]): The command in" in result.output
    assert "platform telegram: `api_url` is not a valid address." in result.output
    assert "very-secret" not in result.output


def test_check_finds_agents_that_cannot_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    own(
        f"""
        [bridge]
        agent = "echo"
        workspace = "{tmp_path}"
        [bridge.agents]
        claude = "agentproc:claude-code"
        program = "jsonstream:nope"
        script = "scripted:tour"
        mine = "agentproc:mine.yaml"
        """
    )
    Path(user_file()).with_name("mine.yaml").write_text("command: /bin/sh agent.sh\n")
    result = bridge("check", "terminal")
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert "agent echo: ok (answers first)" in lines
    assert "agent script (scripted:tour): ok" in lines
    assert (
        "agent claude (agentproc:claude-code): There is no program `claude` on `PATH`. "
        "Install it with `npm install -g @anthropic-ai/claude-code`." in lines
    )
    assert "agent program (jsonstream:nope): There is no program `nope` on `PATH`. Install it, or give" in result.output
    assert "There is no file `agent.sh` for `/bin/sh` to run." in result.output
    (tmp_path / "agent.sh").touch()
    assert "There is no file `agent.sh`" not in bridge("check", "terminal").output


def test_check_names_an_agent_once_and_says_where_to_write_a_platform() -> None:
    result = bridge("check", "--agent", "agentproc:nope")
    assert result.exit_code == 1
    assert "agent agentproc:nope: There is no profile `nope`." in result.output
    assert "platforms: none. Name one: `trunkline bridge run terminal`" in result.output
    assert f"`[bridge.matrix]` into `{user_file()}`." in result.output


def test_check_warns_of_a_door_that_is_wide_open(tmp_path: Path) -> None:
    result = bridge("check", "terminal", "--agent", "echo", "--allow", "*", "--workspace", str(tmp_path))
    assert "allowed: everybody, strangers included" in result.output


def test_check_says_how_to_be_let_in_where_invitations_are_declined(tmp_path: Path) -> None:
    result = bridge("check", "matrix", "--agent", "echo", "--workspace", str(tmp_path))
    assert "nobody on matrix: it declines all invitations. Your client shows your own id in its" in result.output
    assert "write to it" not in result.output


def test_agents_are_offered_to_the_shell(tmp_path: Path) -> None:
    own(f'[bridge]\nworkspace = "{tmp_path}"\n[bridge.agents]\nclever = "agentproc:claude-code"\necho = "echo"\n')
    run = command.commands["run"]
    (agent,) = [each for each in run.params if each.name == "agent"]
    context = click.Context(run)

    def offered(incomplete: str) -> list[str]:
        return [item.value for item in agent.shell_complete(context, incomplete)]

    assert offered("cle") == ["clever"]
    assert offered("ec") == ["echo"]
    assert "agentproc:claude-code" in offered("agentproc:cl")
    own("[bridge")
    assert offered("ec") == ["echo"]


# What was not delivered.


@pytest.fixture
def unknown() -> int:
    """The id of a message of which nobody knows whether it arrived."""
    store = ChatStore()
    rows = Rows(store)
    row = rows.add("telegram", "c", TextBody("hello\x1b there"))
    rows.save(row.replace(state=MessageState.UNKNOWN, problem="the connection broke"))
    store.close()
    return row.id


def test_an_empty_outbox_says_so() -> None:
    assert "Everything has been delivered" in bridge("outbox").output


def test_what_may_not_have_arrived_is_listed(unknown: int) -> None:
    listed = bridge("outbox").output
    assert "unknown" in listed
    assert "the connection broke" in listed
    assert "\x1b" not in listed
    (message,) = json.loads(bridge("outbox", "--json").output)["messages"]
    assert (message["id"], message["state"], message["chat"]) == (unknown, "unknown", "c")


def test_a_person_decides_what_becomes_of_it(unknown: int) -> None:
    assert "It will be sent again." in bridge("outbox", "--retry", str(unknown)).output
    again = bridge("outbox", "--drop", str(unknown))
    assert again.exit_code == 1
    assert f"No message `{unknown}` waits for a decision." in again.output


def test_a_message_is_forgotten_when_somebody_says_so(unknown: int) -> None:
    assert "Forgotten." in bridge("outbox", "--drop", str(unknown)).output
    assert json.loads(bridge("outbox", "--json").output) == {"messages": []}
    assert bridge("outbox", "--drop", "1", "--retry", "1").exit_code == 2
