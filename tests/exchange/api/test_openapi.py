"""The published description of the API, held against what the API does, for requests that nobody thought of.

Values come from the description; a part of them is replaced by agents, sessions and approvals that exist, so that they
get further than the first check.
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

from tests.exchange.api_world import World, world
from tests.support.loop import until
from tests.support.openapi_fuzz import fuzz, has_body, sent_query
from trunkline.core.events import ToolRequested
from trunkline.exchange.api.app import all_endpoints
from trunkline.exchange.api.endpoint import ApiEndpoint
from trunkline.exchange.api.events import MEDIA_TYPE
from trunkline.exchange.api.openapi import document
from trunkline.exchange.settings import ROLES

#: Without the one that never ends.
ENDPOINTS: dict[tuple[str, str], ApiEndpoint] = {
    (endpoint.method, endpoint.path): endpoint
    for endpoint in all_endpoints()
    if endpoint.answer.get("contentMediaType") != MEDIA_TYPE
}
DOCUMENT = document(ENDPOINTS.values())
#: Requests for each route: enough to meet every kind of value once, and a run of a minute or two.
FEW, MANY = 8, 100
#: Whether it is about what exists, and who sends it: mostly somebody who may.
HOW = st.tuples(
    st.sampled_from([True, True, False]), st.sampled_from(["admin", "admin", "admin", "admin", *ROLES, "nobody"])
)


class Fuzzed:
    """An exchange with something in it, in an event loop of its own."""

    def __init__(self, loop: asyncio.Runner, net: World) -> None:
        self._loop = loop
        self._net = net
        self._session = self._approval = ""

    def respond(self, case: Any, how: tuple[bool, str]) -> httpx.Response:
        """Send what was made up."""
        is_real, who = how
        if is_real:
            self._make_real(case)
        found: httpx.Response = self._loop.run(
            self._net.ask(
                case.method,
                case.formatted_path,
                who=who,
                params=sent_query(case),
                content=json.dumps(case.body).encode() if has_body(case) else None,
            )
        )
        return found

    def _make_real(self, case: Any) -> None:
        """Let a request be about what exists."""
        self._loop.run(self._fill())
        if "id" in (case.path_parameters or {}):
            case.path_parameters["id"] = self._approval if "/approvals/" in case.path else self._session
        for members in (case.query, case.body):
            if isinstance(members, dict):
                real = {"agent": "fake", "before": self._session, "session": self._session}
                members.update({name: value for name, value in real.items() if name in members})
                # That is what most of them are about: it would be one of a million texts.
                members.pop("workspace", None)

    async def _fill(self) -> None:
        """A session in which a person is asked. Done anew when the requests have taken it away."""
        if (await self._net.get(f"/api/approvals/{self._approval}")).json().get("state") == "pending":
            return
        self._session = id = await self._net.session()
        reader = self._net.read(id)
        await self._net.say(id)
        await until(lambda: self._net.fake.busy)
        self._net.fake.say(ToolRequested("c1", "Bash", "exec", {"command": "ls"}))
        await until(lambda: "tool_requested" in reader.kinds)
        await reader.leave()
        (found,) = (await self._net.get(f"/api/approvals?session={id}")).json()["approvals"]
        self._approval = found["id"]


@pytest.fixture
def fuzzed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Fuzzed]:
    caplog.set_level(logging.CRITICAL)
    with asyncio.Runner() as loop:
        opened = world(tmp_path)
        net = loop.run(opened.__aenter__())
        try:
            yield Fuzzed(loop, net)
        finally:
            loop.run(opened.__aexit__(None, None, None))


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
