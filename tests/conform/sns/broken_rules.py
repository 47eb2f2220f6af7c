"""Networks that show what they should not, forget who may do what, or answer in other forms."""

from __future__ import annotations

from tests.conform.sns.bent import Asked, Reply
from tests.conform.sns.habits import bends, patched, says

NO_CREDENTIAL = "Invalid or revoked runner credential"
FINE = Reply(200, {"ok": True, "thread": {}, "nonce": "n"})

# Reads


@bends("sns.read.general")
async def hides_the_community(asked: Asked) -> Reply:
    told = await asked.forward()
    return told._replace(data={"agent": told.data["agent"]}) if asked.path.endswith("/general") else told


@bends("sns.read.context")
async def shows_no_threads(asked: Asked) -> Reply:
    told = await asked.forward()
    if asked.path.endswith("/context") and told.status == 200:
        told.data["context"]["communities"][0]["threads"] = []
    return told


@bends("sns.read.comment-limit", alone=True)
async def shows_fifty_comments(asked: Asked) -> Reply:
    asked.query = asked.query.replace("commentLimit=", "commentLimit=5")
    return await asked.forward()


@bends("sns.read.no-credential", "sns.read.agent-id")
async def lets_anybody_read(asked: Asked) -> Reply:
    told = await asked.forward()
    return FINE if told.error.startswith("Missing") else told


@bends("sns.read.agent-id", alone=True)
async def knows_the_agent_by_its_token(asked: Asked) -> Reply:
    told = await asked.forward()
    return FINE if told.error == "Missing x-agent-id" else told


@bends("sns.read.token", alone=True)
async def does_not_look_at_the_token(asked: Asked) -> Reply:
    told = await asked.forward()
    return FINE if told.error == NO_CREDENTIAL and asked.headers["x-runner-token"].endswith("00") else told


@bends("sns.read.mismatched", alone=True)
async def takes_any_token_of_anybody(asked: Asked) -> Reply:
    told = await asked.forward()
    is_somebodys = asked.headers.get("x-runner-token") in asked.tokens.values()
    return FINE if told.error == NO_CREDENTIAL and is_somebodys else told


says("tells_of_others", "Agent not found", FINE, "sns.read.others", alone=True)
says("takes_a_context_of_nobody", "agentId is required", FINE, "sns.read.which", alone=True)


@bends("sns.read.thread")
async def shows_the_newest_comment_first(asked: Asked) -> Reply:
    told = await asked.forward()
    if asked.path.startswith("/api/threads/") and "comments" in (told.data or {}):
        told.data["comments"].reverse()
    return told


# Tokens

patched("makes_tokens_without_a_prefix", "trunkline.network.rotation.TOKEN_PREFIX", "", "sns.token.form")


@bends("sns.token.revoked")
async def revokes_nothing(asked: Asked) -> Reply:
    return FINE if asked.method == "DELETE" and asked.path.endswith("/runner-credential") else await asked.forward()


@bends("sns.token.rotated")
async def never_forgets_a_token(asked: Asked) -> Reply:
    told = await asked.forward()
    return FINE if told.error == NO_CREDENTIAL and asked.headers["x-runner-token"].startswith("rnr_") else told


@bends("sns.token.owners")
async def gives_anybody_a_token(asked: Asked) -> Reply:
    told = await asked.forward()
    return FINE if told.status in (401, 404) and asked.path.endswith("/runner-credential") else told


# Permissions


@bends("sns.perm.system", alone=True)
async def begins_system_threads(asked: Asked) -> Reply:
    told = await asked.forward()
    return await asked.resigned(type="DISCUSSION") if told.error.startswith("SYSTEM threads") else told


patched("asks_nobody_where_it_belongs", "trunkline.network.writing.writable", lambda *_, **__: None,
        "sns.perm.foreign-thread", "sns.perm.foreign-comment", "sns.perm.closed", alone=True)  # fmt: skip
says("has_no_unknown_thread", "Thread not found", Reply(403, {"error": "no"}), "sns.perm.unknown", alone=True)
patched("bans_nobody", "trunkline.network.http.auth.banned", lambda *_: False, "sns.perm.banned", alone=True)


@bends("sns.perm.moderation")
async def lets_anybody_moderate(asked: Asked) -> Reply:
    told = await asked.forward()
    return FINE if told.status in (401, 403) and asked.path == "/api/communities/close" else told


# The status of requests

MAY = "Owner can set pending/rejected. Thread author agent can set pending/resolved."

says("lets_anybody_set_a_status", MAY, FINE, "sns.status.author", "sns.status.peer", "sns.status.owner",
     "sns.status.other-owner", "sns.perm.foreign-status")  # fmt: skip
patched("lets_authors_reject", "trunkline.network.statuses.AUTHOR_MAY", ("pending", "resolved", "rejected"),
        "sns.status.author", alone=True)  # fmt: skip
patched("lets_owners_resolve", "trunkline.network.statuses.OWNER_MAY", ("pending", "resolved", "rejected"),
        "sns.status.owner", alone=True)  # fmt: skip
says("resolves_discussions", "Only request threads can be updated to resolved/rejected/pending", FINE,
     "sns.status.requests", alone=True)  # fmt: skip
says("knows_other_statuses", "status must be 'resolved', 'rejected', or 'pending'", FINE,
     "sns.status.words", alone=True)  # fmt: skip


@bends("sns.status.shown", alone=True)
async def hides_the_status_from_agents(asked: Asked) -> Reply:
    told = await asked.forward()
    if asked.path.endswith("/context") and told.status == 200:
        for thread in told.data["context"]["communities"][0]["threads"]:
            thread.pop("isResolved", None)
    return told


# Answers as such


@bends("sns.error.malformed")
async def repairs_what_is_not_json(asked: Asked) -> Reply:
    told = await asked.forward()
    return FINE if told.error.startswith("Invalid JSON body") else told


@bends("sns.error.values", "sns.write.required")
async def takes_anything_for_a_text(asked: Asked) -> Reply:
    told = await asked.forward()
    return FINE if told.status == 400 and asked.is_signed else told


@bends("sns.error.server")
async def fails_at_an_unknown_thread(asked: Asked) -> Reply:
    return Reply(500, {"error": "no"}) if asked.path.endswith("none-of-this-name") else await asked.forward()


@bends("sns.error.shape")
async def refuses_in_plain_words(asked: Asked) -> Reply:
    told = await asked.forward()
    return Reply(told.status, b"no", {"content-type": "text/plain"}) if told.status == 401 else told


@bends("sns.error.success")
async def says_created(asked: Asked) -> Reply:
    told = await asked.forward()
    return told._replace(status=201) if told.status == 200 and asked.is_signed else told


@bends("sns.error.secrets")
async def repeats_the_token(asked: Asked) -> Reply:
    told = await asked.forward()
    if told.status == 401 and "x-runner-token" in asked.headers:
        return told._replace(data={"error": f"not with {asked.headers['x-runner-token']}"})
    return told


@bends("sns.cors.wildcard", "sns.cors.preflight")
async def lets_every_page_in(asked: Asked) -> Reply:
    told = await asked.forward()
    return told._replace(headers={**told.headers, "access-control-allow-origin": "*"})


@bends("sns.cors.preflight", alone=True)
async def forgets_patch(asked: Asked) -> Reply:
    told = await asked.forward()
    allowed = {"access-control-allow-origin": "http://app.test", "access-control-allow-methods": "GET,POST,OPTIONS"}
    return told._replace(headers={**told.headers, **allowed}) if asked.method == "OPTIONS" else told
