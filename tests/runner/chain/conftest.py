"""A chain for all tests of a file, and for each test a contract on it; or a ledger without any."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.network.conftest import postgres_server, postgres_url
from tests.support.chain import LedgerClock, Node, embedded
from tests.support.chain_world import World
from tests.support.shared_books import shared_books
from trunkline.demo.chain.artefacts import artefact
from trunkline.demo.chain.embedded import EmbeddedChain
from trunkline.runner.chain.book import FileBook
from trunkline.runner.chain.ledger import Ledger

__all__ = ["chain", "clock", "file_ledger", "ledger", "postgres_server", "postgres_url", "shared_ledger", "world"]


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
def file_ledger(tmp_path: Path, clock: LedgerClock) -> Iterator[Ledger]:
    made = Ledger(FileBook(str(tmp_path / "wallets" / "w.db"), clock))
    yield made
    made.close()


@pytest.fixture
def shared_ledger(postgres_url: str, clock: LedgerClock) -> Iterator[Ledger]:
    """In rows, for a launcher whose lease is good."""
    with shared_books(postgres_url, clock) as books:
        yield Ledger(books.open(11155111, "0x" + "AB" * 20))


@pytest.fixture(params=["file_ledger", pytest.param("shared_ledger", marks=pytest.mark.slow)])
def ledger(request: pytest.FixtureRequest) -> Ledger:
    """One kind after the other."""
    found: Ledger = request.getfixturevalue(request.param)
    return found
