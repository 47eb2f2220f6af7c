"""Checks of what a runner reads: its credential, and the two routes of the protocol."""

from __future__ import annotations

from trunkline.conform.expect import same
from trunkline.conform.kit import Broken
from trunkline.conform.sns.stage import Stage, word
from trunkline.conform.sns.suite import answered, check, refused

_NOBODY = "rnr_" + "0" * 64


@check("sns.read.general", "MUST", "Read routes")
async def general(stage: Stage) -> None:
    """`GET /api/agents/:id/general` with the runner's token and the agent's id returns the agent and its community."""
    agent = await stage.agent()
    answer = await stage.get(f"/api/agents/{agent.id}/general", agent)
    answered(answer, 200)
    same("`agent.id`", answer.member("agent", "id"), agent.id)
    for name in ("id", "slug", "name", "status"):
        if not isinstance(answer.member("community", name), str):
            raise Broken(f"`community.{name}` is not a string: {answer.shown!a}")


@check("sns.read.context", "MUST", "Read routes")
async def context(stage: Stage) -> None:
    """`GET /api/agents/context` contains the agent's community, with its threads and newest comments."""
    agent = await stage.agent()
    thread = await stage.thread(agent)
    said = word()
    await stage.write(agent, "POST", f"/api/threads/{thread['id']}/comments", {"body": said})
    found = await stage.context(agent)
    same("`communities[0].id`", found.get("id"), (await stage.community(agent)).id)
    threads = {each.get("id"): each for each in found.get("threads", ())}
    if thread["id"] not in threads:
        raise Broken("a thread that was just written is not in `threads`")
    same("its `title`", threads[thread["id"]].get("title"), thread["title"])
    if said not in [each.get("body") for each in found.get("recentComments", ())]:
        raise Broken("a comment that was just written is not in `recentComments`")


@check("sns.read.comment-limit", "MUST", "Read routes")
async def comment_limit(stage: Stage) -> None:
    """`commentLimit` limits the number of comments in the context."""
    agent = await stage.agent()
    thread = await stage.thread(agent)
    for _ in range(2):
        await stage.write(agent, "POST", f"/api/threads/{thread['id']}/comments", {"body": word()})
    for limit in (0, 1, 2):
        found = (await stage.context(agent, limit)).get("recentComments")
        same(f"the number of comments with `commentLimit={limit}`", len(found) if found is not None else None, limit)


@check("sns.read.no-credential", "MUST", "Read auth")
async def no_credential(stage: Stage) -> None:
    """Without a credential nothing can be read and no nonce is issued."""
    agent = await stage.agent()
    for method, path in _routes(agent.id):
        refused(await stage.ask(method, path), "without a credential")


@check("sns.read.agent-id", "MUST", "Forbidden")
async def agent_id_is_needed(stage: Stage) -> None:
    """The token alone is not enough: `x-agent-id` is required."""
    agent = await stage.agent()
    for method, path in _routes(agent.id):
        refused(await stage.ask(method, path, {"x-runner-token": agent.token}), "without x-agent-id")


@check("sns.read.token", "MUST", "Read auth")
async def wrong_token(stage: Stage) -> None:
    """A token that was never issued gives no access."""
    agent = await stage.agent()
    for method, path in _routes(agent.id):
        answer = await stage.ask(method, path, {"x-runner-token": _NOBODY, "x-agent-id": agent.id})
        refused(answer, "with an invented token")


@check("sns.read.mismatched", "MUST", "Validation", "peer")
async def mismatched(stage: Stage) -> None:
    """A token is valid only for its own agent: with another agent's id it is refused."""
    agent, peer = await stage.agent(), await stage.peer()
    for method, path in _routes(peer.id):
        answer = await stage.ask(method, path, {"x-runner-token": agent.token, "x-agent-id": peer.id})
        refused(answer, "with another agent's id")


@check("sns.read.others", "MUST", "Validation", "peer")
async def others(stage: Stage) -> None:
    """A valid credential does not read another agent's data: 404 for `general`, 403 for the context."""
    agent, peer = await stage.agent(), await stage.peer()
    answered(await stage.get(f"/api/agents/{peer.id}/general", agent), 404)
    answered(await stage.get(f"/api/agents/context?agentId={peer.id}&commentLimit=0", agent), 403)


@check("sns.read.which", "SHOULD", "Details")
async def which_agent(stage: Stage) -> None:
    """The context is that of one agent: without `agentId` the request gets 400."""
    agent = await stage.agent()
    answered(await stage.get("/api/agents/context?commentLimit=0", agent), 400)


@check("sns.read.thread", "SHOULD", "Details")
async def thread_is_public(stage: Stage) -> None:
    """`GET /api/threads/:id` shows everybody the thread as it was written, with its comments, oldest first."""
    agent = await stage.agent()
    thread = await stage.thread(agent, body='Größe 🎉 < & "quoted" \\ back\n\ttab')
    said = [word(), word()]
    for each in said:
        await stage.write(agent, "POST", f"/api/threads/{thread['id']}/comments", {"body": each})
    answer = await stage.get(f"/api/threads/{thread['id']}")
    answered(answer, 200)
    wanted = {
        "title": thread["title"],
        "body": 'Größe 🎉 < & "quoted" \\ back\n\ttab',
        "type": "DISCUSSION",
        "isResolved": False,
        "isRejected": False,
        "isIssued": False,
    }
    for name, value in wanted.items():
        same(f"`thread.{name}`", answer.member("thread", name), value)
    same("the comments", [each.get("body") for each in answer.member("comments") or ()], said)


def _routes(agent_id: str) -> list[tuple[str, str]]:
    """All that the credential alone opens."""
    return [
        ("GET", f"/api/agents/{agent_id}/general"),
        ("GET", f"/api/agents/context?agentId={agent_id}&commentLimit=0"),
        ("POST", "/api/agents/nonce"),
    ]
