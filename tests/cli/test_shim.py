"""The launcher that passes for aionrs: written by a command, started as hosts start it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import StubProvider
from tests.support.provider_streams import openai_text
from trunkline import __version__
from trunkline.base.config import user_file
from trunkline.cli import agent, app, shim, skills


def write(directory: Path, *options: str) -> Path:
    done = CliRunner().invoke(shim.command, [str(directory), *options])
    assert done.exit_code == 0, done.output
    return Path(done.stdout.rstrip("\n"))


@pytest.fixture
def launcher(tmp_path: Path) -> Path:
    """In a place with a name that a careless script would fall over."""
    return write(tmp_path / "my host's $HOME")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "a work space"
    directory.mkdir()
    return directory


def run(
    launcher: Path, workspace: Path, *arguments: str, text: str = "", environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(launcher), *arguments], cwd=workspace, input=text, env={**os.environ, **(environ or {})},
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """A launcher whose Python only says how it was started: arguments and our variables."""
    python = tmp_path / "python's double"
    python.write_text(
        '#!/bin/sh\nfor argument in "$@"; do printf \'%s\\n\' "$argument"; done\n'
        "env | grep -E '^(TRUNKLINE_|NO_COLOR)' | grep -v -E '^TRUNKLINE_(HOME|CACHE|TEST|TREE)' | sort >&2\n"
    )
    python.chmod(0o755)
    path = tmp_path / "aionrs"
    path.write_text(shim.launcher(str(python)))
    path.chmod(0o755)
    return path


# Writing it


def test_it_is_written_where_it_was_asked_for_and_can_be_run(tmp_path: Path) -> None:
    path = write(tmp_path / "new" / "place")
    assert path == tmp_path / "new" / "place" / "aionrs"
    assert os.access(path, os.X_OK)
    assert [entry.name for entry in path.parent.iterdir()] == ["aionrs"]


def test_our_own_is_written_again(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_text(path.read_text() + "# edited\n")
    assert "# edited" not in write(tmp_path).read_text()


@pytest.mark.parametrize("kind", ["file", "link", "directory"])
def test_what_is_not_ours_stays(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "aionrs"
    if kind == "file":
        path.write_bytes(b"\x7fELF")
    elif kind == "link":
        path.symlink_to(write(tmp_path / "other"))
    else:
        path.mkdir()
    before = os.lstat(path)
    done = CliRunner().invoke(shim.command, [str(tmp_path)])
    assert done.exit_code == 1
    assert "--force" in done.stderr
    assert os.lstat(path).st_ino == before.st_ino


def test_by_force_it_takes_the_place_of_another_and_leaves_a_links_target_alone(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("theirs")
    (tmp_path / "aionrs").symlink_to(target)
    path = write(tmp_path, "--force")
    assert not path.is_symlink()
    assert target.read_text() == "theirs"


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = CliRunner().invoke(shim.command, [str(tmp_path / "file" / "below")])
    assert done.exit_code == 1
    assert "cannot be written" in done.stderr


def test_escapes_in_a_directorys_name_are_not_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = tmp_path / "evil\x1b]0;pwned\x07\nline"
    evil.touch()
    monkeypatch.setattr(sys, "argv", ["trunkline", "shim", str(evil / "below")])
    assert app.run() == 1
    monkeypatch.setattr(sys, "argv", ["trunkline", "shim", str(tmp_path / "good\x1b]0;pwned\x07")])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert app.run() == 0
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert "good\\x1b]0;pwned" in out
    assert "evil\\x1b]0;pwned" in err


@pytest.mark.process
@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_shells_find_nothing_wrong_with_it(launcher: Path, shell: str) -> None:
    if not any(os.access(f"{folder}/{shell}", os.X_OK) for folder in os.get_exec_path()):
        pytest.skip(f"there is no {shell}")
    subprocess.run([shell, "-n", str(launcher)], check=True, timeout=PATIENCE_SECONDS)


# As hosts start it


@pytest.mark.process
def test_its_version_is_said_without_starting_python(launcher: Path, workspace: Path, tmp_path: Path) -> None:
    done = run(launcher, workspace, "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"aionrs 0.1.15 (trunkline {__version__})\n"
    broken = tmp_path / "broken"
    broken.write_text(shim.launcher("/nowhere/python"))
    broken.chmod(0o755)
    assert run(broken, workspace, "--version").stdout == done.stdout


@pytest.mark.process
@pytest.mark.parametrize("arguments", [("--config-path",), ("config", "path")])
def test_the_path_of_the_configuration_is_that_of_a_file_that_is_read(
    launcher: Path, workspace: Path, arguments: tuple[str, ...]
) -> None:
    done = run(launcher, workspace, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, user_file() + "\n", "")


@pytest.mark.process
@pytest.mark.parametrize("arguments", [("--skills-path",), ("skills", "path")])
def test_the_path_of_skills_is_that_of_a_directory_in_which_they_are_found(
    launcher: Path, workspace: Path, arguments: tuple[str, ...]
) -> None:
    done = run(launcher, workspace, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    skill = Path(done.stdout.rstrip("\n"), "greet", "SKILL.md")
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: greet\ndescription: Says hello\n---\nHello.\n")
    assert list(skills.found_in(str(workspace)).skills) == ["greet"]


@pytest.mark.process
def test_a_host_has_a_conversation_with_it(launcher: Path, workspace: Path) -> None:
    message = json.dumps({"type": "message", "msg_id": "m1", "content": "hello there"}) + "\n"
    done = run(
        launcher, workspace,
        "--json-stream", "--provider", "mock", "--model", "gpt-4o", "--max-tokens", "8192", "--max-turns", "30",
        "--system-prompt", "Be kind.\nAnd 'short'.", "--session-id", "conv 1", text=message,
    )  # fmt: skip
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert events[0]["type"] == "ready"
    assert events[0]["session_id"] == "conv 1"
    assert "".join(event["text"] for event in events if event["type"] == "text_delta").strip() == "hello there"
    assert [event["type"] for event in events].count("stream_end") == 1


@pytest.mark.process
async def test_a_host_reaches_its_provider_as_it_did_before(launcher: Path, workspace: Path) -> None:
    (workspace / ".aionrs.toml").write_text(
        '[providers.openai.compat]\napi_path = "/chat/completions"\nmax_tokens_field = "max_completion_tokens"\n'
    )
    (workspace / "AGENTS.md").write_text("Never use tabs.\n")
    message = json.dumps({"type": "message", "msg_id": "m1", "content": "hello", "files": ["notes.txt"]}) + "\n"
    (workspace / "notes.txt").write_text("buy milk\n")
    async with StubProvider() as stub:
        stub.openai(openai_text("Good day"))
        done = await asyncio.to_thread(
            run, launcher, workspace,
            "--json-stream", "--provider", "openai", "--model", "gemini-x", "--max-tokens", "8192",
            "--session-id", "conv-2", "--base-url", f"{stub.url}/v1beta/openai",
            text=message, environ={"OPENAI_API_KEY": "sk-of-the-host"},
        )  # fmt: skip
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert "".join(event["text"] for event in events if event["type"] == "text_delta") == "Good day"
    (request,) = stub.requests
    assert request.target == "/v1beta/openai/chat/completions"
    assert request.headers["authorization"] == "Bearer sk-of-the-host"
    assert (request.json["model"], request.json["max_completion_tokens"]) == ("gemini-x", 8192)
    assert "Never use tabs." in request.json["messages"][0]["content"]
    assert "buy milk" in json.dumps(request.json["messages"][-1])


@pytest.mark.process
def test_a_host_that_resumes_what_is_not_there_gets_an_error_before_ready(launcher: Path, workspace: Path) -> None:
    done = run(launcher, workspace, "--json-stream", "--provider", "mock", "--resume", "unknown")
    (event,) = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 1
    assert event["error"]["code"] == "config_error"


@pytest.mark.process
def test_an_unknown_flag_is_reported_in_the_form_that_the_host_expects(launcher: Path, workspace: Path) -> None:
    done = run(launcher, workspace, "--json-stream", "--provider", "mock", "--teleport")
    (event,) = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 2
    assert "--teleport" in event["error"]["message"]


@pytest.mark.process
def test_modules_in_the_workspace_are_not_imported(launcher: Path, workspace: Path) -> None:
    for name in ("json.py", "trunkline.py"):
        (workspace / name).write_text("raise SystemExit('imported')\n")
    assert run(launcher, workspace, "--config-path").stdout == user_file() + "\n"
    done = run(launcher, workspace, "--json-stream", "--provider", "mock")
    assert done.returncode == 0, done.stderr


@pytest.mark.process
def test_when_python_is_gone_the_host_is_told(tmp_path: Path, workspace: Path) -> None:
    path = tmp_path / "aionrs"
    path.write_text(shim.launcher('/nowhere/it\'s "gone"/python'))
    path.chmod(0o755)
    done = run(path, workspace, "--json-stream")
    assert done.returncode == 127
    assert json.loads(done.stdout)["error"]["message"].startswith('`/nowhere/it\'s "gone"/python` no longer exists.')
    assert "no longer exists" in done.stderr


# What its flags and variables become


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-p", "openai", "-m", "gpt 4", "-b", "http://h"], ["--provider", "openai", "--model", "gpt 4", "--base-url", "http://h"]),
        (["--provider=openai", "--resume=-x"], ["--provider", "openai", "--resume", "-x"]),
        (["--system-prompt", "--version", "--auto-approve"], ["--system-prompt", "--version", "--auto-approve"]),
        (["--system-prompt", ""], ["--system-prompt", ""]),
        (["--project-dir", "/w", "--max-turns", "0"], ["--workspace", "/w", "--max-turns", "0"]),
        (["--agent", "scripted", "--script=tour"], ["--agent", "scripted", "--script", "tour"]),
        (["--auto-approve", "--model"], ["--auto-approve", "--model"]),
        (["--max-turns", "3", "--unknown=1"], ["--max-turns", "3", "--unknown=1"]),
    ],
)  # fmt: skip
def test_flags_are_passed_on_in_our_words(
    told: Path, workspace: Path, arguments: list[str], expected: list[str]
) -> None:
    done = run(told, workspace, "--json-stream", *arguments)
    assert done.stdout.splitlines() == ["-P", "-m", "trunkline", "agent", "--json-stream", *expected]
    assert done.stderr == ""


@pytest.mark.process
def test_every_option_of_the_agent_keeps_its_value(told: Path, workspace: Path) -> None:
    options = [option for option in agent._parser()._actions if option.nargs != 0]
    said = [word for option in options for word in (option.option_strings[0], f"the {option.dest}")]
    done = run(told, workspace, "--json-stream", *said)
    passed = [*done.stdout.splitlines(), *(line.partition("=")[2] for line in done.stderr.splitlines())]
    for option in options:
        value = f"the {option.dest}"
        assert value in passed
        flag = passed[passed.index(value) - 1]
        assert flag == option.option_strings[0] or option.dest in ("profile", "thinking_budget")


@pytest.mark.process
def test_a_key_does_not_become_an_argument(told: Path, workspace: Path) -> None:
    done = run(told, workspace, "--json-stream", "-k", "sk-secret", "--profile", "work")
    assert "sk-secret" not in done.stdout
    assert done.stderr.splitlines() == ["TRUNKLINE_API_KEY=sk-secret", "TRUNKLINE_PROFILE=work"]


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "budget"),
    [
        (["--thinking", "enabled"], ["TRUNKLINE_THINKING_BUDGET=10000"]),
        (["--thinking-budget", "5", "--thinking", "enabled"], ["TRUNKLINE_THINKING_BUDGET=5"]),
        (["--thinking-budget", "5", "--thinking=disabled"], ["TRUNKLINE_THINKING_BUDGET=0"]),
        (["--thinking-budget=0"], ["TRUNKLINE_THINKING_BUDGET=0"]),
        (["--thinking-budget=0", "--thinking", "enabled"], ["TRUNKLINE_THINKING_BUDGET=10000"]),
    ],
)
def test_thinking_becomes_a_budget(told: Path, workspace: Path, arguments: list[str], budget: list[str]) -> None:
    done = run(told, workspace, "--json-stream", *arguments)
    assert done.stderr.splitlines() == budget


@pytest.mark.process
def test_what_has_no_effect_is_said_on_standard_error(told: Path, workspace: Path) -> None:
    arguments = ("--toon", "--log-level", "debug", "--max-tool-call-failure-turns=2", "--thinking", "maybe")
    done = run(told, workspace, "--json-stream", *arguments)
    assert done.stderr.splitlines() == [
        "aionrs: --toon has no effect here",
        "aionrs: --log-level has no effect here",
        "aionrs: --max-tool-call-failure-turns has no effect here",
        "aionrs: --thinking is enabled or disabled, not 'maybe'; it has no effect",
    ]
    assert done.stdout.splitlines()[-1] == "--json-stream"


@pytest.mark.process
def test_the_generic_variables_count_here_unless_something_better_does(told: Path, workspace: Path) -> None:
    theirs = {"PROVIDER": "openai", "MODEL": "m", "BASE_URL": "http://h", "API_KEY": "sk-generic"}
    done = run(told, workspace, "--json-stream", environ=theirs)
    assert done.stderr.splitlines() == [
        "TRUNKLINE_API_KEY=sk-generic",
        "TRUNKLINE_BASE_URL=http://h",
        "TRUNKLINE_MODEL=m",
        "TRUNKLINE_PROVIDER=openai",
    ]
    ours = {**theirs, "TRUNKLINE_PROVIDER": "mock", "TRUNKLINE_API_KEY": "sk-ours"}
    done = run(told, workspace, "--json-stream", "--model", "flag", "--base-url=http://flag", environ=ours)
    assert done.stderr.splitlines() == ["TRUNKLINE_API_KEY=sk-ours", "TRUNKLINE_PROVIDER=mock"]


@pytest.mark.process
def test_the_configuration_that_hosts_write_for_aionrs_is_read(told: Path, workspace: Path, tmp_path: Path) -> None:
    file = tmp_path / "xdg" / "aionrs" / "config.toml"
    file.parent.mkdir(parents=True)
    file.touch()
    done = run(told, workspace, "--json-stream", environ={"XDG_CONFIG_HOME": str(tmp_path / "xdg")})
    assert done.stderr.splitlines() == [f"TRUNKLINE_AIONRS_CONFIG={file}"]


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["fix", "the bug"], ["chat", "-p", "fix the bug"]),
        (["-m", "x", "--", "--help"], ["chat", "--model", "x", "-p", "--help"]),
        ([], ["chat"]),
        (["--agent", "echo", "hello"], ["chat", "echo", "-p", "hello"]),
        (["session", "list"], ["sessions", "list"]),
        (["--list-sessions"], ["sessions", "list"]),
    ],
)
def test_people_get_what_they_would_have_got(
    told: Path, workspace: Path, arguments: list[str], expected: list[str]
) -> None:
    assert run(told, workspace, *arguments).stdout.splitlines() == ["-P", "-m", "trunkline", *expected]


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["auth", "login"], "there is no login"),
        (["--init-config"], "nothing to prepare"),
        (["skills"], "'skills' is not understood here"),
        (["config"], "put it after --"),
        (["--no-color", "session"], "'session' is not understood here"),
        (["--no-color", "session", "list"], "'session list' is not understood here"),
    ],
)
def test_what_cannot_be_done_is_said(told: Path, workspace: Path, arguments: list[str], complaint: str) -> None:
    done = run(told, workspace, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr


@pytest.mark.process
def test_help_says_what_this_is(told: Path, workspace: Path) -> None:
    assert run(told, workspace, "--help").stdout.startswith(f"This is trunkline {__version__}, started under the name")


def test_the_launcher_starts_the_python_that_wrote_it(launcher: Path) -> None:
    assert sys.executable in launcher.read_text()
