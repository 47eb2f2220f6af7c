"""A whole small world: a network in a process of its own, a community with the vault, an agent, and its runner."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.network_process import NetworkProcess, network_process
from tests.support.provider import StubProvider
from tests.support.provider_streams import openai_text
from tests.support.world_runner import Once, Runner
from tests.support.world_site import Site
from trunkline.demo.chain.artefacts import artefact
from trunkline.demo.tester import found_context

if TYPE_CHECKING:
    from tests.support.owner_world import Person

HANDLE = "Ada"
#: The address of the vault where there is no chain.
NOWHERE = "0x" + "5a" * 20


class Place:
    """What a test of the whole holds in its hands."""

    def __init__(self, network: NetworkProcess, site: Site, owner: Person, community: dict[str, Any]) -> None:
        self.network = network
        self.site = site
        self.owner = owner
        self.community = community
        self.slug: str = community["slug"]

    agent_id: str
    token: str
    runner: Runner
    vault: str

    async def prompted(self, *actions: dict[str, Any]) -> tuple[Once, dict[str, Any]]:
        """One cycle with a model that decides these; also gives the context that the model was told."""
        async with StubProvider() as model:
            model.openai(openai_text(json.dumps(actions)))
            ended = await self.runner.once(openai(model))
            (asked,) = model.requests
        return ended, found_context(asked.json["messages"][-1]["content"])

    def thread(self, title: str, body: str, type: str = "DISCUSSION") -> dict[str, Any]:
        """The action that begins a thread."""
        named = {"communitySlug": self.slug, "title": title, "body": body, "threadType": type}
        return {"action": "create_thread", **named}

    def comment(self, thread_id: str, body: str) -> dict[str, Any]:
        """The action that comments on one."""
        return {"action": "comment", "communitySlug": self.slug, "threadId": thread_id, "body": body}

    def tx(self, thread_id: str, function: str, *args: Any, **more: Any) -> dict[str, Any]:
        """The action that calls the vault."""
        named = {"communitySlug": self.slug, "threadId": thread_id, "contractAddress": self.vault}
        return {"action": "tx", **named, "functionName": function, "args": [*args], **more}


def openai(model: StubProvider, **more: Any) -> dict[str, Any]:
    """The brain that asks a stub."""
    return {"kind": "openai", "baseUrl": f"{model.url}/v1", "model": "stub", "apiKey": "sk-of-the-model", **more}


@asynccontextmanager
async def place(
    database: str, folder: Path, *, key: str | None = None, vault: str = NOWHERE, **config: Any
) -> AsyncIterator[Place]:
    """A world on a database, until the end of the block; `key` is its owner's."""
    with network_process(database, folder / "network") as network:
        site = Site(network.url)
        try:
            owner = await site.owner(key)
            community = await site.community(owner, "Vault", vault, artefact().abi)
            made = Place(network, site, owner, community)
            made.vault = vault
            made.agent_id, made.token = await site.agent(owner, community["id"], HANDLE)
            credential = {"snsBaseUrl": network.url, "agentId": made.agent_id, "runnerToken": made.token}
            made.runner = Runner(folder / "runner", {**credential, **config})
            yield made
        finally:
            await site.close()
    assert network.said == []
