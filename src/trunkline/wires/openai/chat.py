"""Chat Completions: what a request asks for, and how an answer is written, streamed or whole. No IO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trunkline.core.usage import Usage
from trunkline.wires.openai import codec
from trunkline.wires.openai.codec import DONE, Params, missing, wrong_type
from trunkline.wires.openai.content import APART, read_content
from trunkline.wires.openai.errors import OpenAIRefused, bad, members
from trunkline.wires.openai.messages import MAX_MESSAGES, AskedTurn, EarlierMessage, FilePart

_ROLES = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool",
    "function": "tool",
}  # fmt: skip


def read_chat(params: Params) -> AskedTurn:
    """What a request asks for.

    Raises:
        OpenAIRefused: it is not one, or asks for what cannot be had here.
    """
    model = codec.model_of(params)
    codec.refuse_what_changes_the_answer(params)
    listed = params.list("messages")
    if not listed:
        raise missing("messages")
    if len(listed) > MAX_MESSAGES:
        raise bad("messages", f"`messages` may have {MAX_MESSAGES} entries at most.", "array_above_max_length")
    said = [read_message(message, f"messages[{index}]") for index, message in enumerate(listed)]
    instructions, before, text, files = split_turn(said, "messages")
    format = params.object("response_format")
    tools: Sequence[Any] = params.list("tools") or [{"function": each} for each in params.list("functions")]
    options = codec.sampling(params) | codec.schema_of(format) | codec.tools_of(tools, params.any("tool_choice"))
    streaming = params.object("stream_options")
    return AskedTurn(
        model,
        text,
        files,
        instructions,
        before,
        stream=bool(params.flag("stream")),
        stop=codec.stops(params),
        max_tokens=params.count("max_completion_tokens") or params.count("max_tokens"),
        options=options,
        include_usage=streaming is not None and bool(streaming.flag("include_usage")),
    )


def read_message(message: Any, path: str) -> tuple[EarlierMessage, tuple[FilePart, ...]]:
    """One message, and the files that come with it."""
    if not isinstance(message, dict):
        raise wrong_type(path, "an object")
    params = Params(message, f"{path}.")
    role = _ROLES.get(params.required_text("role"))
    if role is None:
        raise bad(f"{path}.role", f"`{path}.role` must be one of {', '.join(f'`{name}`' for name in _ROLES)}.")
    text, files = read_content(params.any("content"), f"{path}.content")
    calls = params.list("tool_calls")
    if not all(isinstance(call, dict) for call in calls):
        raise wrong_type(f"{path}.tool_calls", "a list of objects")
    call_id = params.text("tool_call_id") or params.text("name") or ""
    return EarlierMessage(role, text, tuple(calls), call_id if role == "tool" else ""), files


def split_turn(
    said: Sequence[tuple[EarlierMessage, tuple[FilePart, ...]]], param: str
) -> tuple[str, tuple[EarlierMessage, ...], str | None, tuple[FilePart, ...]]:
    """Instructions, what was said before, and what is to be answered with its files.

    The latter is None where results of tools come last. Files of earlier messages are not looked at again.
    """
    instructions = APART.join(message.text for message, _ in said if message.role == "system" and message.text)
    rest = [each for each in said if each[0].role != "system"]
    last = rest[-1] if rest else None
    if last is not None and last[0].role == "tool":
        return instructions, tuple(message for message, _ in rest), None, ()
    if last is None or last[0].role != "user":
        raise bad(param, f"`{param}` must end with a message of the user, or with the results of tools.")
    message, files = last
    if not message.text.strip() and not files:
        raise bad(param, "The last message is empty. Write something, or attach a file.")
    return instructions, tuple(earlier for earlier, _ in rest[:-1]), message.text, files


class ChatWriter:
    """Writes one answer. What is said is given as bytes of a stream; `whole` is all of it.

    Args:
        session: the header's; part of the id.
        created: when, in seconds since 1970.
    """

    def __init__(self, asked: AskedTurn, session: str, turn: int, created: int) -> None:
        self.id = f"chatcmpl-{turn}_{session}"
        self._asked = asked
        self._head = {"id": self.id, "object": "chat.completion", "created": created, "model": asked.model}
        self._streams = asked.stream
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._finish = "stop"
        self._usage: Usage | None = None
        end = b'},"logprobs":null,"finish_reason":null}]%b}\n\n' % (b',"usage":null' if asked.include_usage else b"")
        start = codec.event(self._chunk([])).removesuffix(b"\n\n").partition(b'"choices":[]')[0]
        # One of these is written for every word.
        self._delta = (start + b'"choices":[{"index":0,"delta":{"content":', end)
        self._thought = (start + b'"choices":[{"index":0,"delta":{"reasoning_content":', end)

    def begin(self) -> bytes:
        """Before anything is said."""
        return self._event({"role": "assistant", "content": ""}) if self._streams else b""

    def text(self, text: str) -> bytes:
        """A piece of the answer."""
        if self._streams:
            return self._delta[0] + codec.quoted(text) + self._delta[1]
        self._texts.append(text)
        return b""

    def thought(self, text: str) -> bytes:
        """A piece of what is not the answer: thoughts, and what the agent does."""
        if self._streams:
            return self._thought[0] + codec.quoted(text) + self._thought[1]
        self._thoughts.append(text)
        return b""

    def call(self, id: str, name: str, arguments: str) -> bytes:
        """A tool of the client's that is to be called."""
        made = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        self._calls.append(made)
        return self._event({"tool_calls": [{"index": len(self._calls) - 1, **made}]}) if self._streams else b""

    def end(self, finish: str, usage: Usage | None) -> bytes:
        """The answer is whole. `finish`: `stop`, `length` or `tool_calls`."""
        self._finish, self._usage = "tool_calls" if self._calls else finish, usage
        if not self._streams:
            return b""
        last = self._event({}, self._finish)
        if self._asked.include_usage:
            last += codec.event({**self._chunk([]), "usage": codec.chat_usage(usage)})
        return last + DONE

    def fail(self, refused: OpenAIRefused, usage: Usage | None = None, *, stopped: bool = False) -> bytes:
        """There is no answer, or not all of it."""
        return codec.event(members(refused.status, refused.message, refused.param, refused.code)) + DONE

    def whole(self) -> Mapping[str, Any]:
        """The answer at once."""
        text = "".join(self._texts)
        message: dict[str, Any] = {"role": "assistant", "content": text if text or not self._calls else None}
        message["refusal"] = None
        if self._thoughts:
            message["reasoning_content"] = "".join(self._thoughts)
        if self._calls:
            message["tool_calls"] = self._calls
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._finish}
        found: dict[str, Any] = {**self._head, "choices": [choice]}
        if (usage := codec.chat_usage(self._usage)) is not None:
            found["usage"] = usage
        return found

    def _event(self, delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunk = self._chunk([choice])
        return codec.event({**chunk, "usage": None} if self._asked.include_usage else chunk)

    def _chunk(self, choices: list[Any]) -> dict[str, Any]:
        return {**self._head, "object": "chat.completion.chunk", "choices": choices}
