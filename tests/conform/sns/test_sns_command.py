"""`trunkline conform sns` as people and programs call it, against a network on a real socket."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import formatdate
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.conform.sns.network import Healthy
from tests.support.beside import beside
from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli.conform_sns import command
from trunkline.conform.sns.cast import CastAgent, Own
from trunkline.conform.sns.exchange import Target
from trunkline.conform.sns.stage import Stage
from trunkline.conform.sns.suite import SUITE
from trunkline.network.network import Network, NetworkSettings
from trunkline.network.open_database import open_database
from trunkline.network.serving import serve


def conform(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[str]:
    database = await open_database(f"sqlite:///{folder}/network.db")
    stop, ready = asyncio.Event(), asyncio.Event()
    places: list[str] = []

    def reachable(host: str, port: int) -> None:
        places.append(f"http://{host}:{port}")
        ready.set()

    served = asyncio.create_task(
        serve(Network(database, NetworkSettings(home=str(folder))), "127.0.0.1", 0, stop, reachable)
    )
    await asyncio.wait_for(ready.wait(), PATIENCE_SECONDS)
    try:
        yield places[0]
    finally:
        stop.set()
        await asyncio.wait_for(served, PATIENCE_SECONDS)
        await database.close()


@asynccontextmanager
async def peopled(folder: Path) -> AsyncIterator[tuple[str, list[CastAgent]]]:
    """A network, and three agents of it."""
    async with serving(folder) as url:
        stage = Stage(Target(url), Own(), "register")
        agents = [await stage.agent(), await stage.peer(), await stage.stranger()]
        await stage.close()
        yield url, agents


@pytest.mark.slow
async def test_our_network_passes_on_a_real_socket_with_its_usual_limits(tmp_path: Path) -> None:
    async with serving(tmp_path) as url:
        target, cast = Target(url), Own()
        checks = [check for check in SUITE.checks.values() if check.id != "sns.nonce.expired"]
        results, _ = await SUITE.run(checks, lambda name: Stage(target, cast, name), jobs=4)
        assert [(each.check.id, each.reason) for each in results if each.verdict != "passed"] == []
        # Nothing stays open: what was made is closed again.
        last = Stage(target, cast, "afterwards")
        agent = await last.agent()
        assert (await last.get(f"/api/agents/{agent.id}/general", agent)).member("community", "status") == "CLOSED"
        await last.close()


def test_a_network_is_certified_and_told_of(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    with beside(peopled(tmp_path)) as (url, (agent, peer, other)):
        done = conform(f"{url}/", "--only", "sns.token.*", "--json", "--report", str(report))
        assert done.exit_code == 0, done.output
        data = json.loads(done.stdout)
        assert data["wire"] == "sns"
        assert data["target"] == {"argv": [url]}
        assert {result["result"] for result in data["results"]} == {"passed"}
        assert data["conversations"][0]["roles"] == ["runner", "network"]
        assert "registers up to 3 communities" in done.stderr
        assert not re.search("rnr_[0-9a-f]{8}", done.stdout + report.read_text())
        given = ("--agent-id", agent.id, "--runner-token", agent.token)
        others = ("--peer-agent-id", peer.id, "--peer-token", peer.token, "--other-agent-id", other.id)
        done = conform(url, *given, *others, "--other-token", other.token, "--no-owner", "--only", "sns.perm.*")
        assert done.exit_code == 0, done.output
        assert f"in the name of `{agent.id}`" in done.stderr
        # Those that need a wallet are left out.
        ids = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("sns.")]
        assert ids == [f"sns.perm.{each}" for each in
                       ("system", "foreign-thread", "foreign-comment", "foreign-status", "unknown")]  # fmt: skip
        assert "conforms, as far as checked" in done.stdout
        done = conform(url, "--agent-id", agent.id, "--runner-token", "rnr_wrong", "--only", "sns.write.*")
        assert done.exit_code == 1
        assert "`sns.read.general` failed" in done.stdout


def test_what_cannot_be_reached_is_wrong_usage(unused_tcp_port: int) -> None:
    done = conform(f"http://127.0.0.1:{unused_tcp_port}", "--only", "sns.read.general")
    assert done.exit_code == 2
    assert "cannot be reached" in done.output


def test_somebody_elses_machine_is_written_to_only_with_leave() -> None:
    done = conform("https://sns.example", "--agent-id", "c1", "--runner-token", "rnr_secret-of-theirs")
    assert done.exit_code == 2
    assert "writes about 100 threads and comments at https://sns.example" in " ".join(done.output.split())
    assert "--yes" in done.output
    assert "rnr_secret" not in done.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Name the address of the network"),
        (("ftp://127.0.0.1",), "The address of a network is"),
        (("http://me:secret@127.0.0.1",), "The address of a network is"),
        (("http://127.0.0.1:1", "--agent-id", "a"), "`--runner-token` is missing"),
        (("http://127.0.0.1:1", "--no-owner"), "Give an agent to play with"),
        (("http://127.0.0.1:1", "--owner-key", "zz"), "not a valid private key"),
        (("http://127.0.0.1:1", "--owner-key", "00", "--agent-id", "a", "--runner-token", "t"), "leave out"),
        (("http://127.0.0.1:1", "--only", "sns.nonce.expired"), "`--patient`"),
        (("http://127.0.0.1:1", "--only", "no.*"), "No check matches"),
    ],
)
def test_what_is_wrong_with_the_command_line_is_told(arguments: tuple[str, ...], told: str) -> None:
    done = conform(*arguments)
    assert done.exit_code == 2
    assert told in " ".join(done.output.split())
    assert "secret" not in done.output


def test_the_checks_can_be_listed_without_a_network() -> None:
    listed = json.loads(conform("--list", "--json").stdout)
    assert [each["id"] for each in listed] == list(SUITE.checks)


async def test_a_clock_that_is_wrong_does_not_make_times_wrong(healthy: Healthy) -> None:
    """The kit reads the network's time from its answers."""
    await healthy.register()
    stage = Stage(healthy.target(), healthy.cast, "clock")
    answer = await stage.get("/api/threads/none-of-this-name")
    for date, is_ahead in (("Thu, 01 Jan 2099 00:00:00 GMT", True), ("no date", True), (formatdate(), False)):
        stage._compare_clocks(type(answer)(answer.asked, 200, {"date": date}, None, ""))
        assert (stage.cast.offset_ms > 10**9) is is_ahead
        assert stage.cast.offset_ms == 0 or is_ahead
    await stage.close()
