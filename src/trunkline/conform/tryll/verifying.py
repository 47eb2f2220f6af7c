"""Checks of what a server believes: offsets, lengths, tags and texts that lie."""

from __future__ import annotations

from trunkline.conform.expect import same
from trunkline.conform.tryll import raw
from trunkline.conform.tryll.link import Link
from trunkline.conform.tryll.stage import Stage
from trunkline.conform.tryll.suite import LINE, NOBODY, canned, check, ended_well, usable
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import encode

_NO_UTF8 = (b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"ok \x80 ok")
#: As many fields as a schema of some later year may have.
_NEWER_FIELDS = 40


@check("tryll.verify.offsets", "SHOULD", "Framing")
async def offsets(stage: Stage) -> None:
    """Offsets and vtables that point outside the frame, or nowhere, get 5001, and do no harm."""
    made = raw.send(71, NOBODY, b"hello")
    size = len(made.data)
    text = made.places[2]
    frames = [made.but(0, "I", wrong) for wrong in (0, 3, size, size - 2, 2**31, 2**32 - 1)]
    frames += [made.but(raw.ROOT, "i", wrong) for wrong in (-(2**31), 2**31 - 1, -size, raw.ROOT + 2)]
    frames += [made.but(raw.BODY_AT, "I", wrong) for wrong in (0, size, 2**32 - 1)]
    frames += [made.but(made.table, "i", wrong) for wrong in (-(2**31), 2**31 - 1, made.table + 8)]
    frames += [made.but(made.vtable, "H", wrong) for wrong in (3, 0xFFFE)]
    frames += [made.but(made.slot(position), "H", 0xFFF0) for position in (0, 1, 2)]
    frames += [made.but(text, "I", wrong) for wrong in (size, 2**31, 2**32 - 1)]
    await _refuses(await stage.session(), frames, "a frame whose offsets point nowhere")


@check("tryll.verify.lengths", "SHOULD", "Framing")
async def lengths(stage: Stage) -> None:
    """Strings and vectors that claim to be longer than the frame get 5001, and do no harm."""
    made = raw.send(72, NOBODY, b"hello")
    frames = [made.but(made.targets[2], "I", wrong) for wrong in (2**32 - 1, 2**31, len(made.data))]
    listed = raw.strings(73, b"lines", (b"one", b"two"))
    frames += [listed.but(listed.targets[2], "I", wrong) for wrong in (2**32 - 1, 2**30, 2**30 + 1, 1000)]
    frames += [listed.but(listed.targets[2] + 4, "I", wrong) for wrong in (2**32 - 1, 2**31)]
    await _refuses(await stage.session(), frames, "a frame that claims to be longer than it is")


@check("tryll.verify.utf8", "SHOULD", "Framing")
async def utf8(stage: Stage) -> None:
    """Text that is not UTF-8 gets 5001, wherever it occurs."""
    frames = [raw.send(74, NOBODY, text).data for text in _NO_UTF8]
    frames += [raw.strings(75, text, (b"one",)).data for text in _NO_UTF8]
    frames += [raw.strings(76, b"lines", (b"one", text)).data for text in _NO_UTF8]
    await _refuses(await stage.session(), frames, "text that is not UTF-8")


@check("tryll.verify.unknown-tag", "SHOULD", "Message types")
async def unknown_tag(stage: Stage) -> None:
    """A message type that is not in the schema gets 5002, and the session stays usable."""
    link = await stage.session()
    for tag in raw.UNKNOWN_TAGS:
        await link.send_bytes(raw.frame(raw.sketch(tag, {0: ("Q", 77)}).data), f"a message with the tag {tag}")
        await link.error(5002, why=f"a message with the tag {tag}")
    await usable(link, "a message of an unknown type")


@check("tryll.verify.server-only", "SHOULD", "Message types")
async def server_only(stage: Stage) -> None:
    """Messages that only a server may send get 5001 or 5002, and the session stays usable."""
    link = await stage.session()
    for tag in raw.SERVER_ONLY:
        await link.send_bytes(raw.frame(raw.sketch(tag, {}).data), f"a server's message, tag {tag}")
        await link.error(5001, 5002, why=f"a server's message, tag {tag},")
    await usable(link, "a server's message")


@check("tryll.verify.no-body", "SHOULD", "Message types")
async def no_body(stage: Stage) -> None:
    """A message without a body, or with the tag NONE, gets 5001 or 5002."""
    made = raw.send(78, NOBODY, b"hello")
    link = await stage.session()
    # The root's vtable has the tag first, then the body.
    frames = [made.but(raw.TAG_AT, "B", 0), made.but(8, "H", 0), made.but(10, "H", 0), made.but(8, "I", 0)]
    for payload in frames:
        await link.send_bytes(raw.frame(payload), "a message without a body")
        await link.error(5001, 5002, why="a message without a body")
    await usable(link, "a message without a body")


@check("tryll.verify.unknown-node", "SHOULD", "GraphDescription shape")
async def unknown_node(stage: Stage) -> None:
    """A node type that is not in the schema gets 5002 (or 3003), and no agent is created."""
    link = await stage.session()
    payload = encode(m.CreateAgentRequest(79, m.GraphDescription((canned("say", LINE),), "say")))
    at = _tag_of_node(payload)
    await link.send_bytes(raw.frame(payload[:at] + b"\xc8" + payload[at + 1 :]), "a node with the tag 200")
    await link.error(5001, 5002, 3003, why="a node with the tag 200")
    await usable(link, "an unknown node")


@check("tryll.verify.aliases", "SHOULD", "Details")
async def aliases(stage: Stage) -> None:
    """Frames that refer to one text a hundred thousand times are answered quickly, whatever the answer."""
    link = await stage.session()
    for number, (count, size) in enumerate(((100_000, 600_000), (200_000, 1_000), (250_000, 0)), 81):
        await link.send_bytes(raw.frame(raw.aliased(number, count, size)), "one text again and again")
        await link.first("answer to a frame of aliases")
        await usable(link, "a frame of aliases")
    await usable(await stage.session(), "frames of aliases, in another session,")


@check("tryll.verify.newer", "MUST", "String storage")
async def newer(stage: Stage) -> None:
    """Fields beyond the schema, as a newer client sends them, are ignored."""
    link = await stage.session()
    agent = await link.agent(canned("say", LINE))
    fields: dict[int, raw.Field] = {0: ("Q", 84), 1: ("Q", agent), 2: b"hello", 30: b"later", 31: ("Q", 7)}
    await link.send_bytes(raw.frame(raw.sketch(raw.SEND, fields, positions=_NEWER_FIELDS).data), "a newer message")
    turn = ended_well(await link.turn(agent, 84))
    same("the answer", (turn.text, turn.complete.request_id), (LINE, 84))


@check("tryll.verify.older", "MUST", "String storage")
async def older(stage: Stage) -> None:
    """Fields that an older client omits have their defaults: a storage without `kind` and `keys` is a List."""
    link = await stage.greeted()
    token: dict[int, raw.Field] = {9: stage.target.token.encode()} if stage.target.token else {}
    await link.send_bytes(raw.frame(raw.sketch(raw.CONFIGURE, token).data), "an empty ConfigureSessionRequest")
    found = await link.first("ConfigureSessionResponse")
    same("the answer to an empty request", found, m.ConfigureSessionResponse())
    await link.send_bytes(raw.frame(raw.strings(85, b"lines", (b"b", b"a")).data), "an old CreateStringStorageRequest")
    same("the answer", await link.answer(85, "it"), m.CreateStringStorageResponse(85, "lines"))
    agent = await link.agent(canned("say", storage="lines"))
    said = [ended_well(await link.say(agent, "hello")).text for _ in range(3)]
    same("the lines of the list", said, ["b", "a", "b"])


async def _refuses(link: Link, payloads: list[bytes], what: str) -> None:
    for payload in payloads:
        await link.send_bytes(raw.frame(payload), what)
        await link.error(5001, why=f"{what} ({payload.hex()[:240]})")
    await usable(link, what)


def _tag_of_node(payload: bytes) -> int:
    """Where a graph of one CannedResponse node has the tag of its parameters."""

    def follow(at: int) -> int:
        return at + int.from_bytes(payload[at : at + 4], "little")

    def field(table: int, position: int) -> int:
        vtable = table - int.from_bytes(payload[table : table + 4], "little", signed=True)
        at = vtable + 4 + 2 * position
        return table + int.from_bytes(payload[at : at + 2], "little")

    body = follow(field(follow(0), 1))
    nodes = follow(field(follow(field(body, 1)), 0))
    return field(follow(nodes + 4), 1)
