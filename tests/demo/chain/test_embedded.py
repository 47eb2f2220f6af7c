from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from tests.support.chain import embedded
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.faults import ConfigError
from trunkline.demo.chain.artefacts import artefact
from trunkline.demo.chain.embedded import MOST_BODY_BYTES, EmbeddedChain
from trunkline.exchange.service import Service


async def test_it_serves_until_it_is_told_to_stop_and_goes_on_where_it_was() -> None:
    async with embedded() as (chain, address):
        service: Service = chain
        assert service.where == chain.url
        async with httpx.AsyncClient(timeout=PATIENCE_SECONDS, trust_env=False) as client:
            asked = {"jsonrpc": "2.0", "id": 1, "method": "eth_getCode", "params": [address, "latest"]}
            assert len((await client.post(chain.url, json=asked)).json()["result"]) > 100
            typed = {"content-type": "application/json; charset=utf-8"}
            large = b"x" * (MOST_BODY_BYTES + 1)
            assert (await client.post(chain.url, content=large, headers=typed)).status_code == 413
            # A page from elsewhere can send these, without being asked first, and by a name of its own.
            for foreign in ({"content-type": "text/plain"}, {}, typed | {"host": "evil.example"}):
                refused = await client.post(chain.url, content=json.dumps(asked), headers=foreign)
                assert refused.status_code in (403, 415)
            assert (await client.get(chain.url)).status_code == 405
        taken = EmbeddedChain(int(chain.url.rpartition(":")[2]))
        with pytest.raises(ConfigError, match="cannot listen"):
            await taken.run(asyncio.Event(), lambda: None)
        taken.close()


async def test_a_second_run_has_what_the_first_one_left() -> None:
    chain = EmbeddedChain()
    first = await chain.deploy(artefact().bytecode)
    for _ in range(2):
        stop = asyncio.Event()
        await chain.run(stop, stop.set)
    assert await chain.deploy(artefact().bytecode) != first
    chain.close()
