"""The network as a wire of an exchange."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from tests.network.conftest import postgres_server, postgres_url
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.faults import ConfigError
from trunkline.exchange import schema as exchange_schema
from trunkline.exchange.lines.network import NetworkLine
from trunkline.exchange.settings import WireSettings
from trunkline.exchange.wire_keys import settled
from trunkline.runner.shared import schema as runner_schema
from trunkline.store.database.opening import open_database

__all__ = ["postgres_server", "postgres_url"]


def line(home: Path, **keys: object) -> NetworkLine:
    wire = WireSettings("network", None, {"listen": "127.0.0.1:0", **keys})
    return NetworkLine(str(home), settled(str(home / "trunkline.toml"), wire, {"KEY": "an administrator's key"}))


async def test_it_serves_the_network_and_keeps_it_in_the_home(tmp_path: Path) -> None:
    network = line(tmp_path)
    stop, reachable = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(network.run(stop, reachable.set))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await reachable.wait()
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{network.where}/readyz")).status_code == 200
        stop.set()
        await task
    assert (tmp_path / "network" / "network.db").exists()


def test_a_secret_comes_from_the_variable_that_the_file_names(tmp_path: Path) -> None:
    wire = WireSettings("network", None, {"admin_key_env": "KEY"})
    assert settled("trunkline.toml", wire, {"KEY": "an administrator's key"})["admin_key"] == "an administrator's key"


def test_other_machines_are_let_in_only_if_the_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="public = true"):
        line(tmp_path, listen="0.0.0.0:0")
    line(tmp_path, listen="0.0.0.0:0", public=True)


@pytest.mark.slow
async def test_the_exchanges_of_a_cluster_serve_one_network_beside_their_own_rows(
    tmp_path: Path, postgres_url: str
) -> None:
    # Everything that a cluster keeps in rows is in one database.
    for form in (exchange_schema.FORM, runner_schema.FORM):
        await (await open_database(postgres_url, form)).close()
    stop, networks = asyncio.Event(), []
    for node in ("a", "b"):
        wire = WireSettings("network", None, {"listen": "127.0.0.1:0"})
        found = settled(str(tmp_path / "trunkline.toml"), wire, {})
        networks.append(NetworkLine(str(tmp_path / node), found, postgres_url))
    reachable = [asyncio.Event() for _ in networks]
    tasks = [asyncio.create_task(each.run(stop, told.set)) for each, told in zip(networks, reachable, strict=True)]
    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.gather(*(told.wait() for told in reachable))
        async with httpx.AsyncClient() as client:
            for network in networks:
                assert (await client.get(f"{network.where}/readyz")).status_code == 200
        stop.set()
        await asyncio.gather(*tasks)
    assert not any((tmp_path / node / "network" / "network.db").exists() for node in ("a", "b"))
