"""A chain for all tests of a file, and for each test a contract on it; or a ledger without any."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.chain import LedgerClock, Node, embedded
from tests.support.chain_world import World
from trunkline.demo.chain.artefacts import artefact
from trunkline.demo.chain.embedded import EmbeddedChain
from trunkline.runner.chain.ledger import Ledger


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chain() -> AsyncIterator[EmbeddedChain]:
    async with embedded() as (running, _):
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def world(chain: EmbeddedChain, tmp_path: Path) -> AsyncIterator[World]:
    address = await chain.deploy(artefact().bytecode)
    async with Node.before(chain.url) as node:
        made = World(node, address, tmp_path)
        yield made
        await made.close()


@pytest.fixture
def clock() -> LedgerClock:
    return LedgerClock()


@pytest.fixture
def ledger(tmp_path: Path, clock: LedgerClock) -> Iterator[Ledger]:
    made = Ledger(str(tmp_path / "wallets" / "w.db"), clock)
    yield made
    made.close()
