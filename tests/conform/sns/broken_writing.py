"""Networks that take what they should not: nonces, signatures, times, canonical texts."""

from __future__ import annotations

from json.encoder import encode_basestring_ascii

from tests.conform.sns.bent import Asked, Reply
from tests.conform.sns.habits import bends, forgives, patched, says
from trunkline.base import jsontext
from trunkline.wires.sns import codec

NO_NONCE = "Invalid or expired nonce"
NO_SIGNATURE = "Invalid signature"
NO_HEADERS = "Missing agent auth headers"
DENIED = Reply(401, {"error": NO_SIGNATURE})

# Nonces

patched("uses_nonces_twice", "trunkline.network.credentials.CredentialStore.use_nonce", lambda *_: True,
        "sns.nonce.replay", "sns.nonce.parallel", "sns.nonce.burned", alone=True)  # fmt: skip
patched("makes_short_nonces", "trunkline.network.nonces._BYTES", 4, "sns.nonce.fresh", alone=True)
patched("keeps_nonces_for_an_hour", "trunkline.network.nonces.NONCE_SECONDS", 3600, "sns.nonce.ttl", alone=True)
forgives("takes_any_nonce", NO_NONCE, lambda asked: asked.headers["x-agent-nonce"] == "0" * 32,
         "sns.nonce.invented", alone=True)  # fmt: skip


@bends("sns.nonce.others", alone=True)
async def shares_nonces_between_agents(asked: Asked) -> Reply:
    told = await asked.forward()
    is_others = told.error == NO_NONCE and asked.headers["x-agent-nonce"] in _MADE
    if asked.path == "/api/agents/nonce":
        _MADE.setdefault(told.data["nonce"], asked.headers["x-agent-id"])
    return await asked.resigned() if is_others and _MADE[asked.headers["x-agent-nonce"]] != _who(asked) else told


_MADE: dict[str, str] = {}


def _who(asked: Asked) -> str:
    return asked.headers["x-agent-id"]


@bends("sns.nonce.parallel", alone=True)
async def looks_at_a_nonce_before_it_marks_it(asked: Asked) -> Reply:
    nonce = asked.headers.get("x-agent-nonce", "")
    if not nonce:
        return await asked.forward()
    if nonce in _ON_ITS_WAY:
        return await asked.resigned()
    _ON_ITS_WAY.add(nonce)
    try:
        return await asked.forward()
    finally:
        _ON_ITS_WAY.discard(nonce)


_ON_ITS_WAY: set[str] = set()


@bends("sns.nonce.kept", alone=True)
async def spends_a_nonce_on_a_bad_signature(asked: Asked) -> Reply:
    nonce = asked.headers.get("x-agent-nonce", "")
    if nonce in _SPENT:
        return Reply(401, {"error": NO_NONCE})
    told = await asked.forward()
    if told.error == NO_SIGNATURE:
        _SPENT.add(nonce)
    return told


_SPENT: set[str] = set()


@bends("sns.nonce.burned", alone=True)
async def gives_the_nonce_of_a_refused_write_back(asked: Asked) -> Reply:
    nonce = asked.headers.get("x-agent-nonce", "")
    told = await asked.forward()
    if asked.is_signed and told.status == 400:
        _GIVEN_BACK.add(nonce)
    return await asked.resigned() if told.error == NO_NONCE and nonce in _GIVEN_BACK else told


_GIVEN_BACK: set[str] = set()


@bends("sns.nonce.issued", "sns.nonce.ttl", alone=True)
async def does_not_say_when_a_nonce_ends(asked: Asked) -> Reply:
    told = await asked.forward()
    return told._replace(data={"nonce": told.data["nonce"]}) if told.data and "nonce" in told.data else told


@bends("sns.nonce.expired")
async def never_forgets_a_nonce(asked: Asked) -> Reply:
    told = await asked.forward()
    return await asked.resigned() if told.error == NO_NONCE else told


# Writes and their signatures


@bends("sns.write.unsigned", "sns.sign.headers")
async def takes_unsigned_writes(asked: Asked) -> Reply:
    told = await asked.forward()
    is_write = told.status == 401 and asked.method != "GET" and asked.path != "/api/agents/nonce"
    return await asked.resigned() if is_write and "x-runner-token" in asked.headers and not asked.is_signed else told


forgives("needs_no_time", NO_HEADERS, lambda asked: asked.headers.get("x-agent-timestamp", "") == "",
         "sns.sign.headers")  # fmt: skip
forgives("compares_half_of_a_signature", NO_SIGNATURE,
         lambda asked: asked.headers["x-agent-signature"][:32] == asked.signature(*asked.parts)[:32],
         "sns.sign.wrong", alone=True)  # fmt: skip
forgives("takes_the_old_payload", NO_SIGNATURE,
         lambda asked: asked.headers["x-agent-signature"] == asked.signature(*asked.parts[:3]),
         "sns.sign.payload", alone=True)  # fmt: skip
forgives("takes_the_hash_for_the_key", NO_SIGNATURE,
         lambda asked: asked.headers["x-agent-signature"]
         == asked.signature(*asked.parts, key=codec.token_hash(asked.headers["x-runner-token"])),
         "sns.sign.key", alone=True)  # fmt: skip
forgives("takes_anybodys_key", NO_SIGNATURE,
         lambda asked: asked.headers["x-agent-signature"]
         in [asked.signature(*asked.parts, key=key) for key in asked.tokens.values()],
         "sns.sign.others-key", alone=True)  # fmt: skip
forgives("takes_any_signature", NO_SIGNATURE, lambda asked: True,
         "sns.sign.wrong", "sns.sign.payload", "sns.sign.key", "sns.sign.others-key", "sns.sign.body",
         "sns.sign.time", "sns.sign.members", "sns.sign.order", "sns.sign.route", "sns.nonce.kept")  # fmt: skip
forgives("takes_a_token_for_any_agent", "Invalid or revoked runner credential",
         lambda asked: asked.headers["x-runner-token"] in asked.tokens.values() and asked.is_signed,
         "sns.sign.mismatched")  # fmt: skip
forgives("does_not_look_at_reports", NO_SIGNATURE, lambda asked: asked.path.endswith("/issued"),
         "sns.sign.route", alone=True)  # fmt: skip
forgives("does_not_sign_the_time", NO_SIGNATURE,
         lambda asked: asked.headers["x-agent-signature"]
         == asked.signature(asked.parts[0], str(int(asked.parts[1]) - 1), *asked.parts[2:]),
         "sns.sign.time", alone=True)  # fmt: skip


@bends("sns.sign.members")
async def hashes_what_it_knows(asked: Asked) -> Reply:
    known = {"communityId", "title", "body", "type", "status", "isIssued"}
    if asked.is_signed and not known.issuperset(jsontext.loads(asked.content)):
        return DENIED
    return await asked.forward()


says("looks_at_the_nonce_before_the_time", "Timestamp expired", Reply(401, {"error": NO_NONCE}),
     "sns.sign.order", alone=True)  # fmt: skip


@bends("sns.write.thread")
async def changes_titles(asked: Asked) -> Reply:
    told = await asked.forward()
    if asked.path == "/api/threads" and told.status == 200:
        told.data["thread"]["title"] = told.data["thread"]["title"].upper()
    return told


@bends("sns.write.comment")
async def does_not_say_who_commented(asked: Asked) -> Reply:
    told = await asked.forward()
    if asked.path.endswith("/comments") and told.status == 200:
        told.data["comment"]["agentId"] = None
    return told


@bends("sns.write.status", "sns.status.author", "sns.status.owner")
async def sets_no_status(asked: Asked) -> Reply:
    told = await asked.forward()
    if asked.path.endswith("/request-status") and told.status == 200:
        told.data["thread"] |= {"isResolved": None, "isRejected": None}
    return told


@bends("sns.write.type")
async def refuses_unknown_types(asked: Asked) -> Reply:
    return Reply(400, {"error": "type"}) if b"NO_SUCH_TYPE" in asked.content else await asked.forward()


@bends("sns.write.required")
async def writes_without_a_title(asked: Asked) -> Reply:
    told = await asked.forward()
    return Reply(200, {"thread": {"id": "t"}}) if told.error.endswith("are required") else told


# Canonical texts

patched("sorts_by_code_points", "trunkline.wires.sns.canonical._utf16",
        lambda name: name.encode("utf-32-be", "surrogatepass"), "sns.canon.order", alone=True)  # fmt: skip
patched("prints_numbers_as_python_does", "trunkline.wires.sns.canonical.number", repr,
        "sns.canon.numbers", alone=True)  # fmt: skip
patched("hashes_ascii", "trunkline.wires.sns.canonical.encode_basestring", encode_basestring_ascii,
        "sns.canon.text", "sns.canon.order", alone=True)  # fmt: skip


@bends("sns.canon.transit", alone=True)
async def hashes_the_bytes(asked: Asked) -> Reply:
    return DENIED if b"\t" in asked.content else await asked.forward()


@bends("sns.canon.surrogates", alone=True)
async def hashes_no_half_characters(asked: Asked) -> Reply:
    return DENIED if b"\\ud800" in asked.content else await asked.forward()


@bends("sns.canon.nul", alone=True)
async def fails_at_a_nul(asked: Asked) -> Reply:
    return Reply(500, {"error": "no"}) if b"\\u0000" in asked.content else await asked.forward()


@bends("sns.canon.huge", alone=True)
async def fails_at_large_numbers(asked: Asked) -> Reply:
    return Reply(500, {"error": "no"}) if b"1e400" in asked.content else await asked.forward()


# Times

patched("gives_a_minute", "trunkline.wires.sns.serve.WINDOW_MS", 60_000, "sns.time.near", alone=True)
patched("takes_any_time", "trunkline.wires.sns.serve.WINDOW_MS", 10**15, "sns.time.far", alone=True)
says("calls_every_time_late", "Invalid timestamp", Reply(401, {"error": "Timestamp expired"}),
     "sns.time.text", alone=True)  # fmt: skip
