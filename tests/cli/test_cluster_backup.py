"""`trunkline cluster backup` and `restore`, with real servers and no exchange."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import nats, postgres
from tests.support.invoked import invoke
from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli import cluster_backup
from trunkline.cli.cluster import command

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server() -> Iterator[NatsServer]:
    with nats.servers() as (only,):
        yield only


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres.shared_server() as server, server.database() as url:
        yield url


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, server: NatsServer, database: str) -> None:
    path.write_text(f'[cluster]\nnats = "{server.url}"\npostgres = "{database}"\nnode = "a"\nname = "cli"\n')


def test_a_backup_is_told_to_people_and_programs_and_is_restored(here: Path, server: NatsServer, database: str) -> None:
    write(here / "trunkline.toml", server, database)
    done = invoke(command, "backup", "saved")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Saved the cluster `cli` as of 20")
    assert done.stdout.endswith("in `saved`.\n")
    assert done.stderr.splitlines() == ["saving rows", "saving events"]

    (here / "etc").mkdir()
    (here / "trunkline.toml").rename(here / "etc" / "other.toml")
    done = invoke(command, "backup", "again", "--config", "etc/other.toml", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["directory"], told["cluster"], told["messages"]) == ("again", "cli", 0)
    assert told["rows_bytes"] == (here / "again" / "rows.dump").stat().st_size

    done = invoke(command, "restore", "saved", "--config", "etc/other.toml")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Restored the cluster `cli` as of 20")
    assert done.stderr.splitlines()[:1] == ["restoring rows"]
    done = invoke(command, "restore", "again", "--config", "etc/other.toml", "--force", "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (0, told)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_bar_knows_no_total_that_nobody_has_said(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with cluster_backup._progress("saving") as report:
        report("rows", 50, 0)
        report("events", 143, 120)
    assert "50/? bytes" in shown.getvalue()
    # How large a snapshot will be was a guess.
    assert "143/143 bytes" in shown.getvalue()


@pytest.mark.parametrize("verb", ["backup", "restore"])
def test_what_is_missing_is_told(here: Path, verb: str) -> None:
    done = invoke(command, verb, "saved")
    assert done.exit_code == 1
    assert "trunkline.toml: does not exist" in done.stderr
    (here / "trunkline.toml").write_text("[exchange]\n")
    done = invoke(command, verb, "saved")
    assert done.exit_code == 1
    assert "`trunkline.toml` is not one of a cluster" in done.stderr
    assert not (here / "saved").exists()


def test_a_directory_without_a_backup_is_refused(here: Path, server: NatsServer, database: str) -> None:
    write(here / "trunkline.toml", server, database)
    (here / "saved").mkdir()
    done = invoke(command, "restore", "saved")
    assert done.exit_code == 1
    assert "`manifest.json` is missing" in done.stderr


def test_ctrl_c_leaves_neither_a_backup_nor_a_program(here: Path, server: NatsServer, database: str) -> None:
    write(here / "trunkline.toml", server, database)
    # One that does not end.
    program = here / "bin" / "pg_dump"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho $$ > {here}/pid.new\nmv {here}/pid.new {here}/pid\nexec sleep 1000\n")
    program.chmod(0o755)
    environ = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    with subprocess.Popen(
        [sys.executable, "-m", "trunkline", "cluster", "backup", "saved"],
        cwd=here, env=environ, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (here / "pid").exists():
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert (here / "saved").exists()
        child.send_signal(signal.SIGINT)
        _, told = child.communicate(timeout=PATIENCE_SECONDS)
    assert child.returncode == 130, told
    assert told.splitlines()[-1] == "Stopped. There is no backup."
    assert not (here / "saved").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int((here / "pid").read_text()), 0)
