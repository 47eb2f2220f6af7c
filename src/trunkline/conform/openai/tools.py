"""Checks of a client's own tools: called, or refused, but never ignored in silence where they are called."""

from __future__ import annotations

from typing import Any

from trunkline.conform.expect import expect, short
from trunkline.conform.kit import NotApplicable
from trunkline.conform.openai.answer import OpenAIAnswer, is_count, is_text, member, parsed
from trunkline.conform.openai.scenes import chunks, content, fine, finish, refused
from trunkline.conform.openai.stage import Stage
from trunkline.conform.openai.suite import SUITE

NAME = "get_weather"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": NAME,
            "description": "The weather in a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


async def _asked(stage: Stage, **more: Any) -> OpenAIAnswer:
    """A completion with tools, which may be refused.

    Raises:
        NotApplicable: it was.
        Broken: it was, and not as it should be.
    """
    answer = await stage.chat("tool", tools=TOOLS, **more)
    if answer.status != 200:
        refused(answer, "with tools", 400)
        raise NotApplicable(f"the server takes no tools of clients: {answer.told}")
    return answer


def _calls(answer: OpenAIAnswer) -> list[Any]:
    found = answer.member("choices", 0, "message", "tool_calls")
    if not found:
        raise NotApplicable(f"the model called no tool: it said {short(content(answer))}")
    return found if isinstance(found, list) else [found]


@SUITE.check("openai.tools.taken", "MUST", "Chat")
async def tools_are_taken_or_refused(stage: Stage) -> None:
    """A request with `tools` is answered, or refused with 400 and the reason."""
    answer = await stage.chat("tool", tools=TOOLS)
    if answer.status != 200:
        refused(answer, "with tools", 400)


@SUITE.check("openai.tools.call", "MUST", "Chat")
async def calls_have_a_shape(stage: Stage) -> None:
    """A call has an `id`, the type `function`, a name that was offered and arguments in JSON; the reason says so."""
    answer = await _asked(stage)
    for call in _calls(answer):
        arguments = member(call, "function", "arguments")
        whole = is_text(member(call, "id")) and member(call, "type") == "function"
        whole = whole and member(call, "function", "name") == NAME and isinstance(arguments, str)
        expect(whole and isinstance(parsed(str(arguments).encode()), dict), f"the call {short(call)} is not complete")
    expect(finish(answer) == "tool_calls", f"{answer.asked} was answered with `finish_reason` {short(finish(answer))}")


@SUITE.check("openai.tools.result", "MUST", "Chat")
async def results_are_taken(stage: Stage) -> None:
    """The result of a call, in a message of the role `tool`, is taken, and the answer goes on from there."""
    first = await _asked(stage)
    results = [{"role": "tool", "tool_call_id": member(call, "id"), "content": "Sunny"} for call in _calls(first)]
    said = {"role": "user", "content": stage.prompt("tool")}
    messages = [said, first.member("choices", 0, "message"), *results]
    answer = fine(await stage.chat(messages=messages, tools=TOOLS))
    known = bool(content(answer)) or bool(answer.member("choices", 0, "message", "tool_calls"))
    expect(known, f"{answer.asked} was answered with {answer.shown}, without a text")


@SUITE.check("openai.tools.stream", "MUST", "Streaming")
async def calls_are_streamed(stage: Stage) -> None:
    """Pieces of a call have its `index`; the first has its `id` and name; the arguments add up to JSON."""
    answer = await _asked(stage, stream=True)
    calls: dict[int, dict[str, Any]] = {}
    for chunk in chunks(answer):
        for piece in member(chunk, "choices", 0, "delta", "tool_calls") or ():
            index = member(piece, "index")
            expect(is_count(index), f"the piece {short(piece)} of a call for {answer.asked} has no `index`")
            call = calls.setdefault(index, {"id": piece.get("id"), "name": None, "arguments": ""})
            call["name"] = call["name"] or member(piece, "function", "name")
            call["arguments"] += member(piece, "function", "arguments") or ""
    if not calls:
        raise NotApplicable(f"the model called no tool: it said {short(content(answer))}")
    for call in calls.values():
        whole = is_text(call["id"]) and call["name"] == NAME and isinstance(parsed(call["arguments"].encode()), dict)
        expect(whole, f"the pieces for {answer.asked} add up to {short(call)}")
    expect(finish(answer) == "tool_calls", f"{answer.asked} was answered with `finish_reason` {short(finish(answer))}")
