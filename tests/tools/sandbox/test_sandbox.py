"""What a command can do in the sandbox, and what is left of it."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.tools.sandbox.conftest import Run
from trunkline.base.redact import Redactor
from trunkline.base.watchdog import all_pids, read_stat
from trunkline.core.faults import ToolError
from trunkline.models.credentials import without_credentials
from trunkline.tools.bash import BashTool
from trunkline.tools.bash_background import BashOutput
from trunkline.tools.bash_process import GRACE_SECONDS
from trunkline.tools.client_side import ClientSide
from trunkline.tools.sandbox import sandbox as module
from trunkline.tools.sandbox import seccomp
from trunkline.tools.sandbox.launcher import OBEY_SECONDS
from trunkline.tools.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.process


def ignore(_: str) -> None:
    """Nobody looks at what is told meanwhile."""


async def test_the_workspace_and_temporary_files_can_be_written(run: Run, workspace: Path) -> None:
    output = await run(
        'echo in > file && mktemp && echo x > "$TMPDIR/mine" && mkdir -p a/b && mv file a/b && ln a/b/file c'
    )
    assert output.status == "success", output.text
    assert "[The sandbox" not in output.text
    assert (workspace / "a/b/file").exists()


async def test_programs_work_as_ever(run: Run) -> None:
    code = """
import multiprocessing, os, pty, socket, subprocess, threading
multiprocessing.Semaphore(1)
pty.openpty()
a, b = socket.socketpair()
threading.Thread(target=print, args=("thread",)).start()
fd = os.memfd_create("x"); os.write(fd, b"#!/bin/sh\\necho from memory\\n")
subprocess.run([f"/proc/self/fd/{fd}"], pass_fds=[fd], check=True)
server = socket.create_server(("127.0.0.1", 0)); socket.create_connection(server.getsockname())
print("all of it")
"""
    output = await run(
        f"{sys.executable} -c {shlex.quote(code)}; echo x > /dev/null; head -c 1 /dev/urandom >/dev/null"
    )
    assert "from memory" in output.text
    assert "all of it" in output.text, output.text


async def test_a_server_that_one_command_leaves_running_is_there_for_the_next(run: Run) -> None:
    server = (
        "import socket; s = socket.create_server(('127.0.0.1', 4567)); open('up', 'w'); s.accept()[0].sendall(b'hello')"
    )
    await run(f"{sys.executable} -c {shlex.quote(server)} >/dev/null 2>&1 & until [ -e up ]; do sleep 0.02; done")
    client = "import socket; print(socket.create_connection(('127.0.0.1', 4567)).recv(10))"
    assert "hello" in (await run(f"{sys.executable} -c {shlex.quote(client)}")).text


async def test_nothing_that_opens_something_is_in_the_environment(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {
        "OPENAI_API_KEY": "sk-of-a-model", "GITHUB_TOKEN": "ghp-of-a-forge", "AWS_PROFILE": "of-a-cloud",
        "SSH_AUTH_SOCK": "/of/an/agent", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/of/a/bus", "ODD": "of-a-vault-12345",
        "DOCKER_HOST": "unix:///of/docker", "HTTPS_PROXY": "http://of.a.proxy", "SSHPASS": "of-a-login-1",
        "DB_PW": "of-a-database-1", "MY_PRIVATE_KEY_BASE64": "b2YtYS1rZXk=", "DOCKER_AUTH_CONFIG": "{of-a-registry}",
        "GIT_CONFIG_VALUE_0": "Authorization: Basic of-a-header", "NPM_CONFIG__AUTH": "of-an-index",
        "SLACK_WEBHOOK_URL": "https://hooks.slack.com/services/T/B/of-a-chat", "SHOP_SESSION": "of-a-shop",
        "SIGNING_CERT": "of-a-signer", "CARD_PIN": "of-a-card", "ENCRYPTION_SALT": "of-a-cipher",
        "PIP_INDEX_URL": "https://me:of-an-index-1@pypi.example/", "PLAIN": "ghp_0123456789abcdefghijklmnop",
    }  # fmt: skip
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_SESSION_TYPE", "of-no-use-to-anybody")
    monkeypatch.setenv("DESKTOP_SESSION", "of-a-desktop")
    known = Redactor(["of-a-vault-12345"])
    sandbox = Sandbox(str(workspace), clean=lambda environ: without_credentials(environ, known))
    bash = BashTool(str(workspace), sandbox=sandbox)
    try:
        text = (await bash.run({"command": "env"}, lambda line: None)).text
    finally:
        await bash.close()
    assert "PATH=" in text
    assert "XDG_SESSION_TYPE=of-no-use-to-anybody" in text
    assert "DESKTOP_SESSION=of-a-desktop" in text
    assert not [value for value in secrets.values() if value in text]


async def test_its_temporary_files_go_with_it(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    bash = BashTool(str(workspace), sandbox=Sandbox(str(workspace)))
    await bash.run({"command": 'mkdir -p "$TMPDIR/a/b" && touch "$TMPDIR/a/b/c" && chmod 0 "$TMPDIR/a/b"'}, ignore)
    assert os.listdir(tmp_path / "temporary")
    await bash.close()
    assert not os.listdir(tmp_path / "temporary")


async def test_commands_end_as_they_do_elsewhere(run_anywhere: Run) -> None:
    assert "Exit code: 3" in (await run_anywhere("exit 3")).text
    assert "SIGKILL ended the command" in (await run_anywhere("kill -KILL $$")).text
    assert "SIGTERM ended the command" in (await run_anywhere("trap '' INT; kill -TERM -- -$$; sleep 600")).text
    assert "Exit code: 0" in (await run_anywhere("sleep 600 & kill $! && wait || true")).text


async def test_a_command_whose_time_is_over_is_ended_with_its_last_words(bash: BashTool) -> None:
    command = "trap 'echo last words; exit' TERM; echo up; while :; do sleep 0.02; done"
    output = await bash.run({"command": command, "timeout": 1500}, ignore)
    assert "Command timed out after 1500ms" in output.text
    assert "last words" in output.text


async def test_what_one_command_leaves_running_can_be_ended_by_the_next(run: Run) -> None:
    left = re.search(r"still running in the background: process (\d+);", (await run("sleep 602 & disown")).text)
    assert left
    assert "sleep" in (await run(f"cat /proc/{left[1]}/comm && kill {left[1]}")).text
    gone = await run(f"while kill -0 {left[1]}; do sleep 0.02; done; echo gone")
    assert "gone" in gone.text
    assert "still running" not in gone.text


async def test_one_that_does_not_obey_is_ended_by_its_launcher_which_can_collect_it(bash: BashTool) -> None:
    """Else the namespace of its processes would wait for whoever does."""
    assert OBEY_SECONDS < GRACE_SECONDS
    output = await bash.run({"command": "trap '' TERM; echo up; while :; do sleep 0.02; done", "timeout": 1500}, ignore)
    assert "Command timed out after 1500ms\nSTDOUT:\nup" in output.text
    sandbox = bash._sandbox
    assert sandbox is not None
    holder = sandbox._holder
    assert holder is not None
    first = child_of(holder.pid)
    await bash.close()
    await until(lambda: read_stat(first) is None)


async def test_nothing_outlives_it_wherever_it_hides(bash: BashTool, workspace: Path) -> None:
    """Without a parent, a session or an environment by which it could be known."""
    daemon = "env -i /usr/bin/setsid /bin/sh -c 'echo up > up; (exec /bin/sleep 601.5 &)'"
    await bash.run({"command": f"{daemon} & until [ -e up ]; do sleep 0.02; done"}, ignore)
    await until(lambda: sleeping("601.5"))
    await bash.close()
    await until(lambda: not sleeping("601.5"))


def sleeping(seconds: str) -> list[Path]:
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if place.read_bytes().split(b"\0")[:2] == [b"/bin/sleep", seconds.encode()]:
                found.append(place)
    return found


async def test_what_was_refused_is_told_in_a_language_that_is_known(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGUAGE", "de:fr")
    bash = BashTool(str(workspace), sandbox=Sandbox(str(workspace)))
    try:
        assert "LANGUAGE=en" in (await bash.run({"command": "env"}, ignore)).text
    finally:
        await bash.close()


@pytest.mark.parametrize(
    ("words", "failed", "note"),
    [
        ("mkdir /x: read-only file system", True, "[The sandbox was why: "),
        ("Error: EROFS: read-only file system, open '/x'", True, "[The sandbox was why: "),
        ("docs: a Read-only file system is one that ...", False, "[The sandbox may be why: "),
        ("curl: (7) Failed to connect to localhost port 80", True, "[The sandbox may be why: "),
        ("2 tests failed", True, ""),
        ("Permission denied, says the manual", False, ""),
    ],
)
def test_a_result_says_that_the_sandbox_was_why(workspace: Path, words: str, failed: bool, note: str) -> None:
    assert Sandbox(str(workspace)).why(words, failed=failed).strip().startswith(note)
    assert bool(Sandbox(str(workspace)).why(words, failed=failed)) == bool(note)


async def test_a_command_in_the_background_is_in_it_too(bash: BashTool, tmp_path: Path) -> None:
    output = await bash.run({"command": f"echo x > {tmp_path}/out", "run_in_background": True}, ignore)
    bash_id = re.findall(r"bash_id: (\S+)", output.text)[0]
    text = ""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while "Exit code: 1" not in text:
            text = (await BashOutput(bash.background).run({"bash_id": bash_id}, ignore)).text
            await asyncio.sleep(0.01)
    assert not (tmp_path / "out").exists()


async def test_an_editors_terminal_is_not_used(workspace: Path) -> None:
    client = ClientSide()
    terminal: Any = object()
    client.use(terminal=terminal)
    bash = BashTool(str(workspace), client=client, sandbox=Sandbox(str(workspace)))
    try:
        assert "Exit code: 0" in (await bash.run({"command": "true"}, ignore)).text
    finally:
        await bash.close()


async def test_one_whose_holder_was_ended_is_made_anew(workspace: Path) -> None:
    sandbox = Sandbox(str(workspace))
    bash = BashTool(str(workspace), sandbox=sandbox)
    try:
        await bash.run({"command": "true"}, ignore)
        holder = sandbox._holder
        assert holder is not None
        await holder.stop(0)
        assert "Exit code: 0" in (await bash.run({"command": "true"}, ignore)).text
    finally:
        await bash.close()


async def test_so_is_one_whose_first_process_was_ended(workspace: Path) -> None:
    """From outside, for example by a system that has run out of memory."""
    sandbox = Sandbox(str(workspace))
    bash = BashTool(str(workspace), sandbox=sandbox)
    try:
        await bash.run({"command": "true"}, ignore)
        holder = sandbox._holder
        assert holder is not None
        os.kill(child_of(holder.pid), signal.SIGKILL)
        await holder.wait()
        assert "Exit code: 0" in (await bash.run({"command": "true"}, ignore)).text
    finally:
        await bash.close()


def child_of(parent: int) -> int:
    (found,) = (pid for pid in all_pids() if (stat := read_stat(pid)) is not None and stat.ppid == parent)
    return found


async def test_a_command_does_not_run_without_it(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "launcher_path", lambda: "/nowhere/launcher.py")
    bash = BashTool(str(workspace), sandbox=Sandbox(str(workspace)))
    try:
        output = await bash.run({"command": "touch ran"}, ignore)
    finally:
        await bash.close()
    assert output.status == "error"
    assert "there is no sandbox" in output.text
    assert not (workspace / "ran").exists()
    with pytest.raises(ToolError):
        await Sandbox(str(workspace)).command(["true"])


async def test_the_model_is_told_of_it(bash: BashTool) -> None:
    assert "Commands run in a sandbox" in bash.description
    assert "has no network" in bash.description


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_small_enough_for_the_kernel(machine: str) -> None:
    length = len(seccomp.program(machine)) // 8
    assert 100 < length < 4096
