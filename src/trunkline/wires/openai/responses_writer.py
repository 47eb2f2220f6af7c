"""How an answer is written in Responses: items, and the events that tell of them as they come. No IO.

The answer itself is in items of the type `message`. What the agent thinks and does is in items of the type `reasoning`,
as summaries: every client leaves those alone, while it would try to run a `function_call`. Only tools of the client's
own, which plain models may call, are that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trunkline.base.jsontext import dumps
from trunkline.core.usage import Usage
from trunkline.wires.openai import codec
from trunkline.wires.openai.codec import DONE, response_id
from trunkline.wires.openai.errors import OpenAIRefused

_TOO_MANY = 429


class ResponsesWriter:
    """Writes one answer. What is said is given as bytes of a stream; `whole` is all of it.

    Args:
        echoed: what the answer repeats of its request.
        created: when, in seconds since 1970.
        streams: whether anybody reads the events.
        clock: tells when it is complete.
        kept: whether its session is there afterwards.
    """

    def __init__(
        self,
        model: str,
        session: str,
        turn: int,
        created: int,
        *,
        echoed: Mapping[str, Any],
        streams: bool,
        clock: Callable[[], float],
        kept: bool = True,
    ) -> None:
        self.id = response_id(session, turn)
        self.status = "in_progress"
        self._place = (turn, session)
        self._head = {"id": self.id, "object": "response", "created_at": created}
        self._model = model
        self._conversation = {"id": session} if kept else None
        self._echoed = echoed
        self._streams = streams
        self._sequence = 0
        self._output: list[dict[str, Any]] = []
        self._open: _OpenItem | None = None
        self._usage: Usage | None = None
        self._error: dict[str, Any] | None = None
        self._clock = clock
        self._completed: int | None = None

    def begin(self) -> bytes:
        """Before anything is said."""
        created = self._event("response.created", response=self.whole())
        return created + self._event("response.in_progress", response=self.whole())

    def text(self, text: str) -> bytes:
        """A piece of the answer."""
        return self._say(_MESSAGE, text)

    def thought(self, text: str) -> bytes:
        """A piece of what is not the answer: thoughts, and what the agent does."""
        return self._say(_REASONING, text)

    def _say(self, kind: _ItemKind, text: str) -> bytes:
        data = b""
        item = self._open
        if item is None or item.kind is not kind:
            data = self._close("completed")
            item = self._open = _OpenItem(kind, self._id(kind.prefix), len(self._output))
            data += self._event("response.output_item.added", output_index=item.index, item=item.members("in_progress"))
            data += self._event(kind.part_added, **item.place, part=kind.part(""))
        item.texts.append(text)
        if not self._streams:
            return b""
        data += item.start + b"%d" % self._sequence + item.middle + codec.quoted(text) + item.finish
        self._sequence += 1
        return data

    def call(self, id: str, name: str, arguments: str) -> bytes:
        """A tool of the client's that is to be called."""
        data = self._close("completed")
        index = len(self._output)
        made = {"id": self._id("fc"), "type": "function_call", "call_id": id, "name": name}
        begun = {**made, "arguments": "", "status": "in_progress"}
        whole = {**made, "arguments": arguments, "status": "completed"}
        place = {"item_id": made["id"], "output_index": index}
        data += self._event("response.output_item.added", output_index=index, item=begun)
        data += self._event("response.function_call_arguments.delta", **place, delta=arguments)
        data += self._event("response.function_call_arguments.done", **place, name=name, arguments=arguments)
        data += self._event("response.output_item.done", output_index=index, item=whole)
        self._output.append(whole)
        return data

    def end(self, finish: str, usage: Usage | None) -> bytes:
        """The answer is whole. `finish`: `stop`, `length` or `tool_calls`."""
        self._usage = usage
        is_cut = finish == "length"
        data = self._close("incomplete" if is_cut else "completed")
        self.status = "incomplete" if is_cut else "completed"
        self._completed = None if is_cut else int(self._clock())
        return data + self._event(f"response.{self.status}", response=self.whole()) + self._done()

    def fail(self, refused: OpenAIRefused, usage: Usage | None = None, *, stopped: bool = False) -> bytes:
        """There is no answer, or not all of it."""
        self._usage = usage
        data = self._close("incomplete")
        self.status = "cancelled" if stopped else "failed"
        code = "rate_limit_exceeded" if refused.status == _TOO_MANY else "server_error"
        self._error = None if stopped and not self._streams else {"code": code, "message": refused.message}
        return data + self._event("response.failed", response=self.whole()) + self._done()

    def whole(self) -> dict[str, Any]:
        """The answer as it is now."""
        is_cut = self.status == "incomplete"
        return {
            **self._head,
            "completed_at": self._completed,
            "status": self.status,
            "error": self._error,
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "model": self._model,
            "output": list(self._output),
            "conversation": self._conversation,
            **self._echoed,
            "usage": codec.responses_usage(self._usage),
        }

    def _id(self, kind: str) -> str:
        """Of the next item."""
        return codec.item_id(kind, len(self._output), *self._place)

    def _close(self, status: str) -> bytes:
        item, self._open = self._open, None
        if item is None:
            return b""
        text = "".join(item.texts)
        whole = item.members(status, text)
        self._output.append(whole)
        more: dict[str, Any] = {"logprobs": []} if item.kind is _MESSAGE else {}
        data = self._event(item.kind.done, **item.place, text=text, **more)
        data += self._event(item.kind.part_done, **item.place, part=item.kind.part(text))
        return data + self._event("response.output_item.done", output_index=item.index, item=whole)

    def _done(self) -> bytes:
        # Clients that only know Chat Completions wait for it, and the others leave it alone.
        return DONE if self._streams else b""

    def _event(self, kind: str, **members: Any) -> bytes:
        if not self._streams:
            return b""
        data = codec.event({"type": kind, "sequence_number": self._sequence, **members}, kind)
        self._sequence += 1
        return data


class _ItemKind:
    """What a kind of item is called, and its events."""

    def __init__(self, prefix: str, part_added: str, delta: str, done: str, part_done: str, within: str) -> None:
        self.prefix = prefix
        self.part_added, self.delta, self.done, self.part_done = part_added, delta, done, part_done
        self.within = within
        """The name of a part's number."""

    def part(self, text: str) -> dict[str, Any]:
        if self is _REASONING:
            return {"type": "summary_text", "text": text}
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


_MESSAGE = _ItemKind(
    "msg",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "content_index",
)
_REASONING = _ItemKind(
    "rs",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
    "summary_index",
)


class _OpenItem:
    """An item that is being said."""

    def __init__(self, kind: _ItemKind, id: str, index: int) -> None:
        self.kind = kind
        self.id = id
        self.index = index
        self.texts: list[str] = []
        self.place = {"item_id": id, "output_index": index, kind.within: 0}
        # One of these is written for every word.
        self.start = f'event: {kind.delta}\ndata: {{"type":"{kind.delta}","sequence_number":'.encode()
        self.middle = b"," + dumps(self.place)[1:-1] + b',"delta":'
        self.finish = (b',"logprobs":[]' if kind is _MESSAGE else b"") + b"}\n\n"

    def members(self, status: str, text: str | None = None) -> dict[str, Any]:
        parts = [] if text is None else [self.kind.part(text)]
        if self.kind is _REASONING:
            return {"id": self.id, "type": "reasoning", "summary": parts, "status": status}
        return {"id": self.id, "type": "message", "status": status, "role": "assistant", "content": parts}
