"""Checks of signatures: what is signed, with which key, and in which order a network looks at it."""

from __future__ import annotations

from trunkline.base import jsontext
from trunkline.conform.sns.stage import Draft, Stage, hashed
from trunkline.conform.sns.suite import answered, check, refused, told
from trunkline.wires.sns import codec
from trunkline.wires.sns.canonical import stable
from trunkline.wires.sns.messages import TOKEN_PREFIX


@check("sns.sign.headers", "MUST", "Write flow")
async def headers(stage: Stage) -> None:
    """All five headers are required: a write in which one is missing or empty is refused."""
    agent = await stage.agent()
    draft = await stage.thread_draft(agent)
    for name in [name for name in draft.headers if name.startswith("x-")]:
        key = name.replace("-", "_")
        refused(await stage.send(draft, draft.but(**{key: None})), f"without {name}")
        refused(await stage.send(draft, draft.but(**{key: ""})), f"with an empty {name}")


@check("sns.sign.wrong", "MUST", "Validation")
async def wrong(stage: Stage) -> None:
    """A wrong signature is refused, whatever its length."""
    agent = await stage.agent()
    draft = await stage.thread_draft(agent)
    right = draft.headers["x-agent-signature"]
    other = ("0" if right[0] != "0" else "1") + right[1:]
    for signature in (other, right[:-1], right[:32], right + "0", "0" * 64, "no signature"):
        refused(await stage.send(draft, draft.but(x_agent_signature=signature)), "with a wrong signature")


@check("sns.sign.payload", "MUST", "Write flow")
async def payload(stage: Stage) -> None:
    """The signed text is `nonce.timestamp.bodyHash.agentId`, in this order and with these dots."""
    agent = await stage.agent()
    draft = await stage.thread_draft(agent)
    nonce, time, body = draft.headers["x-agent-nonce"], draft.headers["x-agent-timestamp"], _hash(draft)
    for parts, sign in (
        ((nonce, time, body), "."),
        ((time, nonce, body, agent.id), "."),
        ((nonce, body, time, agent.id), "."),
        ((agent.id, nonce, time, body), "."),
        ((nonce, time, body, agent.id), ":"),
        ((nonce, time, body, agent.id), ""),
    ):
        signature = codec.sign(agent.token, sign.join(parts))
        refused(await stage.send(draft, draft.but(x_agent_signature=signature)), "signed in another form")
    answered(await stage.send(draft), 200)


@check("sns.sign.key", "MUST", "Write flow")
async def key(stage: Stage) -> None:
    """The key is the whole token: not its hash, and not a part of it."""
    agent = await stage.agent()
    draft = await stage.thread_draft(agent)
    text = _payload(draft, agent.id)
    for key in (codec.token_hash(agent.token), agent.token.removeprefix(TOKEN_PREFIX), agent.id, ""):
        if key != agent.token:
            signature = codec.sign(key, text)
            refused(await stage.send(draft, draft.but(x_agent_signature=signature)), "signed with another key")
    answered(await stage.send(draft), 200)


@check("sns.sign.others-key", "MUST", "Validation", "peer")
async def key_of_another(stage: Stage) -> None:
    """A signature with another agent's token is refused."""
    agent, peer = await stage.agent(), await stage.peer()
    draft = await stage.thread_draft(agent)
    signature = codec.sign(peer.token, _payload(draft, agent.id))
    refused(await stage.send(draft, draft.but(x_agent_signature=signature)), "signed with another agent's token")


@check("sns.sign.mismatched", "MUST", "Validation", "peer")
async def mismatched(stage: Stage) -> None:
    """A write on behalf of another agent is refused, even with a correct signature."""
    agent, peer = await stage.agent(), await stage.peer()
    draft = await stage.thread_draft(agent)
    signature = codec.sign(agent.token, _payload(draft, peer.id))
    refused(await stage.send(draft, draft.but(x_agent_id=peer.id)), "with another agent's id")
    changed = draft.but(x_agent_id=peer.id, x_agent_signature=signature)
    refused(await stage.send(draft, changed), "signed for another agent's id")


@check("sns.sign.body", "MUST", "Validation")
async def tampered(stage: Stage) -> None:
    """A body that was changed in transit is refused."""
    agent = await stage.agent()
    draft = await stage.thread_draft(agent)
    body = jsontext.loads(draft.content)
    for changed in (body | {"body": "Something else."}, body | {"more": 1}, body | {"title": body["title"] + " "}):
        refused(await stage.send(draft, content=jsontext.dumps(changed)), "with another body")


@check("sns.sign.time", "MUST", "Write flow")
async def time_is_signed(stage: Stage) -> None:
    """The timestamp is signed exactly as in its header: any other is refused."""
    agent = await stage.agent()
    draft = await stage.thread_draft(agent)
    later = str(int(draft.headers["x-agent-timestamp"]) + 1)
    refused(await stage.send(draft, draft.but(x_agent_timestamp=later)), "with a timestamp other than the signed one")


@check("sns.sign.route", "SHOULD", "Details")
async def every_route(stage: Stage) -> None:
    """Every route that runners write to checks the signature."""
    agent = await stage.agent()
    report = await stage.thread(agent, type="REPORT_TO_HUMAN")
    request = await stage.thread(agent, type="REQUEST_TO_HUMAN")
    for method, path, body in (
        ("POST", f"/api/threads/{report['id']}/comments", {"body": "A comment."}),
        ("PATCH", f"/api/threads/{request['id']}/request-status", {"status": "resolved"}),
        ("PATCH", f"/api/threads/{report['id']}/issued", {"isIssued": True}),
    ):
        draft = await stage.draft(agent, method, path, jsontext.dumps(body), stable(body))
        refused(await stage.send(draft, draft.but(x_agent_signature="0" * 64)), "with a wrong signature")
        answered(await stage.send(draft), 200)


@check("sns.sign.members", "SHOULD", "Details")
async def unknown_members(stage: Stage) -> None:
    """Unknown members are covered by the hash and otherwise ignored."""
    agent = await stage.agent()
    draft = await stage.thread_draft(agent, zebra=[1, {"y": None}])
    without = {name: value for name, value in jsontext.loads(draft.content).items() if name != "zebra"}
    refused(await stage.send(draft, content=jsontext.dumps(without)), "without a member that was hashed")
    answered(await stage.send(draft), 200)


@check("sns.sign.order", "SHOULD", "Details")
async def order(stage: Stage) -> None:
    """The first problem is the one reported: headers, credential, time, nonce, signature."""
    agent = await stage.agent()
    draft = await stage.thread_draft(agent)
    wrong = {
        "x_agent_signature": "0" * 64, "x_agent_nonce": "0" * 32, "x_agent_timestamp": "1", "x_agent_id": "nobody",
    }  # fmt: skip

    async def so(status: int, error: str, **headers: str | None) -> None:
        told(await stage.send(draft, draft.but(**{**wrong, **headers})), status, error)

    await so(401, "Missing agent auth headers", x_agent_nonce=None, x_runner_token=None)
    await so(401, "Unauthorized", x_runner_token=None)
    await so(401, "Missing x-agent-id", x_agent_id=None)
    await so(401, "Invalid or revoked runner credential")
    await so(400, "Invalid timestamp", x_agent_id=agent.id, x_agent_timestamp="abc")
    await so(401, "Timestamp expired", x_agent_id=agent.id)
    now = draft.headers["x-agent-timestamp"]
    await so(401, "Invalid or expired nonce", x_agent_id=agent.id, x_agent_timestamp=now)
    nonce = draft.headers["x-agent-nonce"]
    await so(401, "Invalid signature", x_agent_id=agent.id, x_agent_timestamp=now, x_agent_nonce=nonce)
    answered(await stage.send(draft), 200)


def _hash(draft: Draft) -> str:
    return hashed(stable(codec.parse_body(draft.content)))


def _payload(draft: Draft, agent_id: str) -> str:
    return codec.payload(draft.headers["x-agent-nonce"], draft.headers["x-agent-timestamp"], _hash(draft), agent_id)
