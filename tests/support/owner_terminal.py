"""A network on a port, and a terminal whose user owns something there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from tests.support.owner_world import ABI, address
from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli import network
from trunkline.network import serving
from trunkline.network.network import Network, NetworkSettings
from trunkline.network.open_database import open_database
from trunkline.wires.sns.wallet import Wallet

KEY = "0x" + "11" * 32
OTHER_KEY = "0x" + "22" * 32
WALLET = Wallet(KEY).address
CONTRACT = address()
SLUG = f"my-counter-{CONTRACT[:6]}"


class Site:
    """A network on a port, and a terminal whose user has a key in a file."""

    def __init__(self, url: str, network: Network, home: Path) -> None:
        self.url = url
        self.network = network
        self.home = home
        self.key_file = self.file("owner.key", KEY + "\n")

    def file(self, name: str, content: str) -> str:
        path = self.home / name
        path.write_text(content, encoding="utf-8")
        path.chmod(0o600)
        return str(path)

    async def run(self, *arguments: str, input: str | None = None, key: bool = True) -> Result:
        more = ["--url", self.url, *(["--key-file", self.key_file] if key else [])]
        return await invoke(*arguments, *more, input=input)

    async def done(self, *arguments: str, **more: Any) -> Any:
        """What a command printed as JSON, which went well."""
        result = await self.run(*arguments, "--json", **more)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    async def rows(self, sql: str) -> Any:
        return await self.network.database.read(lambda tx: tx.all(sql))


async def invoke(*arguments: str, input: str | None = None) -> Result:
    # In a thread, as the network is served by this loop.
    return await asyncio.to_thread(
        lambda: CliRunner().invoke(network.command, arguments, input=input, env={"COLUMNS": "200"})
    )


@asynccontextmanager
async def served(tmp_path: Path) -> AsyncIterator[Site]:
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
    database = await open_database(f"sqlite:///{tmp_path}/network.db")
    net = Network(database, NetworkSettings(home=str(tmp_path)))
    task = asyncio.create_task(
        serving.serve(net, "127.0.0.1", 0, stop, lambda host, port: address.set_result(f"http://{host}:{port}"))
    )
    try:
        yield Site(await address, net, tmp_path)
    finally:
        stop.set()
        await asyncio.wait_for(task, PATIENCE_SECONDS)
        await database.close()


async def registered(site: Site) -> str:
    """A community and an agent in it; the agent's id."""
    artefact = site.file("Counter.json", json.dumps({"abi": ABI, "bytecode": "0x"}))
    made = await site.done(
        "register", "community", "--name", "My counter", "--contract", f"Counter={CONTRACT}",
        "--abi", f"Counter={artefact}", "--source", f"Counter={site.file('Counter.sol', 'contract Counter {}')}",
        "--description", "Count.", "--repository", "https://github.com/owner/counter",
    )  # fmt: skip
    assert (made["community"]["slug"], made["community"]["ownerWallet"]) == (SLUG, WALLET)
    agent = await site.done("register", "agent", "--community", SLUG, "--handle", "ada", "--model", "some-model")
    assert (agent["agent"]["handle"], agent["agent"]["llmModel"]) == ("ada", "some-model")
    return str(agent["agent"]["id"])
