"""The published description of the API, held against what the API does, for requests that nobody thought of.

Values come from the description; a part of them is replaced by ids that exist, and most requests have a good session,
credential or signature, so that they get further than the first check.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import strategies as st

from tests.network.world import OTHER, OWNER, World, world
from tests.support.openapi_fuzz import fuzz, has_body, sent_query
from trunkline.base.asgi_answers import JSON
from trunkline.network.http.app import all_endpoints
from trunkline.network.http.endpoint import Endpoint
from trunkline.network.http.openapi import document
from trunkline.network.open_database import open_database

ADMIN_KEY = "the-administrators-key"
#: Without those that never end.
ENDPOINTS: dict[tuple[str, str], Endpoint] = {
    (endpoint.method, endpoint.path): endpoint
    for endpoint in all_endpoints()
    if (endpoint.answer or {}).get("contentMediaType", JSON) == JSON
}
DOCUMENT = document(ENDPOINTS.values())
#: Requests for each route: enough to meet every kind of value once, and a run of some minutes.
FEW, MANY = 6, 50
#: Which of the things that exist it is about, or, in the last case, about none; and whether it proves who sends it.
HOW = st.tuples(st.integers(0, 3), st.sampled_from([True, True, True, False]))


class Fuzzed:
    """A network with something in it, in an event loop of its own."""

    def __init__(self, loop: asyncio.Runner, net: World) -> None:
        self._loop = loop
        self._net = net
        loop.run(self._fill())

    def respond(self, case: Any, how: tuple[int, bool]) -> httpx.Response:
        """Send what was made up."""
        pick, authorised = how
        if pick < 3:
            self._make_real(case, pick)
        return self._loop.run(self._sent(case, ENDPOINTS[case.method.upper(), case.path], authorised))

    def _make_real(self, case: Any, pick: int) -> None:
        """Let a request be about what exists."""
        kind = case.path.split("/")[2]
        for name in case.path_parameters or ():
            self._replace(case.path_parameters, name, kind if name == "id" else name, pick)
        for members in (case.query, case.body):
            if isinstance(members, dict):
                for name in members:
                    self._replace(members, name, name, pick)

    async def _fill(self) -> None:
        """A community with all that belongs to one. Done anew when the requests have taken it away."""
        slug = f"fuzzed-{self._net.clock()}"
        community = await self._net.community(slug, OWNER, github_repository_url="https://github.com/owner/name")
        self._agent = agent = await self._net.agent(community, owner=OWNER)
        types = ("REQUEST_TO_HUMAN", "REPORT_TO_HUMAN", "DISCUSSION")
        threads = [(await agent.thread(community, type=type))["id"] for type in types]
        comment = (await agent.comment(threads[1]))["id"]
        self._session = await self._net.session(OWNER)
        # By the names that queries and bodies have for it; ids in paths by the kind of thing.
        self._real: dict[str, list[str]] = {
            "threads": threads, "agents": [agent.id], "comments": [comment], "slug": [slug], "communitySlug": [slug],
            "communityId": [community], "agentId": [agent.id], "threadId": threads, "walletAddress": [OWNER],
            "ownerWallet": [OTHER], "confirmName": [slug.title()], "handle": ["fuzzed"], "contractAddress": [OWNER],
        }  # fmt: skip

    def _replace(self, members: dict[str, Any], name: str, kind: str, pick: int) -> None:
        if choices := self._real.get(kind):
            members[name] = choices[pick % len(choices)]

    async def _sent(self, case: Any, endpoint: Endpoint, authorised: bool) -> httpx.Response:
        body = case.body if has_body(case) else {}
        return await self._net.client.request(
            case.method,
            case.formatted_path,
            params=sent_query(case),
            headers=await self._headers(endpoint, body) if authorised else {},
            content=json.dumps(body).encode() if has_body(case) else None,
        )

    async def _headers(self, endpoint: Endpoint, body: Any) -> dict[str, str]:
        """Those that prove what the route asks for."""
        if (await self._agent.get(f"/api/agents/{self._agent.id}/general")).status_code != 200:
            await self._fill()
        if endpoint.auth == "admin":
            return {"x-admin-key": ADMIN_KEY}
        if "signed" in endpoint.auth:
            return await self._agent.signed(body)
        return self._agent.headers if "runner" in endpoint.auth else self._session


@pytest.fixture
def fuzzed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Fuzzed]:
    caplog.set_level(logging.CRITICAL)
    with asyncio.Runner() as loop:
        database = loop.run(open_database(f"sqlite:///{tmp_path}/network.db"))
        opened = world(database, admin_key=ADMIN_KEY, home=str(tmp_path))
        net = loop.run(opened.__aenter__())
        try:
            yield Fuzzed(loop, net)
        finally:
            loop.run(opened.__aexit__(None, None, None))
            loop.run(database.close())


@pytest.mark.slow
def test_every_route_answers_as_the_description_says(fuzzed: Fuzzed) -> None:
    sent = fuzz(DOCUMENT, HOW, fuzzed.respond, examples=FEW, derandomize=True)
    assert sent > 2 * len(ENDPOINTS)


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.no_cover  # the routes of the test above, and only more requests
@pytest.mark.timeout(600)
def test_every_route_answers_as_the_description_says_for_a_long_time(fuzzed: Fuzzed) -> None:
    sent = fuzz(DOCUMENT, HOW, fuzzed.respond, examples=MANY, derandomize=False)
    assert sent > FEW * len(ENDPOINTS)
