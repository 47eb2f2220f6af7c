"""What runs in the containers: a node by the file of all nodes, whether it is ready, and the configuration of NATS."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import require
from tests.support.patience import PATIENCE_SECONDS
from tests.support.unmeasured import unmeasured
from trunkline.base.config_file import read_toml
from trunkline.base.hosts import Hosts
from trunkline.exchange import config
from trunkline.exchange.settings import ExchangeSettings

DEPLOY = Path(__file__).parents[2] / "deploy"
FILE = DEPLOY / "trunkline.toml"
SECRETS = {
    "ADMIN_TOKEN": "the admin's token",
    "CLUSTER_NATS": "nats://trunkline:t1@nats-1:4222,nats://trunkline:t1@nats-2:4222",
    "CLUSTER_DATABASE": "postgresql://trunkline:t2@postgres/trunkline",
}
NATS = {"NATS_NAME": "nats-1", "NATS_PASSWORD": "t0123", "NATS_ROUTES": '["nats://route:t0123@nats-2:6222"]'}


def without_cluster(text: str) -> str:
    """The file of one exchange by itself."""
    return re.sub(r"^\[cluster\]\n(?:\w.*\n)+", "", text, flags=re.MULTILINE)


def environment(home: Path, **more: str) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return unmeasured() | {"TRUNKLINE_HOME": str(home), "PATH": path, **more}


@contextmanager
def node(tmp_path: Path, text: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A node that runs, and its home."""
    home = tmp_path / "home"
    home.mkdir()
    file = tmp_path / "all-nodes.toml"
    file.write_text(text)
    with subprocess.Popen(
        ["sh", str(DEPLOY / "node.sh"), str(file)],
        env=environment(home, NODE="b", TRUNKLINE_LOG_FORMAT="json", **SECRETS),
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            yield child, home
        finally:
            child.kill()


def ready(home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", str(DEPLOY / "ready.py")],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_the_file_of_all_nodes_is_one_that_an_exchange_takes(tmp_path: Path) -> None:
    text = FILE.read_text(encoding="utf-8").replace("@NODE@", "a")
    own = tmp_path / "trunkline.toml"
    own.write_text(text)
    file = read_toml(str(own))
    assert file is not None
    found = config.checked(file, SECRETS)
    assert isinstance(found, ExchangeSettings), found
    # Probes call it by its address, and clients by its service's name.
    hosts = Hosts.of(found.listen[0], found.hosts)
    for name in (b"10.1.2.3:4400", b"trunkline:4400", b"127.0.0.1:4401"):
        assert hosts.allow_scope({"type": "http", "headers": [(b"host", name)]})


def test_the_file_of_all_nodes_has_what_a_node_of_a_cluster_needs() -> None:
    found = tomllib.loads(FILE.read_text(encoding="utf-8"))
    assert found["cluster"] == {
        "nats_env": "CLUSTER_NATS",
        "postgres_env": "CLUSTER_DATABASE",
        "node": "@NODE@",
    }


@pytest.mark.process
def test_a_node_runs_under_its_own_name_and_says_when_it_is_ready(tmp_path: Path) -> None:
    text = without_cluster(FILE.read_text(encoding="utf-8")).replace("0.0.0.0:4400", "127.0.0.1:0")
    text += '\n[agents.at-node-@NODE@]\nagent = "echo"\n'
    with node(tmp_path, text) as (child, home):
        before = ready(tmp_path)
        assert (before.returncode, "exchange.sock" in before.stdout) == (1, True)
        assert child.stderr is not None
        assert "reachable" in child.stderr.readline()
        after = ready(home)
        assert (after.returncode, after.stdout) == (0, '200 {"ok":true}\n')
        # The shell has stepped aside: who is told to end is the exchange.
        child.terminate()
        assert child.wait(PATIENCE_SECONDS) == 143
    assert "at-node-b" in (home / "trunkline.toml").read_text()


@pytest.mark.process
@pytest.mark.parametrize("name", ["", "a b", "a/b", "a&b"])
def test_a_node_without_a_name_that_can_be_one_does_not_run(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", str(DEPLOY / "node.sh"), str(FILE)],
        env=environment(tmp_path, NODE=name),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert "NODE" in done.stderr
    assert not (tmp_path / "trunkline.toml").exists()


@pytest.mark.process
@pytest.mark.parametrize("left_out", [None, *NATS])
def test_the_configuration_of_nats_is_one_that_nats_takes_with_all_of_its_variables(left_out: str | None) -> None:
    program = Path(sys.executable).with_name("nats-server")
    require("nats-server", program.exists(), "the extra `dev` brings it")
    given = {name: value for name, value in NATS.items() if name != left_out}
    done = subprocess.run(
        [str(program), "--config", str(DEPLOY / "nats.conf"), "-t"],
        env=unmeasured() | given,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (done.returncode == 0) == (left_out is None), done.stderr


def test_nats_keeps_what_it_says_that_it_keeps() -> None:
    text = (DEPLOY / "nats.conf").read_text(encoding="utf-8")
    assert re.search(r"^  sync_interval: always$", text, re.MULTILINE)
