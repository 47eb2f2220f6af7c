"""A plain model of this machine as an agent, `model:NAME`: no tools of its own, and no words of ours in front.

NAME is a language model of the catalog or of a hub that was pulled, the path of a `.gguf` file, `mock`, or a model of a
server on this machine: `ollama/NAME`, `llama-server/NAME`.

Who talks to it may say before a turn, with `SetOptions` (see `agents.plain_options`):

- `instructions`, `tools`, `tool_choice`, `stop`, `max_tokens`, `temperature`, `top_p`, `seed`, `schema`: these hold
  until they are changed, and None puts one back;
- `messages`: a conversation that takes the place of this one's;
- `tool_outputs`: what became of the calls that the model made last.

Said for one message (`SetOptions.message`), they are taken up with it: those before it were said with others.

The next message follows them; an empty one adds nothing, if there is something to answer. A tool that the model calls
is not run here: the turn says `Extension("client_tool_call", {"id", "name", "arguments"})` for it and ends. An answer
that did not simply come to its end says so: `Extension("finish", {"reason": "length" | "tool_calls"})`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from contextlib import aclosing
from typing import Any
from weakref import WeakKeyDictionary

from trunkline.agents.coder.files import attach
from trunkline.agents.plain_options import PlainOptions, changed, conversation, outputs
from trunkline.agents.streamed import StreamedConversation
from trunkline.agents.turn_stream import TurnStream
from trunkline.base import jsontext
from trunkline.core import fault_kinds
from trunkline.core.agent import AddHistory, AddMcpServer, Capabilities, Change, Decision, OpenRequest, SetOptions
from trunkline.core.events import FINISH, Extension, Failed, Notice, TextDelta, ThinkingDelta, TurnEnded, UserMessage
from trunkline.core.faults import ConfigError, ProviderError, SessionDamaged, Unsupported
from trunkline.core.usage import Usage
from trunkline.models import abilities, providers
from trunkline.models.asking import asked
from trunkline.models.discover_servers import server_url
from trunkline.models.here import MOCK
from trunkline.models.kept import Kept
from trunkline.models.messages import Block, Message, Text, ToolResultBlock, ToolUse, from_json, to_json
from trunkline.models.model import Answer, Model, Request, Retrying, TextChunk, ThinkingChunk
from trunkline.models.providers import SERVICES, ModelSettings

#: How the names of these agents begin.
PREFIX = "model:"
#: What is said for a tool that the model called, and at the end of an answer.
CLIENT_TOOL_CALL = "client_tool_call"
#: Where a client went on without saying what became of a call. Servers refuse calls without a result.
NO_RESULT = "(There is no result.)"
#: Messages that wait with options of their own: more than anybody sends ahead. The oldest were withdrawn.
MOST_COMING = 256

_SYSTEM = "system"

#: The models of this process that are loaded, for each event loop.
_kept: WeakKeyDictionary[asyncio.AbstractEventLoop, Kept[Model]] = WeakKeyDictionary()


class PlainModel:
    """Opens conversations with one model."""

    def __init__(self, name: str) -> None:
        """
        Raises:
            ConfigError: no model is named.
        """
        if not name:
            raise ConfigError(
                f"`{PREFIX}` needs a model.", hint="`trunkline models list` shows those there are, or use `model:mock`."
            )
        self.name = PREFIX + name
        self.model_settings = _settings(name)

    @property
    def capabilities(self) -> Capabilities:
        can = abilities.of(self.model_settings)
        # It has no tools, so none of them ever runs unasked.
        return Capabilities(approval=True, thinking=can.thinks, images=can.images, resume=True)

    @property
    def checked(self) -> bool:
        """Whether nothing can keep it from opening a conversation."""
        return self.model_settings.provider == MOCK

    def problem(self) -> str | None:
        """Why it cannot answer here: the model or what runs it is missing. Loads nothing."""
        try:
            providers.make(self.model_settings)
        except ConfigError as error:
            return str(error)
        return None

    async def open(self, request: OpenRequest) -> PlainConversation:
        if self.model_settings.provider != "local":
            # Costs nothing to make; those with connections keep them to themselves.
            return PlainConversation(request, providers.make(self.model_settings), None)
        kept = _kept.setdefault(asyncio.get_running_loop(), Kept())

        async def load() -> Model:
            return providers.make(self.model_settings)

        return PlainConversation(request, await kept.take(self.model_settings.model, load), kept)


def _settings(name: str) -> ModelSettings:
    if name == MOCK:
        return ModelSettings(MOCK)
    server, slash, model = name.partition("/")
    if slash and model and server in SERVICES and SERVICES[server].base_url is None:
        return ModelSettings("openai", model, base_url=f"{server_url(server, os.environ)}/v1")
    return ModelSettings("local", name)


class PlainConversation(StreamedConversation):
    """One dialogue with a model. `kept`: what the model goes back to afterwards; else it is closed."""

    def __init__(self, request: OpenRequest, model: Model, kept: Kept[Model] | None) -> None:
        super().__init__(request)
        self._model = model
        self._kept = kept
        self._options = PlainOptions(instructions=request.instructions or "")
        self._coming: dict[str, Callable[[], None]] = {}
        """What is taken up with messages that wait, by their ids."""
        self._before = list(request.history)
        self._system = ""
        self._messages: list[Message] = []
        try:
            for record in request.journal.records:
                if record.get("role") == _SYSTEM:
                    self._system = str(record["text"])
                else:
                    self._messages.append(from_json(record))
        except (LookupError, ValueError, AttributeError):
            hint = "Continue it with the agent that it began with, or begin a new one."
            raise SessionDamaged("This session was not written by a plain model.", hint=hint) from None

    async def decide(self, call_id: str, decision: Decision) -> None:
        """Nothing is ever asked, so there is nothing to decide."""

    async def configure(self, change: Change) -> None:
        if isinstance(change, AddMcpServer):
            raise Unsupported("A plain model has no tools of its own, so it cannot use an MCP server.")
        if isinstance(change, AddHistory):
            self._before.append(change.text)
        elif isinstance(change, SetOptions):
            said = change.options
            options = changed(self._options, said)
            brought = conversation(said["messages"]) if said.get("messages") is not None else None
            results = outputs(said["tool_outputs"]) if said.get("tool_outputs") is not None else ()

            def take_up() -> None:
                self._options = options
                if brought is not None:
                    self._replace(*brought)
                for message in results:
                    self._add(message)

            # Only now: a change that is refused changes nothing.
            if not change.message:
                take_up()
                return
            self._coming[change.message] = take_up
            if len(self._coming) > MOST_COMING:
                del self._coming[next(iter(self._coming))]

    async def close(self) -> None:
        if self._closed:
            return
        self._now_closed()
        if self._stream is not None:
            await self._stream.aclose()
        if self._kept is None:
            await self._model.close()
        else:
            self._kept.give(self._model.name)

    # What was said

    def _replace(self, system: str, messages: Iterable[Message]) -> None:
        self._system, self._messages = system, list(messages)
        kept: list[Any] = [{"role": _SYSTEM, "text": system}] if system else []
        self._request.journal.replace([*kept, *map(to_json, self._messages)])

    def _add(self, message: Message) -> None:
        self._messages.append(message)
        if not self._closed:
            self._request.journal.append(to_json(message))

    def _answer_calls(self) -> None:
        """Give each call of the latest answer a result, wherever the client said none."""
        answered: set[str] = set()
        for message in reversed(self._messages):
            if message.role == "assistant":
                open_calls = [block for block in message.content if isinstance(block, ToolUse)]
                missing = [ToolResultBlock(call.id, NO_RESULT) for call in open_calls if call.id not in answered]
                if missing:
                    self._add(Message("user", tuple(missing)))
                return
            answered |= {block.id for block in message.content if isinstance(block, ToolResultBlock)}

    # Turns

    async def _work(self, message: UserMessage, tell: TurnStream) -> TurnEnded:
        if (take_up := self._coming.pop(message.id or "", None)) is not None:
            take_up()
        options = self._options
        said: list[str] = []
        tell.usage = Usage()
        try:
            content, notices = await attach(message, self._request.workspace, images=self._model.images)
            for notice in notices:
                await tell.say(Notice(notice))
            self._answer_calls()
            if message.text or message.files or not self._messages or self._messages[-1].role == "assistant":
                self._add(Message("user", content))
            answer = await self._ask(options, said, tell)
        except asyncio.CancelledError:
            self._keep(said)
            raise
        except Exception as error:
            fault = fault_kinds.of(error)
            self._keep(said)
            await tell.say(Failed(fault.kind, str(fault), fault.retryable))
            return TurnEnded("error", tell.usage)
        return await self._end(answer, tell)

    async def _ask(self, options: PlainOptions, said: list[str], tell: TurnStream) -> Answer:
        def spend(usage: Usage | None) -> None:
            if usage is not None:
                tell.usage = (tell.usage or Usage()) + usage
                if self._request.meter is not None:
                    self._request.meter.spent(usage, self._model.name)

        if self._request.meter is not None:
            self._request.meter.check()
        request = Request(
            tuple(self._messages),
            "\n\n".join(part for part in (*self._before, options.instructions, self._system) if part),
            options.offered,
            options.max_tokens,
            on_spent=spend,
            options=options.answer,
        )
        answer: Answer | None = None
        async with aclosing(asked(self._model, request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, TextChunk):
                    said.append(chunk.text)
                    await tell.say(TextDelta(chunk.text))
                elif isinstance(chunk, ThinkingChunk):
                    await tell.say(ThinkingDelta(chunk.text))
                elif isinstance(chunk, Retrying):
                    await tell.say(Notice(chunk.told))
                elif isinstance(chunk, Answer):
                    answer = chunk
        if answer is None:
            raise ProviderError("The model's answer ended without an end.", retryable=True)
        spend(answer.usage)
        return answer

    async def _end(self, answer: Answer, tell: TurnStream) -> TurnEnded:
        # A call that was cut off is none.
        content = [block for block in answer.content if answer.stop != "max_tokens" or not isinstance(block, ToolUse)]
        if content:
            self._add(Message("assistant", tuple(content)))
        if answer.stop == "refusal":
            await tell.say(Failed("provider", "The model refused to answer."))
            return TurnEnded("error", tell.usage)
        calls = [block for block in content if isinstance(block, ToolUse)]
        for call in calls:
            await tell.say(Extension(CLIENT_TOOL_CALL, _told(call)))
        if calls or answer.stop == "max_tokens":
            await tell.say(Extension(FINISH, {"reason": "tool_calls" if calls else "length"}))
        return TurnEnded("success", tell.usage)

    def _keep(self, said: list[str]) -> None:
        """What people have seen of an answer that did not come to its end."""
        if said:
            content: tuple[Block, ...] = (Text("".join(said)),)
            self._add(Message("assistant", content))


def _told(call: ToolUse) -> dict[str, str]:
    arguments = call.raw or "" if call.input is None else jsontext.dumps(call.input).decode()
    return {"id": call.id, "name": call.name, "arguments": arguments}
