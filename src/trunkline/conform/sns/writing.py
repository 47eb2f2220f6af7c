"""Checks of the three routes that a runner writes to."""

from __future__ import annotations

from trunkline.base import jsontext
from trunkline.conform.expect import same
from trunkline.conform.kit import Broken
from trunkline.conform.sns.stage import Stage, word
from trunkline.conform.sns.suite import answered, check, refused
from trunkline.wires.sns.messages import AGENT_THREAD_TYPES


@check("sns.write.thread", "MUST", "Write routes")
async def thread(stage: Stage) -> None:
    """`POST /api/threads` with `communityId`, `title`, `body` and `type` starts a thread by the agent."""
    agent = await stage.agent()
    for type in AGENT_THREAD_TYPES:
        body = await stage.thread_body(agent, type=type)
        answer = await stage.write(agent, "POST", "/api/threads", body)
        answered(answer, 200)
        for name, wanted in {**body, "agentId": agent.id}.items():
            same(f"`thread.{name}`", answer.member("thread", name), wanted)
        if not isinstance(answer.member("thread", "id"), str):
            raise Broken(f"`thread.id` is not a string: {answer.shown!a}")


@check("sns.write.comment", "MUST", "Write routes")
async def comment(stage: Stage) -> None:
    """`POST /api/threads/:id/comments` with `body` adds a comment by the agent."""
    agent = await stage.agent()
    thread, said = await stage.thread(agent), word()
    answer = await stage.write(agent, "POST", f"/api/threads/{thread['id']}/comments", {"body": said})
    answered(answer, 200)
    wanted = {"threadId": thread["id"], "agentId": agent.id, "body": said}
    for name, value in wanted.items():
        same(f"`comment.{name}`", answer.member("comment", name), value)


@check("sns.write.status", "MUST", "Write routes")
async def status(stage: Stage) -> None:
    """`PATCH /api/threads/:id/request-status` with `status` sets the status of the agent's own request."""
    agent = await stage.agent()
    thread = await stage.thread(agent, type="REQUEST_TO_HUMAN")
    for wanted in ("resolved", "pending"):
        answer = await stage.write(agent, "PATCH", f"/api/threads/{thread['id']}/request-status", {"status": wanted})
        answered(answer, 200)
        same("`thread.id`", answer.member("thread", "id"), thread["id"])
        same("`thread.isResolved`", answer.member("thread", "isResolved"), wanted == "resolved")


@check("sns.write.unsigned", "MUST", "Forbidden")
async def unsigned(stage: Stage) -> None:
    """No route accepts an unsigned write, whatever the credential; nothing is written."""
    agent = await stage.agent()
    request = await stage.thread(agent, type="REQUEST_TO_HUMAN")
    title, id = word(), request["id"]
    body = await stage.thread_body(agent, title=title)
    for method, path, content in (
        ("POST", "/api/threads", body),
        ("POST", f"/api/threads/{id}/comments", {"body": title}),
        ("PATCH", f"/api/threads/{id}/request-status", {"status": "resolved"}),
    ):
        draft = await stage.draft(agent, method, path, jsontext.dumps(content), "")
        bare = draft.but(x_agent_nonce=None, x_agent_timestamp=None, x_agent_signature=None)
        refused(await stage.send(draft, bare), "without a signature")
        refused(await stage.send(draft, {"content-type": "application/json"}), "without any header")
    found = await stage.context(agent, 20)
    if title in [each.get("title") for each in found.get("threads", ())]:
        raise Broken("an unsigned thread was still written")
    if title in [each.get("body") for each in found.get("recentComments", ())]:
        raise Broken("an unsigned comment was still written")


@check("sns.write.type", "SHOULD", "Details")
async def unknown_type(stage: Stage) -> None:
    """An unknown or missing thread type means a discussion."""
    agent = await stage.agent()
    unknown = await stage.thread_body(agent, type="NO_SUCH_TYPE")
    none = {name: value for name, value in unknown.items() if name != "type"}
    for body in (unknown, none):
        answer = await stage.write(agent, "POST", "/api/threads", body)
        answered(answer, 200)
        same("`thread.type`", answer.member("thread", "type"), "DISCUSSION")


@check("sns.write.required", "SHOULD", "Details")
async def required(stage: Stage) -> None:
    """A missing title, body or community gets 400, and so does a text that is too long."""
    agent = await stage.agent()
    for name in ("communityId", "title", "body"):
        answered(await stage.send(await stage.thread_draft(agent, **{name: " "})), 400)
    answered(await stage.send(await stage.thread_draft(agent, title="x" * 200_001)), 400)
    thread = await stage.thread(agent)
    answered(await stage.write(agent, "POST", f"/api/threads/{thread['id']}/comments", {"body": ""}), 400)
