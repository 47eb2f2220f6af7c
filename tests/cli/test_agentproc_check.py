"""`trunkline agentproc check`: what it says about a profile, and how it exits."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from trunkline.cli import agentproc_check

FULL = f"""\
name: weather
description: Tells the weather
command: {sys.executable} -u agent.py
args: [--town, "{{{{MESSAGE}}}}"]
resume_args: [--resume, "{{{{SESSION_ID}}}}"]
cwd: .
env:
  MY_API_KEY: "${{MY_API_KEY}}"
  MODE: fast
  HUB_TOKEN: ghp_0123456789abcdefghij
timeout_secs: 1.5
timeout_sec: 5
"""


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").touch()
    path = tmp_path / "profile.yaml"
    path.write_text(FULL, encoding="utf-8")
    return path


def check(*arguments: str) -> Result:
    return CliRunner().invoke(agentproc_check.command, list(arguments), catch_exceptions=False)


def problems(path: Path, text: str) -> list[str]:
    path.write_text(text, encoding="utf-8")
    result = check(str(path), "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == (1 if found["problems"] else 0)
    assert found["ok"] is not bool(found["problems"])
    problems: list[str] = found["problems"]
    return problems


def test_a_profile_is_explained_line_by_line(profile: Path) -> None:
    result = check(str(profile))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"profile    {profile} (weather)",
        "           Tells the weather",
        f"runs       {sys.executable} -u agent.py --town '{{{{MESSAGE}}}}'",
        f"to resume  {sys.executable} -u agent.py --resume '{{{{SESSION_ID}}}}' --town '{{{{MESSAGE}}}}'",
        f"in         {profile.parent}",
        "input      none; the message is in `AGENT_MESSAGE`",
        "output     AgentProc 0.1: `AGENT_SESSION:`, `AGENT_PARTIAL:` and `AGENT_ERROR:` lines; the rest is the reply",
        "partials   are passed on as they come",
        "time       1.5 s for a turn, then SIGTERM, 5 s later SIGKILL",
        "reply      at most 8000 characters",
        "failures   the user is told",
        "inherits   the whole environment, without `AGENT_*`",
        "env        MY_API_KEY=${MY_API_KEY}",
        "           MODE=fast",
        "           HUB_TOKEN=[hidden]",
        "",
        f"warning    {profile}:12:1: unknown key `timeout_sec` in the profile. Did you mean `timeout_secs`?",
        "warning    `${MY_API_KEY}`, for `env.MY_API_KEY`, is not set here: the agent gets nothing for it.",
        "warning    `env.HUB_TOKEN` holds a secret. Keep it out of the file: write `${HUB_TOKEN}`.",
        "fine       It can work here, with what is said above.",
    ]


def test_programs_get_all_of_it_as_one_object(profile: Path) -> None:
    result = check(str(profile), "--json")
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["ok"] is True
    assert result.exit_code == 0
    assert found["argv"][1:] == ["-u", "agent.py", "--town", "{{MESSAGE}}"]
    assert found["cwd"] == str(profile.parent)
    assert found["program"] == sys.executable
    assert (found["stdin"], found["protocol"], found["inherits"], found["timeout_secs"]) == ("none", "0.1", "all", 1.5)
    assert found["env"]["MY_API_KEY"] == {"value": "${MY_API_KEY}", "missing": ["MY_API_KEY"]}
    assert "ghp_" not in result.output


def test_a_secret_is_not_shown_wherever_it_stands(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "abcdefgh12345678")
    profile.write_text(
        "command: cat\nargs: [--api-key, sk-live-0123456789, 'x=abcdefgh12345678']\nenv: {U: 'http://u:p4ssw0rd9@h/'}\n",
        encoding="utf-8",
    )
    for result in (check(str(profile)), check(str(profile), "--json")):
        assert result.exit_code == 0
        for secret in ("sk-live-0123456789", "abcdefgh12345678", "p4ssw0rd9"):
            assert secret not in result.output
        assert "Everybody on this machine can see the value of `--api-key`" in result.output


def test_a_profile_that_cannot_be_loaded_is_a_problem_with_its_line(profile: Path) -> None:
    (problem,) = problems(profile, "command: sh\nargs: [-c, 'agent {{MESSAGE}}']\n")
    why = "`{{MESSAGE}}` is only a part of this argument, which a program may read as code."
    assert problem.startswith(f"{profile}:2:12: `args[1]` is refused: {why}")
    result = check(str(profile))
    assert result.exit_code == 1
    assert result.stdout == f"problem    {problem}\n"


def test_a_key_that_nobody_knows_is_named_where_another_one_is_missing(profile: Path) -> None:
    (problem,) = problems(profile, "comand: echo hi\n")
    assert problem == (
        f"{profile}: `command` is missing. {profile}:1:1: unknown key `comand` in the profile. Did you mean `command`?"
    )


def test_a_program_at_home_is_found_there_and_a_script_is_not(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(profile.parent))
    (profile.parent / "agent.py").write_text("#!/bin/sh\n")
    (profile.parent / "agent.py").chmod(0o755)
    assert problems(profile, "command: ~/agent.py\n") == []
    assert "`~` is the home directory only where" in problems(profile, "command: sh ~/agent.py\n")[0]


def test_a_program_that_is_not_there_is_a_problem(profile: Path) -> None:
    assert problems(profile, "command: no-such-agent-here\n") == [
        "There is no program `no-such-agent-here` on `PATH`. Install it, or give its full path."
    ]
    assert problems(profile, "command: cat\nenv: {PATH: /nowhere}\n") == [
        "There is no program `cat` on `PATH`. Install it, or give its full path."
    ]


def test_a_file_beside_the_profile_is_found_and_its_right_name_told(
    profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    expected = 'It is next to the profile: write "{{PROFILE_DIR}}/agent.py", or `cwd: .`.'
    assert problems(profile, "command: ./agent.py\n") == [f"There is no program `./agent.py`. {expected}"]
    bare = 'There is no program `agent.py` on `PATH`. It is next to the profile: write "{{PROFILE_DIR}}/agent.py".'
    assert problems(profile, "command: agent.py\n") == [bare]
    assert problems(profile, "command: sh agent.py\n") == [f"There is no file `agent.py` for `sh` to run. {expected}"]
    assert problems(profile, "command: sh agent.py\ncwd: .\n") == []


def test_a_script_that_no_system_can_run_is_a_problem(profile: Path) -> None:
    script = profile.parent / "script"
    script.write_bytes(b"echo hi\n")
    text = f"command: {script}\n"
    assert problems(profile, text)[0].startswith(f"`{script}` is not executable for this user. Run `chmod +x {script}`")
    script.chmod(0o755)
    assert "A script needs a first line such as `#!/bin/sh`" in problems(profile, text)[0]
    script.write_bytes(b"#!/no/such/shell -x\n")
    assert f"`{script}` needs `/no/such/shell`, which does not exist." in problems(profile, text)[0]
    script.write_bytes(b"#!/bin/sh\r\necho hi\r\n")
    assert "has Windows line ends" in problems(profile, text)[0]
    script.write_bytes(b"#!/bin/sh\necho hi\n")
    assert problems(profile, text) == []


def test_a_working_directory_that_is_not_there_is_a_problem(profile: Path) -> None:
    missing = profile.parent / "missing"
    assert problems(profile, "command: cat\ncwd: missing\n") == [
        f"The working directory `{missing}` does not exist. Create it, or correct `cwd`."
    ]
    assert "is not a directory" in problems(profile, "command: cat\ncwd: agent.py\n")[0]
    assert problems(profile, "command: cat\ncwd: rooms/{{SESSION_NAME}}\n") == []
    assert "would lead outside" in problems(profile, "command: cat\ncwd: rooms/{{SESSION_ID}}\n")[0]


def test_a_message_that_may_be_taken_for_an_option_is_a_warning(profile: Path) -> None:
    warning = "A message that begins with `-` may be taken for an option. Put `--` in front of `{{MESSAGE}}`."
    for text, warned in (
        ("command: cat {{MESSAGE}}\n", True),
        ("command: cat -- {{MESSAGE}}\n", False),
        ("command: cat -p {{MESSAGE}}\n", False),
        ("command: cat\nargs: ['m={{MESSAGE}}']\n", False),
    ):
        profile.write_text(text, encoding="utf-8")
        assert (warning in json.loads(check(str(profile), "--json").stdout)["warnings"]) is warned, text


def test_an_input_that_stays_open_is_a_warning_where_the_agent_may_read_it_to_its_end(profile: Path) -> None:
    for text, warned in (
        ("protocol: auto", True),
        ("protocol: '0.4'", False),
        ("protocol: auto\nstdin: message", False),
    ):
        profile.write_text(f"command: cat\npermission: true\n{text}\n", encoding="utf-8")
        warnings = json.loads(check(str(profile), "--json").stdout)["warnings"]
        assert any("would wait for ever" in warning for warning in warnings) is warned, text


def test_what_was_meant_for_a_shell_is_told_apart_from_a_program_that_is_missing(profile: Path) -> None:
    assert "No shell reads `command`. Use `cwd:`" in problems(profile, "command: cd /tmp && ls\n")[0]


def test_nobody_who_reads_it_does_not_make_a_profile_bad(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved, (reading, writing) = os.dup(1), os.pipe()
    os.close(reading)
    profile.write_text("command: cat\n", encoding="utf-8")

    def unread(text: str) -> None:
        os.write(writing, text.encode())

    monkeypatch.setattr("click.echo", unread)
    try:
        with pytest.raises(SystemExit) as ended:
            agentproc_check.command([str(profile)], standalone_mode=False)
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(writing)
    assert ended.value.code == 0


def test_on_a_terminal_no_line_is_longer_than_it_is_wide(
    profile: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    profile.write_text("command: cat\nnome: x\npermission: true\nsession_line_prefix: 'SID:'\n", encoding="utf-8")
    monkeypatch.chdir(profile.parent)
    with pytest.raises(SystemExit) as ended:
        agentproc_check.command(["profile.yaml"], standalone_mode=False)
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "           rest is the reply" in lines


def test_nothing_of_a_profile_reaches_the_terminal_as_a_command(profile: Path) -> None:
    profile.write_text('command: cat\ndescription: "a\\e[31mb"\n', encoding="utf-8")
    output = check(str(profile)).output
    assert "\x1b" not in output
    assert "a\\x1b[31mb" in output


def test_a_program_that_is_talked_to_is_told_as_such() -> None:
    output = check("codex").output
    assert "the answers to what it asks" in output
    assert "read as the `codex-app-server` stream, which may ask for permission" in output


def test_a_stream_that_is_only_read_cannot_ask(profile: Path) -> None:
    profile.write_text("command: cat\nstdin: message\nstream: claude\npermission: true\n", encoding="utf-8")
    output = " ".join(check(str(profile)).output.split())
    assert "has no effect with `stream: claude`" in output
    assert "`stream: claude-control` or `stream: codex-app-server` can ask" in output


def test_a_command_without_a_profile_is_wrong_usage() -> None:
    assert check().exit_code == 2
