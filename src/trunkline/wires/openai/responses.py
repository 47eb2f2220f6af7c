"""Responses: what a request asks for. How an answer is written is in `responses_writer`. No IO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trunkline.wires.openai import codec
from trunkline.wires.openai.chat import read_message, split_turn
from trunkline.wires.openai.codec import Params, missing, wrong_type
from trunkline.wires.openai.content import APART, read_content
from trunkline.wires.openai.errors import bad
from trunkline.wires.openai.messages import MAX_MESSAGES, REFERENCE, AskedTurn, EarlierMessage, FilePart

_Said = tuple[EarlierMessage, tuple[FilePart, ...]]

#: What an answer repeats of its request, and what it says where the request says nothing.
_ECHOED: Mapping[str, Any] = {
    "background": False, "instructions": None, "max_output_tokens": None, "max_tool_calls": None, "metadata": {},
    "parallel_tool_calls": True, "previous_response_id": None, "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None}, "safety_identifier": None, "service_tier": "default",
    "store": True, "temperature": 1.0, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [],
    "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "user": None, "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}  # fmt: skip


def read_response(params: Params) -> AskedTurn:
    """What a request asks for.

    Raises:
        OpenAIRefused: it is not one, or asks for what cannot be had here.
    """
    model = codec.model_of(params)
    codec.refuse_what_changes_the_answer(params)
    given = params.any("input")
    if given is None or given in ("", []):
        raise missing("input")
    said = _items(given)
    instructions, before, text, files = split_turn(said, "input")
    own = params.text("instructions") or ""
    text_form = params.object("text")
    options = codec.sampling(params)
    options |= codec.schema_of(text_form.object("format") if text_form is not None else None)
    options |= codec.tools_of(params.list("tools"), params.any("tool_choice"))
    store = params.flag("store")
    background = bool(params.flag("background"))
    previous = params.text("previous_response_id") or None
    session = conversation_of(params.any("conversation"))
    if previous and session:
        raise bad("previous_response_id", "`previous_response_id` and `conversation` cannot be used together.")
    if background and store is False:
        raise bad("background", "`background` needs `store`: there would be nothing to ask for later.")
    metadata = params.object("metadata")
    return AskedTurn(
        model,
        text,
        files,
        APART.join(part for part in (own, instructions) if part),
        before,
        stream=bool(params.flag("stream")),
        stop=codec.stops(params),
        max_tokens=params.count("max_output_tokens"),
        options=options,
        param="input",
        session=session,
        previous=previous,
        store=store is not False,
        background=background,
        echoed=echoed({**params.members, "metadata": {} if metadata is None else metadata.members}),
    )


def echoed(request: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer repeats of its request, with what holds where it says nothing."""
    found = {name: default if request.get(name) is None else request[name] for name, default in _ECHOED.items()}
    if isinstance(found["reasoning"], dict):
        found["reasoning"] = {**_ECHOED["reasoning"], **found["reasoning"]}
    return found


def conversation_of(given: Any) -> str | None:
    """The session that `conversation` names: its id, or an object with it."""
    if isinstance(given, dict):
        given = Params(given, "conversation.").required_text("id")
    if given is not None and not isinstance(given, str):
        raise wrong_type("conversation", "an id, or an object with an `id`")
    return given or None


def _items(given: Any) -> Sequence[_Said]:
    """The items of an input as messages."""
    if isinstance(given, str):
        return [(EarlierMessage("user", given), ())]
    if not isinstance(given, list):
        raise wrong_type("input", "a string or a list of items")
    if len(given) > MAX_MESSAGES:
        raise bad("input", f"`input` may have {MAX_MESSAGES} items at most.", "array_above_max_length")
    found: list[_Said] = []
    for index, item in enumerate(given):
        path = f"input[{index}]"
        if not isinstance(item, dict):
            raise wrong_type(path, "an object")
        message = _item(Params(item, f"{path}."), path)
        if message is None:
            continue
        if message[0].tool_calls and found and found[-1][0].role == "assistant":
            # Calls that were made at once, and what was said before them, are one message.
            earlier = found.pop()[0]
            message = earlier.replace(tool_calls=(*earlier.tool_calls, *message[0].tool_calls)), ()
        found.append(message)
    return found


def _item(item: Params, path: str) -> _Said | None:
    kind = item.text("type") or "message"
    if kind == "message":
        return read_message(item.members, path)
    if kind == "reasoning":
        # What was thought is the agent's own, and is not told again.
        return None
    if kind == "function_call":
        function = {"name": item.required_text("name"), "arguments": item.text("arguments") or "{}"}
        call = {"id": item.required_text("call_id"), "type": "function", "function": function}
        return EarlierMessage("assistant", "", (call,)), ()
    if kind == "function_call_output":
        text, _ = read_content(item.any("output"), f"{path}.output")
        return EarlierMessage("tool", text, (), item.required_text("call_id")), ()
    if kind == "item_reference":
        return EarlierMessage(REFERENCE, item.required_text("id")), ()
    raise bad(f"{path}.type", f"`{path}.type`: items of the type `{kind[:80]}` are not taken here.")
