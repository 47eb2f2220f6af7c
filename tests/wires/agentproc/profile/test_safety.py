"""Profiles that let a message be read as code need `allow_unsafe: true`, and those beside them do not."""

from __future__ import annotations

import pytest
import yaml

from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc import hub
from trunkline.wires.agentproc.profile import Profile
from trunkline.wires.agentproc.profile.check import examine
from trunkline.wires.agentproc.profile.file import parse
from trunkline.wires.agentproc.profile.safety import danger


def read(text: str) -> Profile:
    return parse(text, "p.yaml", "/profiles")


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text)
    return str(caught.value)


PART = "`{{MESSAGE}}` is only a part of this argument, which a program may read as code."
PARTS = [
    ("agent", ["-p", "Answer this: {{MESSAGE}}"]),
    ("agent", ["--say={{MESSAGE}}!"]),
    ("agent", ["{{MESSAGE}}{{MESSAGE}}"]),
    ("agent", ["{{SESSION_NAME}}: {{MESSAGE}}"]),
    ("sh", ["-c", "agent {{MESSAGE}}"]),
    ('sh -c "agent {{MESSAGE}}"', []),
    ("git -c", ["alias.x=!{{MESSAGE}}", "x"]),
    ("npx -c", ["agent {{MESSAGE}}"]),
    ("nix-shell -p x --run", ["agent {{MESSAGE}}"]),
    ("tar", ["--checkpoint-action=exec={{MESSAGE}}"]),
    ("tar", ["-I{{MESSAGE}}"]),
    ("sqlite3 my.db", ["select '{{MESSAGE}}'"]),
    ("env", ["-S", "agent {{MESSAGE}}"]),
    ("env PATH=x{{MESSAGE}} agent", []),
    ("a-program-of-next-year", ["run('{{MESSAGE}}')"]),
]


@pytest.mark.parametrize(("command", "args"), PARTS)
def test_a_message_within_a_longer_argument_is_refused_whatever_the_program(command: str, args: list[str]) -> None:
    complaint = refusal(yaml.safe_dump({"command": command, "args": args}))
    assert f"is refused: {PART}" in complaint
    assert "`allow_unsafe: true` runs it as it is." in complaint


INTERPRETED = [
    ("sh", ["{{MESSAGE}}"]),
    ("sh -c", ["{{MESSAGE}}"]),
    ("sh -c", ['agent "$1"', "sh", "{{MESSAGE}}"]),
    ("/bin/bash -lc", ["agent", "{{MESSAGE}}"]),
    ("/usr/bin/env bash -ec", ["{{SESSION_NAME}}"]),
    ("sudo -u me bash -c", ["agent {{SESSION_ID}}"]),
    ("timeout -k 1 5 python3.11 -Ic", ["{{MESSAGE}}"]),
    ("docker exec box sh -c", ["{{MESSAGE}}"]),
    ("docker run --entrypoint sh image -c", ["{{MESSAGE}}"]),
    ("a-wrapper-of-next-year", ["bash", "-c", "{{MESSAGE}}"]),
    ("find . -exec python3 -c", ["{{MESSAGE}}", ";"]),
    ("python3 -m", ["{{MESSAGE}}"]),
    ("python3", ["{{MESSAGE}}"]),
    ("node", ["--eval={{MESSAGE}}"]),
    ("node -p", ["{{MESSAGE}}"]),
    ("deno eval", ["{{MESSAGE}}"]),
    ("bun run", ["{{MESSAGE}}"]),
    ("perl -e", ["print @ARGV", "{{MESSAGE}}"]),
    ("perl -m Module", ["{{MESSAGE}}"]),
    ("php -f agent.php", ["{{MESSAGE}}"]),
    ("bash -euc ./agent.sh", ["{{MESSAGE}}"]),
    ("awk", ["{{MESSAGE}}"]),
    ("awk -f agent.awk", ["{{MESSAGE}}"]),
    ("sed s/a/b/", ["{{MESSAGE}}"]),
    ("cmd /c agent", ["{{MESSAGE}}"]),
    ("sed -e", ["{{MESSAGE}}"]),
    ("osascript -e", ["{{MESSAGE}}"]),
    ("ssh host agent", ["{{MESSAGE}}"]),
    ("su me -c", ["{{MESSAGE}}"]),
    ("xargs agent", ["{{MESSAGE}}"]),
    ("rbash -c", ["{{MESSAGE}}"]),
    ("ipython", ["-c", "{{MESSAGE}}"]),
    ("python3 -X agent.py", ["-c", "{{MESSAGE}}"]),
    ("python3 -m timeit", ["{{MESSAGE}}"]),
    ("python3 -m pdb -c", ["{{MESSAGE}}", "agent.py"]),
    ("perl -I agent.pl", ["-e", "{{MESSAGE}}"]),
    ("env", ["-S", "bash -c", "{{MESSAGE}}"]),
    ("timeout 5 env", ["{{MESSAGE}}"]),
]


@pytest.mark.parametrize(("command", "args"), INTERPRETED)
def test_what_a_shell_or_interpreter_may_read_as_code_is_refused(command: str, args: list[str]) -> None:
    assert ", which may read it as code." in refusal(yaml.safe_dump({"command": command, "args": args}))


def test_what_to_do_instead_is_told() -> None:
    assert "Name a script right after it" in refusal('command: sh -c\nargs: ["{{MESSAGE}}"]\n')
    assert "Use `stdin: message`, and let the agent read its input." in refusal("command: ssh h agent {{MESSAGE}}\n")


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("agent", ["-p", "{{MESSAGE}}"]),
        ("agent", ["-p", " {{MESSAGE}}"]),
        ("agent", ["--prompt={{MESSAGE}}", "--session={{SESSION_ID}}"]),
        ("agent", ["--message= {{MESSAGE}}"]),
        ("agent --log chats/{{SESSION_NAME}}.log", ["{{MESSAGE}}"]),
        ("agent -p {{MESSAGE}} --shell bash", []),
        ("agent --shell=bash -p", ["{{MESSAGE}}"]),
        ("sh -c", ['agent "$AGENT_MESSAGE"']),
        ("sh -c", ["cd {{PROFILE_DIR}} && ./agent"]),
        ("bash agent.sh", ["{{MESSAGE}}"]),
        ("python3 -u {{PROFILE_DIR}}/bridge.py", ["{{MESSAGE}}"]),
        ("python3 -I -S agent.py {{MESSAGE}}", []),
        ("python3 -m agent", ["{{MESSAGE}}"]),
        ("timeout 5 python3 agent.py", ["{{MESSAGE}}"]),
        ("node --no-warnings agent.js -p", ["{{MESSAGE}}"]),
        ("deno run --allow-net agent.ts", ["{{MESSAGE}}"]),
        ("bun run agent.ts", ["{{MESSAGE}}"]),
        ("bash -euo pipefail ./agent.sh", ["{{MESSAGE}}"]),
        ("bash -l ./agent.sh", ["{{MESSAGE}}"]),
        ("node --enable-source-maps agent.js", ["{{MESSAGE}}"]),
        ("docker exec box sh ./agent.sh", ["{{MESSAGE}}"]),
        ("env FROM={{SESSION_NAME}} agent", ["{{MESSAGE}}"]),
        ("sudo -u me agent", ["{{MESSAGE}}"]),
        ("uv run agent", ["{{MESSAGE}}"]),
        ("docker run --name {{SESSION_NAME}} --rm image", ["{{MESSAGE}}"]),
        ("agent -c {{SESSION_ID}} -p", ["{{MESSAGE}}"]),
        ("agent -c", ["{{MESSAGE}}"]),
        ("agent make view", ["{{MESSAGE}}"]),
        ("python3 -X utf8 agent.py -c", ["{{MESSAGE}}"]),
        ("env -i A=b agent", ["{{MESSAGE}}"]),
    ],
)
def test_a_message_as_an_argument_of_its_own_is_fine(command: str, args: list[str]) -> None:
    profile = read(yaml.safe_dump({"command": command, "args": args}))
    assert (*profile.command, *profile.args) == (*command.split(), *args)


@pytest.mark.parametrize("name", hub.names())
def test_every_profile_that_comes_with_us_is_safe(name: str) -> None:
    assert danger(hub.load(name)) is None


def test_the_chat_does_not_decide_which_program_is_run() -> None:
    assert "`{{MESSAGE}}` would decide which program is run" in refusal('command: "{{MESSAGE}}"\n')
    relative = 'command: ./agent\ncwd: "/rooms/{{SESSION_NAME}}"\n'
    assert "it is a path from `cwd`, where `{{SESSION_NAME}}` would decide" in refusal(relative)
    assert read('command: "{{PROFILE_DIR}}/agent"\ncwd: "/rooms/{{SESSION_NAME}}"\n').cwd
    assert read('command: agent\ncwd: "/rooms/{{SESSION_NAME}}"\n').cwd
    script = 'command: python3 agent.py\ncwd: "/rooms/{{SESSION_NAME}}"\n'
    assert "where `{{SESSION_NAME}}` would decide which script is run" in refusal(script)
    assert read('command: python3 -m agent\ncwd: "/rooms/{{SESSION_NAME}}"\n').cwd


def test_arguments_for_a_resumed_session_are_looked_at_where_they_stand() -> None:
    text = yaml.safe_dump({"command": "sh", "resume_args": ["-c", "{{SESSION_ID}}"], "args": ["agent.sh"]})
    assert "`resume_args[1]` is refused" in refusal(text)


RUNS_INPUT = [
    *("sh", "bash -s", "env bash", "python3 -u", "python -", "python3 -i agent.py", "node", "perl -n"),
    *("sh /dev/stdin", "bash /dev/fd/0", "sh /proc/self/fd/0", "xargs sh -c"),
    *("ssh host bash", "docker exec -i box sh", "python3 -c pass"),
    *("bash //dev/stdin", "bash /tmp/../dev/stdin", "bash ../../dev/stdin", "python3 -m code", "python3 -X agent.py"),
    *("bash -o agent.sh", "awk -f -", "sed -n -f/dev/stdin"),
]


@pytest.mark.parametrize("command", RUNS_INPUT)
@pytest.mark.parametrize("how", ["stdin: message", "protocol: '0.4'", "protocol: auto"])
def test_an_interpreter_without_a_script_gets_no_message_on_its_input(command: str, how: str) -> None:
    program, *args = command.split()
    assert "the message is the input of" in refusal(f"command: {program}\nargs: {args}\n{how}\n")


@pytest.mark.parametrize("command", ["sh", "bash -s", "python3 -u", "node", "sh -c agent"])
def test_without_a_protocol_what_may_run_its_input_gets_none(command: str) -> None:
    profile = read(f"command: {command}\n")
    assert (profile.protocol, profile.command) == ("0.1", tuple(command.split()))


@pytest.mark.parametrize(
    "command",
    [
        *("cat", "sh agent.sh", "python3 -m agent", "python3 {{PROFILE_DIR}}/bridge.py", "awk -f agent.awk"),
        *("python3 dev/stdin.py", "ssh -p 22 host agent", "xargs agent", "su me -c agent", "sudo -u me agent"),
        *("unshare -r agent", "chroot /box agent", "runuser -u me agent", "python3 ../dev/agent.py"),
    ],
)
def test_a_program_or_a_script_may_have_the_message_on_its_input(command: str) -> None:
    assert read(yaml.safe_dump({"command": command, "stdin": "message"})).stdin == "message"


@pytest.mark.parametrize("name", ["PATH", "LD_PRELOAD", "BASH_ENV", "NODE_OPTIONS", "PYTHONSTARTUP", "GIT_SSH_COMMAND"])
def test_a_variable_that_decides_what_is_loaded_cannot_come_from_the_chat(name: str) -> None:
    text = f"command: a\nenv:\n  {name}: 'x {{{{MESSAGE}}}}'\n"
    assert f":3:3: `env.{name}` is refused: `{{{{MESSAGE}}}}` would decide what programs load." in refusal(text)
    assert read(f"{text}allow_unsafe: true\n").env
    assert read("command: a\nenv: {Q: 'you said: {{MESSAGE}}'}\n").env == {"Q": "you said: {{MESSAGE}}"}


@pytest.mark.parametrize(("command", "args"), [*PARTS, *INTERPRETED])
def test_what_is_unsafe_runs_where_the_profile_allows_it_and_a_check_says_so_in_one_sentence(
    command: str, args: list[str]
) -> None:
    profile = read(yaml.safe_dump({"command": command, "args": args, "allow_unsafe": True}))
    assert (*profile.command, *profile.args) == (*command.split(), *args)
    (warning,) = (text for text in examine(profile, {}).warnings if "allow_unsafe" in text)
    assert warning.startswith(("In `args[", "In `command`, ") if args else "In `command`, ")
    assert warning.endswith("as code; `allow_unsafe` lets who writes in the chat run programs that way.")


def test_allowing_what_is_safe_is_told_to_be_needless() -> None:
    (warning,) = read("command: agent\nallow_unsafe: true\n").warnings
    assert warning == "p.yaml:2:1: `allow_unsafe` is not needed: nothing here lets a message be read as code."
