from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import cluster_world, nats, postgres
from tests.support.cluster_world import ClusterWorld
from tests.support.nats import NatsServer


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    with nats.servers() as (only,):
        yield only


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Postgres]:
    with postgres.server() as server:
        yield server


@pytest.fixture
def world(tmp_path: Path, nats_server: NatsServer, postgres_server: postgres.Postgres) -> Iterator[ClusterWorld]:
    with cluster_world.world(tmp_path, [nats_server], postgres_server) as world:
        yield world
