"""Profiles that would let a message run what it likes: they are refused, and those beside them are not."""

from __future__ import annotations

import pytest
import yaml

from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc.profile import Profile
from trunkline.wires.agentproc.profile.file import parse


def read(text: str) -> Profile:
    return parse(text, "p.yaml", "/profiles")


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("sh", ["-c", "agent {{MESSAGE}}"]),
        ("bash", ["-oc", "pipefail", "{{MESSAGE}}"]),
        ("bash", ["-Oc", "extglob", "{{MESSAGE}}"]),
        ("bash", ["-co", "pipefail", "{{MESSAGE}}"]),
        ("bash-static -c", ["{{MESSAGE}}"]),
        ("git -c", ["alias.x=!{{MESSAGE}}", "x"]),
        ("git --no-pager -c", ["alias.x=!{{MESSAGE}}", "x"]),
        ("bash -lc", ["agent '{{MESSAGE}}'"]),
        ("/usr/bin/env bash -ec", ["agent {{SESSION_NAME}}"]),
        ("busybox sh -c", ["agent {{SESSION_ID}}"]),
        ("bash -euo pipefail -c", ["agent {{MESSAGE}}"]),
        ("zsh -c --", ["{{MESSAGE}}"]),
        ("fish", ["--command=agent {{MESSAGE}}"]),
        ("docker exec box sh -c", ["agent {{MESSAGE}}"]),
        ("my-wrapper", ["bash", "-c", "agent {{MESSAGE}}"]),
        ('sh -c "agent {{MESSAGE}}"', []),
        ("sh {{MESSAGE}}", []),
        ("{{MESSAGE}}", []),
        ("env {{MESSAGE}}", []),
        ("env -S", ["agent {{MESSAGE}}"]),
        ("env PATH={{MESSAGE}} agent", []),
        ("python3 -c", ["print('{{MESSAGE}}')"]),
        ("python3.11 -Ic", ["{{MESSAGE}}"]),
        ("python -m {{MESSAGE}}", []),
        ("node -e", ["log('{{MESSAGE}}')"]),
        ("node", ["--eval=log('{{MESSAGE}}')"]),
        ("node -pe", ["log('{{MESSAGE}}')"]),
        ("node -ep", ["log('{{MESSAGE}}')"]),
        ("lksh -c", ["{{MESSAGE}}"]),
        ("yash -c", ["{{MESSAGE}}"]),
        ("posh -c", ["{{MESSAGE}}"]),
        ("oksh -c", ["{{MESSAGE}}"]),
        ("osh -c", ["{{MESSAGE}}"]),
        ("elvish -c", ["{{MESSAGE}}"]),
        ("vi -c", ["{{MESSAGE}}"]),
        ("view -c", ["{{MESSAGE}}"]),
        ("python3 -m timeit", ["{{MESSAGE}}"]),
        ("python3 -Imtimeit -n 1", ["{{MESSAGE}}"]),
        ("ipython -c", ["{{MESSAGE}}"]),
        ("irb -e", ["{{MESSAGE}}"]),
        ("socat -", ["EXEC:{{MESSAGE}}"]),
        ("tar -cf x.tar --checkpoint=1", ["--checkpoint-action=exec={{MESSAGE}}", "."]),
        ("tar --to-command", ["{{MESSAGE}}", "-xf", "x.tar"]),
        ("tar", ["-I{{MESSAGE}}", "-xf", "x.tar"]),
        ("perl -ne", ["print '{{MESSAGE}}'"]),
        ("perl -e", ["print @ARGV", "{{MESSAGE}}"]),
        ("ruby -e", ["puts '{{MESSAGE}}'"]),
        ("awk", ["/{{MESSAGE}}/"]),
        ("timeout 5 python -c", ["{{MESSAGE}}"]),
        ("ssh host agent", ["{{MESSAGE}}"]),
        ("su me -c", ["agent {{MESSAGE}}"]),
        ("runuser -c", ["agent {{MESSAGE}}"]),
        ("script -qc", ["agent {{MESSAGE}}"]),
        ("flock /tmp/lock -c", ["agent {{MESSAGE}}"]),
        ("npx -c", ["agent {{MESSAGE}}"]),
        ("npx -y -p pkg", ["--call=agent {{MESSAGE}}"]),
        ("npx -y {{MESSAGE}}", []),
        ("npm exec -c", ["agent {{MESSAGE}}"]),
        ("npm exec --package x", ["--call", "agent {{MESSAGE}}"]),
        ("pnpm exec -c agent", ["{{MESSAGE}}"]),
        ("nix-shell -p x --run", ["agent {{MESSAGE}}"]),
        ("nix-shell", ["--command", "agent {{MESSAGE}}"]),
        ("env -S", ["sh -c", "{{MESSAGE}}"]),
        ("sudo", ["env", "--split-string=bash -c", "{{MESSAGE}}"]),
        ("xargs sh -c", ["agent {{MESSAGE}}"]),
        ("timeout -k 1 5 sh -c", ["agent {{MESSAGE}}"]),
        ("timeout 5 {{MESSAGE}}", []),
        ("nice -n 5 {{MESSAGE}}", []),
        ("sudo -u me {{MESSAGE}}", []),
        ("uv run {{MESSAGE}}", []),
        ("uvx {{MESSAGE}}", []),
        ("docker run {{MESSAGE}}", []),
        ("stdbuf -o0 bash -c", ["agent {{MESSAGE}}"]),
        ("tmux new-session", ["agent {{MESSAGE}}"]),
        ("screen -dm", ["agent {{MESSAGE}}"]),
        ("parallel agent", ["{{MESSAGE}}"]),
        ("watch agent", ["{{MESSAGE}}"]),
        ("docker run image sh -c", ["agent {{MESSAGE}}"]),
        ("docker run --entrypoint sh image -c", ["agent {{MESSAGE}}"]),
        ("kubectl exec pod -- sh -c", ["agent {{MESSAGE}}"]),
        ("uv run sh -c", ["agent {{MESSAGE}}"]),
        ("uv run --with x python -c", ["{{MESSAGE}}"]),
        ("find . -exec sh -c", ["agent {{MESSAGE}}", ";"]),
        ("find . -exec", ["{{MESSAGE}}", ";"]),
        ("find . -exec python3 -c", ["{{MESSAGE}}", ";"]),
        ("expect -c", ["spawn {{MESSAGE}}"]),
        ("osascript -e", ["say {{MESSAGE}}"]),
        ("sed -e", ["s/a/{{MESSAGE}}/"]),
        ("sed", ["s/a/{{MESSAGE}}/"]),
        ("sqlite3 my.db", ["select '{{MESSAGE}}'"]),
        ("psql -c", ["select '{{MESSAGE}}'"]),
        ("jq -n", ['"{{MESSAGE}}"']),
        ("jq --arg a b", [".{{MESSAGE}}"]),
    ],
)
def test_a_message_that_something_would_run_is_refused(command: str, args: list[str]) -> None:
    text = yaml.safe_dump({"command": command, "args": args})
    assert "is refused. `{{" in refusal(text)
    key = "args" if args else "command"
    assert f"`{key}" in refusal(text)


def test_what_goes_to_a_shell_is_told_with_who_hands_it_over() -> None:
    for command in ("npx -y -c", "npm exec -c", "nix-shell --run", "su -c"):
        complaint = refusal(yaml.safe_dump({"command": command, "args": ["agent {{MESSAGE}}"]}))
        assert f"is handed to a shell by `{command.split()[0]}`" in complaint


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("sh -c", ['agent "$1"', "sh", "{{MESSAGE}}"]),
        ("sh -c", ['"$@" a "b" c', "sh", "{{MESSAGE}}"]),
        ("env sh -c", ['agent "$1"', "sh", "{{MESSAGE}}"]),
        ("sh -c", ["cd {{PROFILE_DIR}} && ./agent"]),
        ("bash agent.sh", ["{{MESSAGE}}"]),
        ("bash -o pipefail agent.sh", ["{{MESSAGE}}"]),
        ("agent --shell bash -p", ["{{MESSAGE}}"]),
        ("python3 agent.py {{MESSAGE}}", []),
        ("python3 -m agent", ["{{MESSAGE}}"]),
        ("python3 -c", ["import sys", "{{MESSAGE}}"]),
        ("node agent.js -p", ["{{MESSAGE}}"]),
        ("node -e", ["1", "--", "{{MESSAGE}}"]),
        ("bun run agent.ts", ["{{MESSAGE}}"]),
        ("env FROM={{SESSION_NAME}} agent", ["{{MESSAGE}}"]),
        ("flock /tmp/lock agent", ["{{MESSAGE}}"]),
        ("flock /tmp/{{SESSION_NAME}}.lock agent", ["{{MESSAGE}}"]),
        ("npx -y -p pkg agent -c", ["{{MESSAGE}}"]),
        ("npm exec agent -- -c", ["{{MESSAGE}}"]),
        ("nix-shell -p agent --run", ['agent "$AGENT_MESSAGE"']),
        ("env -S", ["agent --fast", "{{MESSAGE}}"]),
        ("env -S agent", ["{{MESSAGE}}"]),
        ("timeout -k 1 5 agent", ["{{MESSAGE}}"]),
        ("nice -n 5 agent", ["{{MESSAGE}}"]),
        ("sudo -u me agent", ["{{MESSAGE}}"]),
        ("uv run agent", ["{{MESSAGE}}"]),
        ("docker run --name {{SESSION_NAME}} --rm image", ["{{MESSAGE}}"]),
        ("find . -name", ["{{MESSAGE}}"]),
        ("jq -n --arg m {{MESSAGE}} $m", []),
        ("gemini -p", ["{{MESSAGE}}"]),
        ("tar -cf", ["{{SESSION_NAME}}.tar", "."]),
        ("python3 -mcode_m", ["{{MESSAGE}}"]),
    ],
)
def test_a_message_as_an_argument_of_its_own_is_fine(command: str, args: list[str]) -> None:
    profile = read(yaml.safe_dump({"command": command, "args": args}))
    assert (*profile.command, *profile.args) == (*command.split(), *args)


def test_arguments_for_a_resumed_session_are_looked_at_where_they_stand() -> None:
    text = yaml.safe_dump(
        {"command": "sh", "resume_args": ["-c", "agent --resume {{SESSION_ID}}"], "args": ["agent.sh"]}
    )
    assert "`resume_args[1]` is refused" in refusal(text)


@pytest.mark.parametrize("command", ["sh", "bash -s", "env bash", "python3 -u", "python -", "node", "perl -n"])
@pytest.mark.parametrize("how", ["stdin: message", "protocol: '0.4'", "protocol: auto"])
def test_an_interpreter_that_would_run_the_message_on_its_input_is_refused(command: str, how: str) -> None:
    program, *args = command.split()
    assert "The message comes on the input of" in refusal(f"command: {program}\nargs: {args}\n{how}\n")


@pytest.mark.parametrize("command", ["sh", "bash -s", "python3 -u", "node", "script", "ssh host"])
def test_without_a_protocol_what_would_run_its_input_gets_none(command: str) -> None:
    profile = read(f"command: {command}\n")
    assert (profile.protocol, profile.command) == ("0.1", tuple(command.split()))


@pytest.mark.parametrize(
    "command",
    [
        *("ssh host", "ssh -p 22 host bash", "xargs -I{} sh -c {}", "xargs sh -c", "xargs -n 1 env", "sqlite3 my.db"),
        *("psql", "parallel", "at now", "su me", "nix-shell -p x", "docker exec -i box sh", "sudo -s", "sudo -u me -i"),
        *("sudo --login", "doas -s", "chroot /srv", "unshare -r", "python3 -m code", "python3 -masyncio", "ipython"),
        *("irb", "socat - EXEC:bash", "socat - system:sh,pty", "vi", "view -", "osh", "env yash"),
    ],
)
def test_a_program_that_would_run_its_input_in_a_shell_is_refused(command: str) -> None:
    assert "The message comes on the input of" in refusal(f"command: {command}\nstdin: message\n") or (
        "`xargs` puts it into the arguments" in refusal(f"command: {command}\nstdin: message\n")
    )


@pytest.mark.parametrize(
    "command",
    [
        *("ssh -p 22 host agent", "xargs agent", "xargs -I{} agent {}", "su me -c agent", "sudo -s agent"),
        *("sudo -u me agent", "chroot /srv agent", "socat - EXEC:agent", "socat - TCP:localhost:1"),
    ],
)
def test_a_program_that_hands_its_input_on_may_have_the_message_there(command: str) -> None:
    assert read(f"command: {command}\nstdin: message\n").stdin == "message"


@pytest.mark.parametrize(
    "command",
    [
        *("sh agent.sh", "sh - agent.sh", "bash -c cat", "python3 -m agent", "python3 -c pass", "cat", "perl -epass"),
        *("tar -xf -", "awk -f agent.awk", "python3 dev/stdin.py", "irb agent.rb"),
    ],
)
def test_a_program_that_reads_its_input_may_have_the_message_there(command: str) -> None:
    assert read(f"command: {command}\nstdin: message\n").stdin == "message"


@pytest.mark.parametrize("name", ["PATH", "LD_PRELOAD", "BASH_ENV", "NODE_OPTIONS", "PYTHONSTARTUP", "GIT_SSH_COMMAND"])
def test_a_variable_that_programs_run_cannot_come_from_the_chat(name: str) -> None:
    complaint = refusal(f"command: a\nenv:\n  {name}: 'x {{{{MESSAGE}}}}'\n")
    assert f"line 3: `env.{name}` must not hold `{{{{MESSAGE}}}}`" in complaint
    assert read("command: a\nenv: {Q: '{{MESSAGE}}'}\n").env == {"Q": "{{MESSAGE}}"}


@pytest.mark.parametrize(
    "command",
    [
        "sh /dev/stdin",
        "bash /dev/fd/0",
        "sh //dev//stdin",
        "sh /dev/./stdin",
        "sh /proc/thread-self/fd/0",
        "sh /proc/self/fd/00",
        "sh ./../../dev/stdin",
        "bash --rcfile /dev/stdin agent.sh",
        "awk -f /dev/stdin",
        "awk -f -",
        "sed --file=/dev/stdin",
        "python3 /dev/stdin",
        "python3 -i -c pass",
        "python3 -Ii agent.py",
        "node -i a.js",
    ],
)
def test_an_interpreter_that_would_read_the_message_as_a_script_is_refused(command: str) -> None:
    assert "input" in refusal(yaml.safe_dump({"command": command, "stdin": "message"}))


def test_a_program_in_a_directory_that_the_chat_chooses_is_refused() -> None:
    assert "which program" in refusal('command: ./agent\ncwd: "/rooms/{{SESSION_NAME}}"\n')
    assert read('command: "{{PROFILE_DIR}}/agent"\ncwd: "/rooms/{{SESSION_NAME}}"\n').cwd
    assert read('command: agent\ncwd: "/rooms/{{SESSION_NAME}}"\n').cwd


@pytest.mark.parametrize("args", [["log", "--grep", "{{MESSAGE}}"], ["log", "-c", "{{MESSAGE}}"]])
def test_what_git_is_told_to_do_may_hold_a_message(args: list[str]) -> None:
    assert read(yaml.safe_dump({"command": "git", "args": args})).args == tuple(args)
