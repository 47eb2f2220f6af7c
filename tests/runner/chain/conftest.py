"""A chain for all tests of a file, and for each test a contract on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.support.chain import Node, embedded
from tests.support.chain_world import World
from trunkline.demo.chain.artefacts import artefact
from trunkline.demo.chain.embedded import EmbeddedChain


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
