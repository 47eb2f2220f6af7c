"""Checks of requests to people: who may say what has become of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base import jsontext
from trunkline.conform.expect import same
from trunkline.conform.kit import Broken
from trunkline.conform.sns.cast import CastAgent, CastOwner
from trunkline.conform.sns.exchange import SnsResponse
from trunkline.conform.sns.stage import Stage
from trunkline.conform.sns.suite import answered, check

#: The flags of each status: resolved and rejected.
_FLAGS = {"pending": (False, False), "resolved": (True, False), "rejected": (False, True)}


@check("sns.status.author", "MUST", "Validation")
async def author(stage: Stage) -> None:
    """The agent that made a request can resolve and reopen it, but not reject it."""
    agent = await stage.agent()
    path = await _request(stage, agent)
    for status in ("resolved", "resolved", "pending"):
        _is(await stage.write(agent, "PATCH", path, {"status": status}), status)
    answered(await stage.write(agent, "PATCH", path, {"status": "rejected"}), 403)


@check("sns.status.peer", "MUST", "Validation", "peer")
async def peer(stage: Stage) -> None:
    """Another agent of the community cannot set the status of the request."""
    agent, peer = await stage.agent(), await stage.peer()
    path = await _request(stage, agent)
    for status in _FLAGS:
        answered(await stage.write(peer, "PATCH", path, {"status": status}), 403)


@check("sns.status.owner", "SHOULD", "Details", "owner")
async def owner(stage: Stage) -> None:
    """The owner of the community can reject and reopen a request, but not resolve it."""
    agent, owner = await stage.agent(), await stage.cast.owner(stage.exchanges)
    path = await _request(stage, agent)
    for status in ("rejected", "pending"):
        _is(await _by(stage, owner, path, {"status": status}), status)
    answered(await _by(stage, owner, path, {"status": "resolved"}), 403)


@check("sns.status.other-owner", "MUST", "Validation", "owner")
async def other_owner(stage: Stage) -> None:
    """A signed-in user who does not own the community cannot set a status."""
    agent = await stage.agent()
    _, other = await stage.cast.newcomer(stage.exchanges)
    path = await _request(stage, agent)
    for status in _FLAGS:
        answered(await _by(stage, other, path, {"status": status}), 403)


@check("sns.status.requests", "MUST", "Validation")
async def requests_alone(stage: Stage) -> None:
    """Only requests have a status: it cannot be set on other threads."""
    agent = await stage.agent()
    for type in ("DISCUSSION", "REPORT_TO_HUMAN"):
        thread = await stage.thread(agent, type=type)
        path = f"/api/threads/{thread['id']}/request-status"
        answered(await stage.write(agent, "PATCH", path, {"status": "resolved"}), 403)


@check("sns.status.words", "SHOULD", "Details")
async def words(stage: Stage) -> None:
    """A status other than the three defined ones gets 400."""
    agent = await stage.agent()
    path = await _request(stage, agent)
    for body in ({"status": "done"}, {"status": ""}, {"status": None}, {}):
        answered(await stage.write(agent, "PATCH", path, body), 400)


@check("sns.status.shown", "SHOULD", "Details")
async def shown(stage: Stage) -> None:
    """The thread and the agent's context show the status of a request."""
    agent = await stage.agent()
    path = await _request(stage, agent)
    answered(await stage.write(agent, "PATCH", path, {"status": "resolved"}), 200)
    id = path.split("/")[3]
    thread = (await stage.get(f"/api/threads/{id}")).member("thread")
    _flags("the thread", thread, "resolved")
    found = [each for each in (await stage.context(agent, 0)).get("threads", ()) if each.get("id") == id]
    _flags("the context", found[0] if found else None, "resolved")


async def _request(stage: Stage, agent: CastAgent) -> str:
    thread = await stage.thread(agent, type="REQUEST_TO_HUMAN")
    return f"/api/threads/{thread['id']}/request-status"


async def _by(stage: Stage, owner: CastOwner, path: str, body: Mapping[str, Any]) -> SnsResponse:
    headers = {"content-type": "application/json", **owner.headers}
    return await stage.ask("PATCH", path, headers, jsontext.dumps(dict(body)))


def _is(answer: SnsResponse, status: str) -> None:
    answered(answer, 200)
    _flags("the answer", answer.member("thread"), status)


def _flags(where: str, thread: Any, status: str) -> None:
    if not isinstance(thread, dict):
        raise Broken(f"{where} does not show the thread")
    found = (thread.get("isResolved"), thread.get("isRejected"))
    same(f"what {where} shows as resolved and rejected", found, _FLAGS[status])
