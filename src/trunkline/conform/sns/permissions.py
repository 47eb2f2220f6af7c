"""Checks of what a good signature does not allow: other communities, closed ones, and what is the network's own."""

from __future__ import annotations

from trunkline.conform.kit import Broken
from trunkline.conform.sns.cast import post
from trunkline.conform.sns.exchange import SnsResponse
from trunkline.conform.sns.stage import Stage
from trunkline.conform.sns.suite import answered, check

_FORBIDDEN = 403


@check("sns.perm.system", "MUST", "Validation")
async def system(stage: Stage) -> None:
    """An agent cannot start a SYSTEM thread, however the type is spelled."""
    agent = await stage.agent()
    for type in ("SYSTEM", " system "):
        _forbidden(await stage.send(await stage.thread_draft(agent, type=type)), f"of the type {type!r}")


@check("sns.perm.foreign-thread", "MUST", "Validation", "stranger")
async def foreign_thread(stage: Stage) -> None:
    """An agent cannot start a thread in another community."""
    agent, stranger = await stage.agent(), await stage.stranger()
    elsewhere = (await stage.community(stranger)).id
    _forbidden(await stage.send(await stage.thread_draft(agent, communityId=elsewhere)), "in another community")


@check("sns.perm.foreign-comment", "MUST", "Validation", "stranger")
async def foreign_comment(stage: Stage) -> None:
    """An agent cannot comment on a thread in another community."""
    agent, thread = await stage.agent(), await stage.thread(await stage.stranger())
    answer = await stage.write(agent, "POST", f"/api/threads/{thread['id']}/comments", {"body": "A comment."})
    _forbidden(answer, "in another community")


@check("sns.perm.foreign-status", "MUST", "Validation", "stranger")
async def foreign_status(stage: Stage) -> None:
    """An agent cannot set a status in another community."""
    agent, thread = await stage.agent(), await stage.thread(await stage.stranger(), type="REQUEST_TO_HUMAN")
    path = f"/api/threads/{thread['id']}/request-status"
    for status in ("resolved", "pending"):
        _forbidden(await stage.write(agent, "PATCH", path, {"status": status}), "in another community")


@check("sns.perm.unknown", "SHOULD", "Details")
async def unknown(stage: Stage) -> None:
    """A community or thread that does not exist gets 404."""
    agent = await stage.agent()
    answered(await stage.send(await stage.thread_draft(agent, communityId="none-of-this-name")), 404)
    path = "/api/threads/none-of-this-name"
    answered(await stage.write(agent, "POST", f"{path}/comments", {"body": "A comment."}), 404)
    answered(await stage.write(agent, "PATCH", f"{path}/request-status", {"status": "resolved"}), 404)
    answered(await stage.get(path), 404)


@check("sns.perm.closed", "MUST", "Validation", "owner")
async def closed(stage: Stage) -> None:
    """Nobody can write in a closed community."""
    agent, close = await stage.cast.closing(stage.exchanges)
    thread = await stage.thread(agent)
    await close()
    _forbidden(await stage.send(await stage.thread_draft(agent)), "in a closed community")
    answer = await stage.write(agent, "POST", f"/api/threads/{thread['id']}/comments", {"body": "A comment."})
    _forbidden(answer, "in a closed community")


@check("sns.perm.banned", "SHOULD", "Details", "owner")
async def banned(stage: Stage) -> None:
    """An agent whose owner is banned cannot write, but can still read."""
    agent, its_owner = await stage.cast.newcomer(stage.exchanges)
    owner, community = await stage.cast.owner(stage.exchanges), await stage.community(agent)
    ban = {"communityId": community.id, "ownerWallet": its_owner.wallet.address, "action": "BAN"}
    ban["signature"] = owner.wallet.sign("24-7-playground")
    answered(await post(stage.exchanges, "/api/communities/bans", ban, owner.headers), 200)
    _forbidden(await stage.send(await stage.thread_draft(agent)), "by a banned agent")
    answered(await stage.get(f"/api/agents/{agent.id}/general", agent), 200)


@check("sns.perm.moderation", "SHOULD", "Details", "owner")
async def moderation(stage: Stage) -> None:
    """Only the owner of a community, when signed in, can close it or ban somebody in it."""
    agent = await stage.agent()
    community, owner = await stage.community(agent), await stage.cast.owner(stage.exchanges)
    _, other = await stage.cast.newcomer(stage.exchanges)
    fixed = owner.wallet.sign("24-7-playground")
    for path, body in (
        ("/api/communities/close", {"communityId": community.id, "confirmName": community.name}),
        (
            "/api/communities/bans",
            {"communityId": community.id, "ownerWallet": other.wallet.address, "action": "BAN"},
        ),
    ):
        answered(await post(stage.exchanges, path, body, other.headers), 403)
        answered(await post(stage.exchanges, path, body | {"signature": fixed}), 401)


def _forbidden(answer: SnsResponse, why: str) -> None:
    if answer.status != _FORBIDDEN:
        raise Broken(f"{answer.asked} {why} was answered with {answer.status} {answer.shown!a}, not {_FORBIDDEN}")
