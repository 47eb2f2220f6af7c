"""Checks of the canonical text of a body.

Each has the text in full, as JavaScript makes it: nothing computes it here, so that no error of ours is a rule.
"""

from __future__ import annotations

from trunkline.base import jsontext
from trunkline.conform.kit import Broken
from trunkline.conform.sns.stage import Stage, word
from trunkline.conform.sns.suite import answered, check

#: What is sent as the member `x`, and what of it is hashed.
Vector = tuple[str, str]

_NUMBERS: tuple[Vector, ...] = (
    ("[1.0, 1e2, 1E5, -0, -0.0, 0.1]", "[1,100,100000,0,0,0.1]"),
    ("[1e20, 1e21, 123456789012345678901]", "[100000000000000000000,1e+21,123456789012345680000]"),
    ("[1e-6, 1e-7, 2.5e-8, 0.00001234]", "[0.000001,1e-7,2.5e-8,0.00001234]"),
    ("[9007199254740993, 1.5e300, 5e-324]", "[9007199254740992,1.5e+300,5e-324]"),
)
_ORDER: tuple[Vector, ...] = (
    ('{"b": 1, "a": {"d": [], "c": {}}}', '{"a":{"c":{},"d":[]},"b":1}'),
    ('{"10": 1, "9": 2, "a": 3, "B": 4}', '{"10":1,"9":2,"B":4,"a":3}'),
    ('[{"z": 1, "y": [{"w": 1, "v": 2}]}]', '[{"y":[{"v":2,"w":1}],"z":1}]'),
    # By UTF-16 units, a character beyond U+FFFF comes before U+FB01; by code points, after it.
    ('{"\ufb01": 1, "\U0001f600": 2, "z": 3, "\u00e9": 4}', '{"z":3,"\u00e9":4,"\U0001f600":2,"\ufb01":1}'),
)
_TEXTS: tuple[Vector, ...] = (
    ('"\\u00e9\\u65e5 \\ud83d\\ude00"', '"\u00e9\u65e5 \U0001f600"'),
    ('"a\\u001f\\u007f\\u2028\\/"', '"a\\u001f\u007f\u2028/"'),
    ('"\\b\\f\\n\\r\\t\\"\\\\\\u0041"', '"\\b\\f\\n\\r\\t\\"\\\\A"'),
    ('[true, false, null, [], {}, ""]', '[true,false,null,[],{},""]'),
)
#: A half of a character, as a value and as a name.
_SURROGATES: tuple[Vector, ...] = (('"\\ud800"', '"\\ud800"'), ('{"\\udc00x": 1}', '{"\\udc00x":1}'))


@check("sns.canon.order", "MUST", "Write flow")
async def order(stage: Stage) -> None:
    """For the hash, members are sorted by the UTF-16 units of their names at every depth, without white space."""
    await _hold(stage, _ORDER)


@check("sns.canon.numbers", "MUST", "Write flow")
async def numbers(stage: Stage) -> None:
    """Numbers are hashed as JavaScript prints them."""
    await _hold(stage, _NUMBERS)


@check("sns.canon.text", "MUST", "Write flow")
async def text(stage: Stage) -> None:
    """Strings are hashed as JavaScript prints them: characters outside ASCII are unescaped, however they were written
    in transit.
    """
    await _hold(stage, _TEXTS)


@check("sns.canon.transit", "MUST", "Write flow")
async def transit(stage: Stage) -> None:
    """Member order and white space in transit do not matter."""
    agent = await stage.agent()
    draft = await stage.thread_draft(agent)
    body = jsontext.loads(draft.content)
    pieces = [f"{jsontext.dumps(name).decode()} :\n {jsontext.dumps(body[name]).decode()}" for name in reversed(body)]
    spelled = " ,\t".join(pieces)
    answered(await stage.send(draft, content=f" {{\n{spelled} }}\n".encode()), 200)


@check("sns.canon.surrogates", "SHOULD", "Details")
async def surrogates(stage: Stage) -> None:
    """An unpaired surrogate is hashed as its escape: it gets 200 or 400, never 401, and later reads are valid."""
    await _hold(stage, _SURROGATES, 200, 400)
    await _harmless(stage, '"\\ud800"', '"\\ud800"', 200, 400)


@check("sns.canon.nul", "SHOULD", "Details")
async def nul(stage: Stage) -> None:
    """A string with U+0000 gets 200 or 400, never 401, and later reads are valid."""
    await _harmless(stage, '"a\\u0000b"', '"a\\u0000b"', 200, 400)


@check("sns.canon.huge", "SHOULD", "Details")
async def huge(stage: Stage) -> None:
    """A number too large for a double gets 200 or an error, and later reads are valid."""
    await _hold(stage, (("1e400", "null"),), 200, 400, 401)
    await _harmless(stage, "1e400", "null", 200, 400, 401)


async def _hold(stage: Stage, vectors: tuple[Vector, ...], *statuses: int) -> None:
    """Send each vector as a member that nobody knows."""
    for sent, canonical in vectors:
        await _write(stage, sent, canonical, '"A body."', '"A body."', statuses or (200,))


async def _harmless(stage: Stage, sent: str, canonical: str, *statuses: int) -> None:
    """Send something as the body of a thread, and see that everything can be read afterwards."""
    await _write(stage, "0", "0", sent, canonical, statuses)
    agent = await stage.agent()
    await stage.context(agent)
    slug = (await stage.community(agent)).slug
    listed = await stage.get(f"/api/communities/{slug}/threads")
    if listed.status >= 500:
        raise Broken(f"afterwards {listed.asked} was answered with {listed.status}")


async def _write(
    stage: Stage, sent: str, canonical: str, body: str, canonical_body: str, statuses: tuple[int, ...]
) -> None:
    agent = await stage.agent()
    community = jsontext.dumps((await stage.community(agent)).id).decode()
    title = jsontext.dumps(word()).decode()
    content = f'{{"x": {sent}, "title": {title}, "communityId": {community}, "body": {body}}}'
    text = f'{{"body":{canonical_body},"communityId":{community},"title":{title},"x":{canonical}}}'
    draft = await stage.draft(agent, "POST", "/api/threads", content.encode(), text)
    answer = await stage.send(draft)
    if answer.status not in statuses:
        shown = f"{sent} {body}" if sent != "0" else body
        raise Broken(f"with {shown!a}: {answer.status} {answer.shown!a}")
