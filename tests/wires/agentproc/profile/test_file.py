"""Profiles as files: what is read, what is refused, and where the complaint points."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trunkline.base import document
from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc.profile import Profile
from trunkline.wires.agentproc.profile.file import find, load, parse

EVERYTHING = r"""
name: everything
description: one of each
command: ./my_agent.py --fast
args: [a, "{{MESSAGE}}", 1.50, yes, 0x10, 2024-01-02]
resume_args: [--resume, "{{SESSION_ID}}"]
stdin: message
cwd: ~/work
env:
  MY_API_KEY: "${MY_API_KEY}"
  DEBUG: yes
  LEVEL: 007
env_allowlist: [MY_API_KEY]
timeout_secs: 1.5
kill_grace_secs: 0
max_reply_chars: 10
truncation_suffix: "\n[cut]"
include_stderr_in_reply: true
send_error_reply: false
streaming: no
session_line_prefix: "SID:"
protocol: auto
permission: false
"""


def read(text: str) -> Profile:
    return parse(text, "p.yaml", "/profiles")


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text)
    return str(caught.value)


def test_every_key_is_read() -> None:
    assert read(EVERYTHING) == Profile(
        command=("./my_agent.py", "--fast"),
        args=("a", "{{MESSAGE}}", "1.50", "yes", "0x10", "2024-01-02"),
        resume_args=("--resume", "{{SESSION_ID}}"),
        stdin="message",
        cwd="~/work",
        env={"MY_API_KEY": "${MY_API_KEY}", "DEBUG": "yes", "LEVEL": "007"},
        env_allowlist=("MY_API_KEY",),
        timeout_secs=1.5,
        kill_grace_secs=0.0,
        max_reply_chars=10,
        truncation_suffix="\n[cut]",
        include_stderr_in_reply=True,
        send_error_reply=False,
        streaming=False,
        session_line_prefix="SID:",
        protocol="auto",
        permission=False,
        name="everything",
        description="one of each",
        directory="/profiles",
    )


def test_a_command_is_enough_and_the_rest_has_the_defaults_of_the_protocol() -> None:
    profile = read("command: agent  # a comment\n")
    assert profile == Profile(("agent",), directory="/profiles", protocol="auto")
    assert (profile.timeout_secs, profile.kill_grace_secs, profile.max_reply_chars) == (1800.0, 5.0, 8000)
    assert (profile.stdin, profile.streaming, profile.send_error_reply) == ("none", True, True)
    assert profile.truncation_suffix == "\n\n…(truncated)"


def test_keys_without_a_value_count_as_absent() -> None:
    assert read("command: agent\nargs:\nenv:\ncwd: ~\nstdin:\n") == read("command: agent\n")


def test_a_command_is_split_at_white_space_also_beside_args_and_no_quote_is_read() -> None:
    profile = read("command: |\n  run  'a b'\targ\nargs: ['c d']\n")
    assert (*profile.command, *profile.args) == ("run", "'a", "b'", "arg", "c d")
    assert "`command` is split at every space" in profile.warnings[0]


def test_what_stands_under_agentproc_wins_entirely() -> None:
    profile = read("name: n\ntags: [a]\ncommand: outside\nagentproc:\n  command: inside\n  streaming: false\n")
    assert (profile.command, profile.streaming, profile.name) == (("inside",), False, "n")
    assert profile.warnings == ("p.yaml:3:1: `command` is ignored: it must be under `agentproc`, like the others.",)


def test_a_file_is_read_and_its_directory_remembered(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes("\ufeffcommand: agent\r\ndescription: größer\r\n".encode())
    profile = load(str(path))
    assert (profile.command, profile.description, profile.directory) == (("agent",), "größer", str(tmp_path))
    assert find(str(path)) == profile


def test_a_path_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "p.yaml").write_text("command: agent\n")
    assert find("~/p.yaml").directory == str(tmp_path)
    with pytest.raises(ConfigError, match=f"There is no profile `{tmp_path}/none.yaml`"):
        find("~/none.yaml")


def test_what_others_write_in_braces_is_no_reason_for_a_warning() -> None:
    assert read("command: docker\nargs: ['{{.Name}}', '{{json .}}', '{{MESSAGE}}', '{message}']\n").warnings == ()


def test_zero_seconds_are_no_limit_and_so_is_what_no_clock_can_count() -> None:
    assert read("command: a\ntimeout_secs: 0\n").timeout_secs is None
    profile = read("command: a\ntimeout_secs: 99999999\n")
    assert profile.timeout_secs is None
    assert ":2:1: `timeout_secs` is more than" in profile.warnings[0]


@pytest.mark.parametrize(
    "text",
    ["", "timeout_secs: 5", "args: [a, '{{SESSION_ID}}']", "permission: true", "executor: x", "max_reply_chars: 5"],
)
def test_without_a_protocol_it_is_found_out(text: str) -> None:
    assert read(f"command: agent\n{text}\n").protocol == "auto"


@pytest.mark.parametrize(
    "text",
    [
        *("stdin: none", "stdin: message", "session_line_prefix: 'SID:'", "args: [a, '--say={{MESSAGE}}']"),
        *("resume_args: ['{{MESSAGE}}']", "env: {TOLD: '{{MESSAGE}}'}", "cwd: 'x/{{MESSAGE}}'"),
    ],
)
def test_what_only_protocol_0_1_knows_makes_it_that(text: str) -> None:
    assert read(f"command: agent\n{text}\n").protocol == "0.1"
    assert read(f"command: agent\n{text}\nprotocol: auto\n").protocol == "auto"


@pytest.mark.parametrize("more", ['protocol: "0.4"', "executor: x", "permission: true"])
def test_a_command_of_protocol_0_4_is_never_split(more: str) -> None:
    assert read(f"command: '/opt/my tools/agent'\n{more}\n").command == ("/opt/my tools/agent",)


def test_where_the_protocol_is_not_known_a_path_with_spaces_is_not_split_if_a_program_lies_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "my tools" / "agent"
    program.parent.mkdir()
    text = f"command: '{program}'\n"
    assert parse(text, "p.yaml", None).command == tuple(str(program).split())
    program.touch()
    assert parse(text, "p.yaml", None).command == (str(program),)
    beside = "command: '{{PROFILE_DIR}}/my tools/agent'\n"
    assert parse(beside, "p.yaml", str(tmp_path)).command == ("{{PROFILE_DIR}}/my tools/agent",)
    assert parse(f"{text}stdin: none\n", "p.yaml", None).command == tuple(str(program).split())
    # A relative one lies where the agent runs.
    relative = "command: './my tools/agent'\n"
    assert parse(relative, "p.yaml", str(tmp_path)).command == ("./my", "tools/agent")
    assert parse(f"{relative}cwd: .\n", "p.yaml", str(tmp_path)).command == ("./my tools/agent",)
    monkeypatch.chdir(tmp_path)
    assert parse(relative, "p.yaml", None).command == ("./my tools/agent",)
    # A name is one of the `PATH`, whatever lies here.
    assert parse("command: 'my tools/agent'\n", "p.yaml", None).command == ("my", "tools/agent")


def test_a_directory_for_each_session_beside_the_profile_is_no_mistake() -> None:
    assert read("command: a\ncwd: '{{PROFILE_DIR}}/chats/{{SESSION_NAME}}'\n").warnings == ()


def test_a_profile_of_the_public_hub_is_taken_without_a_word() -> None:
    profile = read(
        "name: n\ncli: x\ncli_install: |\n  get x\nagentproc:\n  executor: x\n  command: python3\n"
        "  args: ['{{PROFILE_DIR}}/bridge.py']\n  env:\n    X_KEY: '${X_KEY}'\n  env_allowlist: [X_KEY]\ntested: us\n"
    )
    assert (profile.command, profile.protocol, profile.warnings) == (("python3",), "auto", ())


@pytest.mark.parametrize("written", ['"0.4"', "0.4", "'0.4'"])
def test_the_protocol_may_be_written_as_a_number(written: str) -> None:
    assert read(f"command: a\nprotocol: {written}\n").protocol == "0.4"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "p.yaml: the profile is empty. Write `command: PROGRAM`."),
        ("- a\n", "p.yaml:1:1: the profile must be a mapping. Write `command: PROGRAM`."),
        ("args: []\n", "p.yaml: `command` is missing. Write `command: PROGRAM`."),
        (
            "comand: echo hi\n",
            "p.yaml: `command` is missing. p.yaml:1:1: unknown key `comand` in the profile. Did you mean `command`?",
        ),
        (
            "agentproc:\n  cmd: agent\n",
            "p.yaml:2:3: unknown key `cmd` in `agentproc`. Did you mean `command`?",
        ),
        ("command: '  '\n", "p.yaml:1:1: `command` must not be empty."),
        ("command: yes\n", "p.yaml:1:1: `command` must be a string, not a boolean. Put it in quotes."),
        (
            "command: [a, b]\n",
            ":1:1: `command` must be a string, not a list. Write the program alone here, and the rest as `args`.",
        ),
        (
            "agentproc:\n  command: 5\n",
            "p.yaml:2:3: `agentproc.command` must be a string, not a number. Put it in quotes.",
        ),
        ("executor: x\n", "p.yaml:1:1: `executor` is not known here. Name the program to run as `command`."),
        (
            "command: a\nargs: b\n",
            ":2:1: `args` must be a list, not a string. Write one item to a line, each after `- `.",
        ),
        ("command: a\nargs:\n- b\n- [c]\n", ":4:3: `args[1]` must be a string, not a list."),
        ("command: a\nargs: [~]\n", ':2:8: `args[0]` must be a string, not null. Write "" for an empty text'),
        ("command: a\nenv: [b]\n", ":2:1: `env` must be a mapping, not a list. Write `NAME: value`, one to a line."),
        ("command: a\nenv:\n  B:\n", ':3:3: `env.B` must be a string, not null. Write "" for an empty value'),
        ("command: a\nenv: {A=B: c}\n", ":2:7: `env.A=B` cannot be the name of a variable. Rename it."),
        ("command: a\nenv_allowlist: [$HOME]\n", ":2:17: `env_allowlist[0]` must be the name of a variable."),
        (
            "command: a\nstdin: mesage\n",
            ":2:1: `stdin` must be one of `none`, `message`, not `mesage`. Did you mean `message`?",
        ),
        ("command: a\nstdin: true\n", ":2:1: `stdin` must be one of `none`, `message`, not `true`."),
        (
            "command: a\ntimeout_secs: '5'\n",
            ":2:1: `timeout_secs` must be a number of seconds, 0 or more, not a string. Remove",
        ),
        ("command: a\ntimeout_secs: -1\n", ":2:1: `timeout_secs` must be a number of seconds, 0 or more, not `-1`."),
        (
            "command: a\ntimeout_secs: 1:30\n",
            ":2:1: `timeout_secs` must be a number of seconds, 0 or more, not `1:30`.",
        ),
        ("command: a\ntimeout_secs: .inf\n", ":2:1: `timeout_secs` must be a number of seconds"),
        ("command: a\ntimeout_secs: nan\n", ":2:1: `timeout_secs` must be a number of seconds"),
        ("command: a\nkill_grace_secs: 86400\n", ":2:1: `kill_grace_secs` must be at most 3600 seconds."),
        ("command: a\nmax_reply_chars: 1.5\n", ":2:1: `max_reply_chars` must be a whole number, 0 or more."),
        (
            "command: a\nstreaming: 'false'\n",
            ":2:1: `streaming` must be `true` or `false`, not a string. Remove the quotes.",
        ),
        ("command: a\nsend_error_reply: 1\n", ":2:1: `send_error_reply` must be `true` or `false`, not a number."),
        ("command: a\nsession_line_prefix: ''\n", ":2:1: `session_line_prefix` must not be empty."),
        ('command: a\nsession_line_prefix: "a\\nb"\n', ":2:1: `session_line_prefix` must not hold a line feed"),
        ("command: a\nprotocol: 0.2\n", ":2:1: `protocol` must be one of `0.1`, `0.4`, `auto`, not `0.2`."),
        ("command: a\ncwd: !there x\n", ":2:1: `cwd` must be a string, not a tagged value."),
        (
            "command: a\nname: &a [x]\ncwd: *a\n",
            ":3:1: `cwd` must be a string, not a list.",
        ),
        (
            "command: a\nargs: [b]\ncommand: c\n",
            ":3:1: the profile has the key `command` twice. It is in line 1 already.",
        ),
        ("command: a\nenv:\n  A: b\n  A: c\n", ":4:3: `env` has the key `A` twice. It is in line 3 already."),
        (
            "command: a\n<<: {cwd: b}\n",
            ":2:1: the profile merges another mapping (`<<`), which is not read. Write the keys out.",
        ),
        ("command: a\n---\ncommand: b\n", ":2:1: another document begins here. A file holds one document."),
        ("command: a\nargs: [-p, {{MESSAGE}}]\n", 'needs quotes, as in "{{MESSAGE}}".'),
        ("command: a\ncwd: {{PROFILE_DIR}}/x\n", 'needs quotes, as in "{{MESSAGE}}".'),
        ("command: a\nargs:\n\t- b\n", "Indent with spaces, not with tabs."),
        ("command: 'a\n", "p.yaml:1:12: not YAML: "),
        (
            "command: a\n  args: [b]\n",
            "p.yaml:2:7: not YAML: this line does not fit the one above it. Keys that belong together begin in the",
        ),
        ("env:\n    A: b\n  C: d\ncommand: a\n", ":3:3: not YAML: this line does not fit the one above it."),
        (
            "command: a\ndescription: it: is\n",
            ":2:16: not YAML: a second `: ` in this line. Put a string that contains one in quotes.",
        ),
        ('command: "a\\0b"\n', ":1:1: `command` holds a NUL character"),
        ("command: \ud800\n", ":1:10: not UTF-8."),
        ("command: a\ncwd: " + "[" * 100_000, ":2:206: the profile is nested deeper than"),
        ("command: a\ncwd: " + "x" * document.MAX_BYTES, "p.yaml: the profile is larger than 4194304 bytes."),
        (
            "command: &a " + "x" * 9999 + "\nargs: [" + "*a, " * 500 + "]",
            "the profile has aliases that expand to more than",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_line_and_key(text: str, complaint: str) -> None:
    assert complaint in refusal(text)


def test_aliases_are_followed() -> None:
    assert read("command: a\nargs: &a [x, y]\nresume_args: *a\n").resume_args == ("x", "y")
    assert read("command: &a agent\nargs: [*a, &b x, *b]\n").args == ("agent", "x", "x")


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("timeout_sec: 5", "p.yaml:2:1: unknown key `timeout_sec` in the profile. Did you mean `timeout_secs`?"),
        ("zzz: 5", "p.yaml:2:1: unknown key `zzz` in the profile."),
        ("environment: {A: b}", "p.yaml:2:1: unknown key `environment` in the profile. Did you mean `env`?"),
        ("enviroment: {A: b}", "p.yaml:2:1: unknown key `enviroment` in the profile. Did you mean `env`?"),
        ("workdir: x", "p.yaml:2:1: unknown key `workdir` in the profile. Did you mean `cwd`?"),
        ("arguments: [x]", "p.yaml:2:1: unknown key `arguments` in the profile. Did you mean `args`?"),
        ("timeout: 5", "p.yaml:2:1: unknown key `timeout` in the profile. Did you mean `timeout_secs`?"),
        (
            "args: [x, '{{ MESSAGE }}']",
            "p.yaml:2:11: `args[1]` holds `{{ MESSAGE }}`, which is not a placeholder and is left as it is. Did",
        ),
        ("resume_args: ['{{session-id}}']", "p.yaml:2:15: `resume_args[0]` holds `{{session-id}}`, which is not a"),
        ("cwd: 'x/{{session}}'", "p.yaml:2:1: `cwd` holds `{{session}}`, which is not a placeholder"),
        (
            "env: {A: '{{UNKNOWN}}'}",
            "p.yaml:2:7: `env.A` holds `{{UNKNOWN}}`, which is not a placeholder and is left as it is. The",
        ),
        ("budget_secs: 5", "p.yaml:2:1: `budget_secs` is not used here. Use `timeout_secs`"),
        ("env: {AGENT_MESSAGE: x}", "p.yaml:2:7: `env.AGENT_MESSAGE` has no effect"),
        (
            "permission: true\nstdin: none",
            "p.yaml:2:1: `permission` belongs to protocol 0.4. If the agent speaks that, add `prot",
        ),
        ("permission: true\nprotocol: '0.1'", "p.yaml:2:1: `permission` has no effect"),
        ("stdin: message\nprotocol: '0.4'", 'p.yaml:2:1: `stdin` has no effect with `protocol: "0.4"`'),
        ("args: ['{{MESSAGE}}']\nprotocol: '0.4'", "p.yaml:2:1: `args` holds `{{MESSAGE}}`, which is not needed"),
        (
            "permission: true\nprotocol: auto\nstdin: message",
            "p.yaml:2:1: `permission` has no effect with `stdin: mes",
        ),
        ("cwd: 'x/{{SESSION_ID}}'", "p.yaml:2:1: `cwd` lets no session begin: `{{SESSION_ID}}` is empty"),
        ("cwd: '{{SESSION_NAME}}/x'", "p.yaml:2:1: `cwd` begins with `{{SESSION_NAME}}`: whoever writes decides"),
    ],
)
def test_what_can_be_passed_over_is_a_warning_with_line_and_key(text: str, warning: str) -> None:
    warnings = read(f"command: a\n{text}\n").warnings
    assert any(found.startswith(warning) for found in warnings), warnings


@pytest.mark.parametrize("command", ["cd /tmp && ls", "FOO=1 ./agent.sh", "./agent.sh | cat", "a > b"])
def test_what_only_a_shell_understands_is_a_warning(command: str) -> None:
    (warning,) = read(f"command: '{command}'\n").warnings
    assert "no shell reads it. Use `cwd:` for a directory and `env:` for variables" in warning
    assert read(f"command: sh -c '{command}'\n".replace("'", '"')).command[0] == "sh"


def test_what_a_file_says_about_itself_is_no_reason_for_a_warning() -> None:
    text = (
        "command: a\ncli: x\ntested: [1]\nmaintainer: me\ntags: []\nnotes: n\nversion: 2\nhomepage: h\nx-own: {a: b}\n"
    )
    assert read(text).warnings == ()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read: No such file or directory\."):
        load(str(tmp_path / "none.yaml"))
    with pytest.raises(ConfigError, match=r"cannot be read: it is a directory\."):
        load(str(tmp_path))
    with pytest.raises(ConfigError, match=r"cannot be read: No such file or directory\."):
        load("a\0b")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match=r"cannot be read: it is not a file\."):
        load(str(tmp_path / "pipe"))
    (tmp_path / "latin.yaml").write_bytes(b"command: a\ndescription: gr\xf6\xdfer\n")
    with pytest.raises(ConfigError, match=r"latin\.yaml:2:16: not UTF-8\. Save the file as UTF-8\."):
        load(str(tmp_path / "latin.yaml"))


def test_without_the_fast_parser_everything_is_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = read(EVERYTHING)
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert read(EVERYTHING) == fast
    assert ":2:206: the profile is nested deeper than" in refusal("command: a\ncwd: " + "[" * 300)


@given(st.text(alphabet=st.characters(codec=None), max_size=60) | st.text("abc:-[]{}#&*!|>'\"%@` \n\t,?", max_size=60))
def test_whatever_the_text_it_is_a_profile_or_refused(text: str) -> None:
    for candidate in (text, f"command: a\n{text}"):
        try:
            assert read(candidate).command
        except ConfigError:
            pass


def test_a_name_that_is_no_file_is_one_of_ours_or_refused_with_a_suggestion(tmp_path: Path) -> None:
    assert find("claude-code").command[0] == "claude"
    with pytest.raises(ConfigError, match=r"There is no profile `claude-cod`\. Did you mean `claude-code`\?"):
        find("claude-cod")
    with pytest.raises(ConfigError, match=r"There is no profile `zzz`\. See `trunkline agentproc hub list`"):
        find("zzz")
    with pytest.raises(ConfigError, match=r"none\.yaml`\. Check the path\."):
        find(str(tmp_path / "none.yaml"))
    with pytest.raises(ConfigError, match=r"is a directory\. Give the path of a profile in it\."):
        find(str(tmp_path))


def test_a_stream_that_nobody_reads_is_refused_with_a_suggestion() -> None:
    from trunkline.wires.agentproc import streams

    known = streams.names()[0]
    assert read(f"command: a\nstream: {known}\nargs: ['{{{{MESSAGE}}}}']\n").stream == known
    complaint = refusal(f"command: a\nstream: {known}x\n")
    assert ":2:1: `stream` must be one of " in complaint
    assert f"Did you mean `{known}`?" in complaint
    warnings = read(f"command: a\nstream: {known}\nprotocol: '0.4'\n").warnings
    assert warnings == (f"p.yaml:3:1: `protocol` has no effect: the output is read as `stream: {known}`.",)


def test_programs_that_import_it_from_its_former_place_go_on() -> None:
    former = import_module("trunkline.wires.agentproc.profile_file")
    assert (former.find, former.load, former.parse) == (find, load, parse)
