"""Checks of input that no client should send: it is refused, and the server lives on."""

from __future__ import annotations

from typing import Any

from trunkline.base import jsontext
from trunkline.conform.kit import Broken
from trunkline.conform.openai.scenes import lives
from trunkline.conform.openai.stage import CHAT, Stage
from trunkline.conform.openai.suite import SUITE

#: Deeper than any request, and than many parsers' stacks.
DEPTH = 100_000
#: Larger than any prompt that a model can read.
HUGE_BYTES = 48 * 1024 * 1024


async def _survived(stage: Stage, content: bytes, what: str, *, refused: bool = True) -> None:
    """A body is refused as the client's fault, or answered where that is fine, and the server lives on."""
    answer = await stage.asking.ask("POST", CHAT, content=content)
    if answer.status >= 500 or (refused and answer.status < 400):
        raise Broken(f"{answer.asked} ({what}) was answered with {answer.told}, not with a status from 400 to 499")
    await lives(stage, what)


async def _body(stage: Stage, **more: Any) -> bytes:
    return jsontext.dumps(await stage.chat_body(**more))


@SUITE.check("openai.bad.deep", "SHOULD", "Errors")
async def deep_json_is_refused(stage: Stage) -> None:
    """Very deeply nested JSON is refused, and the server lives on."""
    deep = b"[" * DEPTH + b"]" * DEPTH
    await _survived(stage, b'{"model":"x","messages":' + deep + b"}", "very deeply nested JSON")


@SUITE.check("openai.bad.utf8", "SHOULD", "Errors")
async def bad_utf8_is_refused(stage: Stage) -> None:
    """A body that is not UTF-8 is refused, and the server lives on."""
    body = (await _body(stage)).replace(b'"role"', b'"\xff\xfe":1,"role"', 1)
    await _survived(stage, body, "invalid UTF-8")


@SUITE.check("openai.bad.surrogate", "SHOULD", "Errors")
async def lone_surrogates_are_survived(stage: Stage) -> None:
    """A message with a lone surrogate, which JSON can spell and UTF-8 cannot, is answered, or refused."""
    body = await _body(stage, prompt="repeat", text="a\ud800b")
    await _survived(stage, body, "a lone surrogate", refused=False)


@SUITE.check("openai.bad.numbers", "SHOULD", "Errors")
async def odd_numbers_are_refused(stage: Stage) -> None:
    """Numbers that cannot be are refused: a negative limit, one beyond all range."""
    for number in (b"-1", b"1e400", b"9" * 5000):
        body = (await _body(stage)).replace(b"{", b'{"max_tokens":' + number + b",", 1)
        await _survived(stage, body, f"`max_tokens` of {number[:8].decode()}")


@SUITE.check("openai.bad.huge", "SHOULD", "Errors")
async def huge_bodies_are_survived(stage: Stage) -> None:
    """A body of 48 MiB is refused, by 413 or 400, or answered, and the server lives on."""
    body = (await _body(stage)).replace(b"{", b"{" + b" " * HUGE_BYTES, 1)
    try:
        answer = await stage.asking.ask("POST", CHAT, content=body)
    except Broken:
        # A server may hang up before it has read everything, and what it said then may be lost on the way.
        answer = None
    if answer is not None and answer.status >= 500:
        raise Broken(f"{answer.asked} (a body of 48 MiB) was answered with {answer.told}, not with 413 or 400")
    await lives(stage, "a body of 48 MiB")


@SUITE.check("openai.bad.half", "SHOULD", "Errors")
async def half_requests_are_survived(stage: Stage) -> None:
    """A request that breaks off in the middle does not hurt the server."""
    for _ in range(3):
        await stage.asking.break_off(CHAT)
    await lives(stage, "requests that broke off")
