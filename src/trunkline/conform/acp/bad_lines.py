"""Checks of input that no client should send: the connection lives on, and a turn is not disturbed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.conform.acp.scenes import begin, finish, lives, opened, permission, ready
from trunkline.conform.acp.stage import Stage
from trunkline.conform.acp.subject import option
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.kit import Broken, Check, Tier

#: Deeper than any prompt, and than many parsers' stacks.
DEPTH = 100_000
#: A text that somebody may well paste, and that some readers of lines do not expect.
LONG_BYTES = 4 * 1024 * 1024


class HostileLine(Value):
    """A line, or several, that no client should send."""

    name: str
    tier: Tier
    what: str
    data: bytes


HOSTILE: tuple[HostileLine, ...] = (
    HostileLine("malformed", "MUST", "malformed JSON", b'{"jsonrpc":"2.0","id":\n'),
    HostileLine("garbage", "MUST", "lines that are not JSON at all", b"hello\n\xe2\x82\xac\n"),
    HostileLine("blank", "SHOULD", "empty lines", b"\n\r\n  \n"),
    HostileLine("not-object", "SHOULD", "JSON that is not an object", b'5\n"x"\nnull\n[]\n[1]\ntrue\n'),
    HostileLine("utf8", "SHOULD", "invalid UTF-8", b'{"jsonrpc":"2.0","method":"\xff\xfe"}\n'),
    HostileLine("nul", "SHOULD", "NUL bytes", b"\0\0\0\n"),
    HostileLine("deep", "SHOULD", "very deeply nested JSON", b"[" * DEPTH + b"]" * DEPTH + b"\n"),
    HostileLine("response", "MUST", "the answer to a request that was never made",
                b'{"jsonrpc":"2.0","id":991,"result":{}}\n'),
    HostileLine("members", "SHOULD", "messages with members of wrong types",
                b'{"jsonrpc":"2.0","id":{},"method":"session/new"}\n{"jsonrpc":2,"method":[],"params":7}\n{}\n'),
    HostileLine("numbers", "SHOULD", "numbers that are too large",
                b'{"jsonrpc":"2.0","method":"_x","params":{"a":1e999,"b":' + b"9" * 5000 + b"}}\n"),
)  # fmt: skip


def _survived(hostile: HostileLine) -> Callable[[Stage], Awaitable[None]]:
    async def scene(stage: Stage) -> None:
        agent = await ready(stage)
        agent.write(hostile.data)
        await lives(stage, agent, hostile.what)

    return scene


for _each in HOSTILE:
    _text = f"The connection lives on after {_each.what}."
    SUITE.add(Check(f"acp.bad.{_each.name}", _each.tier, "Transports", _text), _survived(_each))


@SUITE.check("acp.bad.long", "SHOULD", "Transports")
async def long_lines_are_answered(stage: Stage) -> None:
    """A prompt of 4 MiB in one line is answered, or refused, and the connection lives on."""
    agent, session = await opened(stage)
    turn = begin(agent, session, [{"type": "text", "text": stage.prompt("hello") + " " * LONG_BYTES}])
    await agent.answer(turn, stage.target.timeout)
    await lives(stage, agent, "a line of 4 MiB")


@SUITE.check("acp.bad.surrogate", "SHOULD", "Transports")
async def lone_surrogates_are_answered(stage: Stage) -> None:
    """A prompt with a lone surrogate, which JSON can spell and UTF-8 cannot, is answered, or refused."""
    agent, session = await opened(stage)
    prompt = [{"type": "text", "text": stage.prompt("repeat", text="a\ud800b")}]
    turn = begin(agent, session, prompt)
    await agent.answer(turn, stage.target.timeout)
    await lives(stage, agent, "a lone surrogate")


@SUITE.check("acp.bad.in-turn", "SHOULD", "Transports")
async def turns_are_not_disturbed(stage: Stage) -> None:
    """Bad lines during a turn do not disturb it."""
    agent, session = await opened(stage, "hold")
    turn = begin(agent, session, stage.prompt("write"))
    request = await permission(stage, agent, turn)
    agent.write(b'{"jsonrpc":\n' + jsontext.dumps({"jsonrpc": "2.0", "id": 990, "result": None}) + b"\n")
    await agent.listen(stage.target.quiet)
    if agent.answer_to(turn.id) is not None:
        raise Broken("a bad line ended the turn that was waiting for a permission")
    agent.policy = "reject"
    agent.answer_permission(request, option(request, "reject"))
    await finish(stage, agent, turn)
