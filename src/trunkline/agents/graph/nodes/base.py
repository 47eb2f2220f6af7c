"""What all nodes are: parameters, exits, and something to do in a turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Generic, TypeVar

from trunkline.agents.graph.dialog import Dialog, Window
from trunkline.agents.graph.host import Host
from trunkline.agents.graph.mustache import QUICK_TEMPLATES
from trunkline.agents.graph.params import exits_of, rules_of
from trunkline.agents.graph.turn import GraphTurn, TurnEvent
from trunkline.base import jsontext
from trunkline.core.faults import BadParameter, Fault, GraphError, NodeFailed, ProviderError
from trunkline.core.graph.description import NodeDescription, NodeParams
from trunkline.core.graph.models import SamplingParams
from trunkline.models.engines import ChatMessage, LanguageEngine, Prompt, Slot
from trunkline.models.generating import generated
from trunkline.models.overflow import PromptTooLong
from trunkline.models.sampling import resolve_sampling

#: Characters of a prompt that diagnostics show: each node of a turn has one.
MAX_SHOWN = 32 * 1024

P = TypeVar("P", bound=NodeParams)
T = TypeVar("T")


class Node(Generic[P]):
    """One node of one agent. `params` are checked before they come here, as far as they can be without a host."""

    heavy = False
    """Whether it may take milliseconds at once. Turns that begin with such a node wait for each other."""

    template_field = ""
    """The parameter that is a template, if one is."""

    def __init__(self, description: NodeDescription, params: P) -> None:
        self.name = description.name
        self.params = params
        self.type = rules_of(params).type
        self.exits = exits_of(params)

    @classmethod
    def template_size(cls, params: NodeParams) -> int:
        """Characters of the template in such parameters."""
        return len(getattr(params, cls.template_field) or "") if cls.template_field else 0

    async def with_template(self, params: P, work: Callable[[], T]) -> T:
        """Do something that reads the template of these parameters, in a thread if that takes long."""
        return await asyncio.to_thread(work) if self.template_size(params) > QUICK_TEMPLATES else work()

    def check(self) -> None:
        """Look at what needs no host. For any thread.

        Raises:
            GraphError: they do not.
        """

    async def open(self, host: Host, default_model: str) -> None:
        """Get what the node works with.

        Raises:
            Fault: something is not there, or not what the node needs.
        """

    async def change(self, params: P, host: Host) -> None:
        """Work with other parameters from now on: with all of them, or with none.

        Raises:
            Fault: they do not work; then everything is as it was.
        """
        self.params = params

    async def run(self, turn: GraphTurn, dialog: Dialog) -> str:
        """Do it; gives the name of the exit.

        Raises:
            NodeFailed, ProviderError, AgentTimeout: it failed.
        """
        raise NotImplementedError

    @property
    def streams(self) -> bool:
        """Whether it tells what happens while it does it: then `stream` takes the place of `run`."""
        return False

    def stream(self, turn: GraphTurn, dialog: Dialog) -> AsyncGenerator[TurnEvent, None]:
        """Do it, and tell what happens. Its exit is `default`.

        Raises:
            NodeFailed, ProviderError, AgentTimeout: it failed.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what the node works with. Idempotent."""

    def wrong(self, problem: str, kind: type[Fault] = GraphError) -> Fault:
        """The error that names this node."""
        return kind(f"The node `{self.name}`: {problem}.")

    def failed(self, error: Exception) -> Fault:
        """What an engine's error is in a turn. Only what was meant for people is told to them."""
        if isinstance(error, NodeFailed):
            return error
        if isinstance(error, Fault):
            kind = ProviderError if isinstance(error, ProviderError) else NodeFailed
            return kind(f"The node `{self.name}`: {error}", retryable=error.retryable)
        return NodeFailed(f"The node `{self.name}`: the engine failed ({type(error).__name__}).")


class ModelNode(Node[P]):
    """A node that asks a language model."""

    engine: LanguageEngine
    window: Window
    _sampling: tuple[P, SamplingParams] | None = None
    """What was asked for last, and what it means."""

    def __init__(self, description: NodeDescription, params: P) -> None:
        super().__init__(description, params)
        self.model_name = ""
        self.slot = Slot(description.name)

    async def open(self, host: Host, default_model: str) -> None:
        await self.open_model(host, getattr(self.params, "model_name", None) or default_model)

    async def open_model(self, host: Host, name: str) -> None:
        """Get the model of that name."""
        self.model_name = name
        self.engine = await host.language(self.model_name)
        self.window = Window(self.engine)
        self.see_to_sampling(self.params)

    async def change(self, params: P, host: Host) -> None:
        self.see_to_sampling(params)
        self.params = params

    def see_to_sampling(self, params: P) -> None:
        """See to it that the engine does what it is asked for.

        Raises:
            BadParameter: it does not.
        """
        if (refused := self.engine.refusal(self.sampling(params))) is not None:
            raise BadParameter(f"The node `{self.name}`: {refused}")

    def see_to_form(self, text: str, tokens: int) -> None:
        """See to it that an answer of so many tokens is JSON, if it should be.

        Raises:
            NodeFailed: it is not.
        """
        sampling = self.sampling(self.params)
        if not sampling.json_schema:
            return
        try:
            jsontext.loads(text.encode("utf-8", "replace"))
        except ValueError:
            cut = tokens >= sampling.max_tokens
            why = (
                f"it was cut off at `max_tokens`, {sampling.max_tokens}"
                if cut
                else "a stop sequence ended it, or the model does not keep to `json_schema`"
            )
            raise self.wrong(f"the answer is not a complete JSON value: {why}", NodeFailed) from None

    def sampling(self, params: P) -> SamplingParams:
        """How the model samples under these parameters."""
        if self._sampling is None or self._sampling[0] is not params:
            found = resolve_sampling(self.engine.default_sampling, getattr(params, "sampling", None))
            self._sampling = params, found
        return self._sampling[1]

    def prompt(self, turn: GraphTurn, dialog: Dialog) -> Prompt:
        """What the model sees.

        Raises:
            NodeFailed: it is too much for the model.
        """
        raise NotImplementedError

    def _begin(
        self, turn: GraphTurn, prompt: Prompt, *, stream: bool, grammar: str | None
    ) -> AsyncGenerator[str, None]:
        turn.asks(self.model_name)
        if turn.data is not None:
            turn.data["model"] = self.model_name
            turn.data["prompt"] = shown(prompt)
        sampling = self.sampling(self.params)
        return generated(self.engine, self.model_name, prompt, sampling, stream=stream, grammar=grammar, slot=self.slot)

    async def pieces(self, turn: GraphTurn, dialog: Dialog) -> AsyncGenerator[str, None]:
        """What the model says, as it comes. Each piece is counted.

        Raises:
            NodeFailed, ProviderError: it failed.
        """
        while True:
            prompt = self.prompt(turn, dialog)
            answer = self._begin(turn, prompt, stream=True, grammar=None)
            try:
                async for piece in answer:
                    turn.count(piece)
                    yield piece
                return
            except Exception as error:
                if not self.shrink(error, prompt, dialog):
                    raise self.failed(error) from error
            finally:
                await answer.aclose()

    async def answer(self, turn: GraphTurn, dialog: Dialog, grammar: str | None = None) -> str:
        """Have the model say it all.

        Raises:
            NodeFailed, ProviderError: it failed.
        """
        while True:
            prompt = self.prompt(turn, dialog)
            answer = self._begin(turn, prompt, stream=False, grammar=grammar)
            said: list[str] = []
            try:
                async for piece in answer:
                    turn.count(piece)
                    said.append(piece)
                return "".join(said)
            except Exception as error:
                if not self.shrink(error, prompt, dialog):
                    raise self.failed(error) from error
            finally:
                await answer.aclose()

    async def scores(self, turn: GraphTurn, dialog: Dialog, continuations: list[str]) -> list[float]:
        """How likely each continuation is to come next.

        Raises:
            ProviderError: it did not work.
        """
        while True:
            prompt = self.prompt(turn, dialog)
            try:
                return await self.engine.score(prompt, continuations, slot=self.slot)
            except ProviderError as error:
                if not self.shrink(error, prompt, dialog):
                    raise

    def shrink(self, error: Exception, prompt: Prompt, dialog: Dialog) -> bool:
        """Whether it is worth another try: the prompt was too long, and there is history to leave out."""
        return isinstance(error, PromptTooLong) and self.window.shrink(dialog, prompt, error.tokens)

    def close(self) -> None:
        if hasattr(self, "engine"):
            self.engine.release(self.slot)


def system(text: str | None) -> tuple[ChatMessage, ...]:
    """A system message, if there is anything to say."""
    return (ChatMessage("system", text),) if text else ()


def shown(prompt: Prompt) -> str:
    """A prompt for the diagnostics: its beginning, and always its last message."""
    lines: list[str] = []
    room = MAX_SHOWN
    for message in prompt.messages[:-1]:
        lines.append(f"[{message.role}] {message.text[:room]}")
        room -= len(lines[-1])
        if room <= 0:
            lines.append("...")
            break
    lines += [f"[{message.role}] {message.text[:MAX_SHOWN]}" for message in prompt.messages[-1:]]
    return "\n".join(lines)
