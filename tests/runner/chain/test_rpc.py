"""The connection to a node: what it refuses is told, and never with a key."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.chain import Node
from trunkline.base.redact import Redactor
from trunkline.runner.chain.jsonrpc import SHOWN_CHARS, RpcRefused
from trunkline.runner.chain.rpc import Rpc

SECRET = "S3cretKeyOfTheNode99"
#: As long as what is shown, with the key half in and half out of it.
TOLD = "x" * (SHOWN_CHARS - len(SECRET) // 2 - 1) + " " + SECRET


@pytest.mark.parametrize(
    ("status", "error"),
    [(200, {"code": -32005, "message": TOLD}), (429, {"code": -32005, "message": TOLD}), (200, TOLD)],
)
async def test_a_key_is_taken_out_of_a_nodes_words_before_they_are_cut(status: int, error: Any) -> None:
    async with Node.before("http://127.0.0.1:9") as node:
        node.status = status
        node.behaviours["eth_chainId"] = node.say(error=error)
        rpc = Rpc(node.url, 10.0, Redactor([SECRET]))
        try:
            with pytest.raises(RpcRefused) as caught:
                await rpc.call("eth_chainId")
        finally:
            await rpc.close()
    assert SECRET[:4] not in str(caught.value)
    assert str(caught.value).startswith("xxx")
