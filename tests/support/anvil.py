"""A real Ethereum node on the loopback interface: `anvil`, a native program from npm."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.support.npm import modules
from tests.support.patience import PATIENCE_SECONDS
from tests.support.ports import free_port
from trunkline.base.process import spawn

VERSION = "1.7.1"
CHAIN_ID = 11155111

#: The first of the accounts that every anvil has. Its key is printed at every start: it is nobody's secret.
KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
OTHER_KEY = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"

_LOOK_SECONDS = 0.02
_MACHINES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class Anvil:
    """A node that runs."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(timeout=PATIENCE_SECONDS, trust_env=False, verify=False)

    def close(self) -> None:
        self._client.close()

    def ask(self, method: str, *parameters: Any) -> Any:
        """The result of a method that must work."""
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": [*parameters]}
        answer = self._client.post(self.url, json=asked).json()
        assert "result" in answer, f"{method}: {answer}"
        return answer["result"]

    def deploy(self, bytecode: str) -> str:
        """Put a contract on the chain, from an account that the node itself holds."""
        sender = self.ask("eth_accounts")[-1]
        hash = self.ask("eth_sendTransaction", {"from": sender, "data": bytecode, "gas": hex(3_000_000)})
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (receipt := self.ask("eth_getTransactionReceipt", hash)) is None:
            assert time.monotonic() < deadline, "the contract is not deployed"
            time.sleep(_LOOK_SECONDS)
        address: str = receipt["contractAddress"]
        return address


def program() -> str:
    """The path of the program; a test that cannot have it does not go on."""
    system = {"linux": "linux", "darwin": "darwin"}.get(sys.platform, "")
    package = f"@foundry-rs/anvil-{system}-{_MACHINES.get(platform.machine(), '')}"
    return str(modules(f"{package}@{VERSION}") / package / "bin" / "anvil")


@contextmanager
def anvil(*options: str) -> Iterator[Anvil]:
    """A node at work, until the end of the block. It makes a block for each transaction, unless told otherwise."""
    port = free_port()
    command = [program(), "--port", str(port), "--chain-id", str(CHAIN_ID), "--silent", *options]
    with spawn(command, stdout="null", stderr="null") as child:
        node = Anvil(f"http://127.0.0.1:{port}")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while child.poll() is None and time.monotonic() < deadline:
            try:
                node.ask("eth_chainId")
            except httpx.TransportError:
                time.sleep(_LOOK_SECONDS)
                continue
            try:
                yield node
            finally:
                node.close()
                child.terminate_tree(grace=2.0)
            return
        raise AssertionError("anvil did not start")
