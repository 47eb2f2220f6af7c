"""A server that a program starts for itself."""

from __future__ import annotations

import os
import resource
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline import ManagedServer, SyncTryll, TryllError
from trunkline.wires.tryll.messages import GenerateParams, GraphDescription, NodeDescription

pytestmark = pytest.mark.process

SAY = GraphDescription((NodeDescription("say", GenerateParams(stream=True)),), "say")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))


def test_it_has_a_port_of_its_own_serves_and_ends_in_order() -> None:
    more = ("--max-clients", "3", "--metrics", "127.0.0.1:0")
    with ManagedServer.start() as server, ManagedServer.start(None, *more, ws=True) as other:
        assert server.port != other.port
        assert (server.ws_port, server.metrics_port) == (None, None)
        assert other.metrics_port not in (None, other.port, other.ws_port)
        assert other.ws_port not in (None, other.port)
        assert server.running
        with SyncTryll(server.host, server.port) as tryll:
            assert tryll.create_agent(SAY, default_model="agent:echo").ask("hi").text == "hi"
        assert server.stop() == 0
        assert (server.running, server.exit_code, server.stop()) == (False, 0, 0)
        assert other.running
    assert other.exit_code == 0


def test_it_starts_in_a_program_with_more_open_files_than_select_takes() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("the system allows fewer open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    held: list[int] = []
    try:
        while not held or held[-1] < 1024:
            held.append(os.open(os.devnull, os.O_RDONLY))
        with ManagedServer.start() as server:
            assert server.running
    finally:
        for each in held:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_its_user_s_own_configuration_is_not_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "serve.toml"
    config.write_text('[tryll]\nws = "127.0.0.1:0"\ntoken = "secret"\nsessions = true\n')
    monkeypatch.setenv("TRUNKLINE_CONFIG", str(config))
    with ManagedServer.start() as server, SyncTryll(server.host, server.port) as tryll:
        assert server.ws_port is None
        assert tryll.create_agent(SAY, default_model="agent:echo").ask("hi").text == "hi"
    with ManagedServer.start(None, "--config", str(config)) as server:
        assert server.ws_port


def test_one_that_cannot_start_says_why_in_its_last_words() -> None:
    with pytest.raises(
        TryllError, match=r"ended with exit code 1\. Its last words: .*Other machines can reach"
    ) as found:
        ManagedServer.start(host="0.0.0.0")  # that is what is refused
    assert found.value.code == 1001
    with pytest.raises(TryllError, match="could not be started") as found:
        ManagedServer.start("/nowhere/tryll-server")
    assert found.value.code == 1001


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("import time; print('not yet', file=__import__('sys').stderr, flush=True); time.sleep(600)", 1003, "0.5 sec"),
        ("import time; print('hello', flush=True); time.sleep(600)", 1001, "said something else"),
        ("print('x' * 100_000, flush=True); import time; time.sleep(600)", 1001, "said something else"),
    ],
)
def test_one_that_does_not_say_that_it_is_ready_is_ended(program: str, code: int, said: str) -> None:
    seconds = 0.5 if code == 1003 else PATIENCE_SECONDS
    with pytest.raises(TryllError, match=said) as found:
        ManagedServer.start([sys.executable, "-c", program], start_seconds=seconds)
    assert found.value.code == code


def test_it_ends_with_its_program_however_that_ends() -> None:
    game = (
        "import sys\n"
        "from trunkline import ManagedServer\n"
        "server = ManagedServer.start()\n"
        "print('playing', server.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", game], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            word, number = process.stdout.readline().split()
            assert word == "playing"
            ended = os.pidfd_open(int(number))
        finally:
            process.kill()
    try:
        assert select.select([ended], [], [], PATIENCE_SECONDS)[0], "the server is still there"
    finally:
        os.close(ended)
