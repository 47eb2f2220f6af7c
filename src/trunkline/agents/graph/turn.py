"""One turn of a graph: what happens in it, as its reader sees it and as its nodes do.

A turn has one text, whoever reads it and however it comes: what its nodes have answered, in their order, each beginning
a new line. A node that answered nothing leaves no trace. What is told piece by piece is added to that text, and what is
told whole is all of it so far; the history has it, too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from trunkline.agents.graph.embedded import FoundRecord
from trunkline.agents.graph.mustache import Template, TemplateError
from trunkline.base.values import Value
from trunkline.core.faults import NodeFailed
from trunkline.core.graph.speech import TtsMark
from trunkline.core.graph.turns import Listener
from trunkline.models.engines import MOST_TOKENS, Piece, cost
from trunkline.models.tool_calls import Call

#: Characters that all nodes of one turn may answer, and their models say: a graph that goes round and round repeats a
#: long message often, and there are engines that come to no end.
MAX_ANSWER = 4 * 1024 * 1024
#: What comes between the answers of two nodes.
JOINT = "\n"
#: Characters that one turn may tell again, for nodes that answer at once after others: a graph that goes round ten
#: thousand times would say its first answer as often. The nodes after that have theirs added.
MAX_REPEATED = 128 * 1024
#: Records that all nodes of one turn may find: twenty times as many as one may, and 20 ms of work for a template.
MAX_CHUNKS = 20_000
#: Steps that all templates of one turn may take: ten times as many as one may.
MAX_STEPS = 1_000_000


#: Asks whether a tool may be called, which is described.
ApproveCall = Callable[[Call, str], Awaitable[bool]]


class TurnEvent(Value, hot=True):
    """Base of what a turn tells its listener."""

    def tell(self, listener: Listener) -> None:
        """Call what the listener has for it."""
        raise NotImplementedError


class Delta(TurnEvent, hot=True):
    """A piece of the answer, to be added to what came before."""

    text: str

    def tell(self, listener: Listener) -> None:
        listener.delta(self.text)


class Whole(TurnEvent, hot=True):
    """All of the turn's answer so far. `final`: no text can follow in this turn."""

    text: str
    final: bool = False

    def tell(self, listener: Listener) -> None:
        listener.whole(self.text, self.final)


class AnswerSound(TurnEvent, hot=True):
    """Some of the answer, aloud: samples of 16 bits, little-endian, in one channel. Never empty."""

    pcm: bytes
    sample_rate: int

    def tell(self, listener: Listener) -> None:
        listener.audio(self.pcm, self.sample_rate)


class AnswerTiming(TurnEvent, hot=True):
    """What is heard when in the sound that follows."""

    marks: tuple[TtsMark, ...]

    def tell(self, listener: Listener) -> None:
        listener.timing(self.marks)


class NodeNotice(TurnEvent, hot=True):
    """What a node wants to be known: pairs of texts, in order."""

    node: str
    type: str
    pairs: tuple[tuple[str, str], ...]

    def tell(self, listener: Listener) -> None:
        listener.event(self.node, self.type, self.pairs)


class InstructionText(Value, hot=True):
    """What a node told the models after it to do."""

    name: str
    text: str


class Knowledge(Value, hot=True):
    """What a node found."""

    source: str
    chunks: tuple[FoundRecord, ...]


class GraphTurn:
    """What the nodes of one turn share."""

    __slots__ = ("_asked", "_chunks", "_context", "_repeated", "_steps", "_written", "approve", "cached_tokens", "data",
                 "events", "instructions", "intent", "knowledge", "lead", "pieces", "prompt_tokens", "sample_rate",
                 "samples",
                 "text", "tokens", "tool_calls", "written")  # fmt: skip

    def __init__(self, text: str, approve: ApproveCall | None = None) -> None:
        self.text = text
        """The user's message."""
        self.approve = approve
        """None where every call of a tool is only told."""
        self.instructions: list[InstructionText] = []
        self.knowledge: list[Knowledge] = []
        self.intent: str | None = None
        self.tool_calls: list[Call] = []
        self.written: list[str] = []
        """The answers of the nodes that are done with theirs."""
        self.pieces: list[str] = []
        """The answer of the running node, as far as it was told."""
        self.lead = ""
        """What an answer that follows begins with."""
        self.events: list[TurnEvent] = []
        """What the running node has to tell, as far as it was not."""
        self._written = self._chunks = self._steps = self._repeated = 0
        self._context: dict[str, Any] | None = None
        """What templates can speak of, as far as one has asked."""
        self.tokens = self.prompt_tokens = self.cached_tokens = 0
        self._asked: list[tuple[str, int]] = []
        """The models that were asked, and how many tokens there had been before."""
        self.sample_rate = 0
        """Of all sound of the turn; 0 while there is none."""
        self.samples = 0
        """How many of them have been made."""
        self.data: dict[str, Any] | None = None
        """Diagnostics of the running node; None if nobody wants them."""

    def asks(self, model: str) -> None:
        """From now on, what is counted is that model's."""
        self._asked.append((model, self.tokens))

    def by_model(self) -> tuple[tuple[str, int], ...]:
        """The models that were asked, each once, and the tokens that it has generated."""
        found: dict[str, int] = {}
        end = self.tokens
        for model, begin in reversed(self._asked):
            found[model] = found.get(model, 0) + end - begin
            end = begin
        return tuple(found.items())

    def count(self, piece: str) -> None:
        """Add up what a piece of generated text costs. An engine may tell anything; the end of a turn must fit.

        Raises:
            NodeFailed: the models of the turn have said too much.
        """
        self._written += len(piece)
        if self._written > MAX_ANSWER:
            raise self._too_much()
        if not isinstance(piece, Piece):
            self.tokens += 1
            return
        self.tokens = min(self.tokens + cost(piece.tokens), MOST_TOKENS)
        self.prompt_tokens = min(self.prompt_tokens + cost(piece.prompt_tokens), MOST_TOKENS)
        self.cached_tokens = min(self.cached_tokens + cost(piece.cached_tokens), MOST_TOKENS)

    def settle(self) -> None:
        """The running node has told all of its answer, piece by piece."""
        self._keep("".join(self.pieces))
        self.pieces.clear()

    def wrote(self, text: str, *, final: bool) -> None:
        """The running node has answered this, all at once, and without a model. Raises as `count`."""
        self._written += len(text)
        if self._written > MAX_ANSWER:
            raise self._too_much()
        self.tell(text, final=final)

    def tell(self, text: str, *, final: bool) -> None:
        """The running node's answer is this, all at once. It was counted."""
        self.events.append(self._so_far(text, final) if self.written else Whole(text, final))
        self._keep(text)

    def _so_far(self, text: str, final: bool) -> TurnEvent:
        if self._repeated <= MAX_REPEATED:
            before = self.answer
            self._repeated += len(before) + len(self.written)
            if self._repeated <= MAX_REPEATED:
                return Whole(f"{before}{self.lead}{text}" if text else before, final)
        return Delta(f"{self.lead}{text}" if text else "")

    def _keep(self, text: str) -> None:
        self.written.append(text)
        if text:
            self.lead = JOINT

    def take_back(self) -> None:
        """The turn ends here: what was not told was not said."""
        if any(isinstance(event, Delta | Whole) for event in self.events):
            self.written.pop()

    def _too_much(self) -> NodeFailed:
        # It would push everything else out of the history.
        self.pieces.clear()
        return NodeFailed(f"The nodes of the turn have answered more than {MAX_ANSWER} characters.")

    def found(self, knowledge: Knowledge) -> None:
        """A node has found this.

        Raises:
            NodeFailed: the turn has found too much.
        """
        self._chunks += len(knowledge.chunks)
        if self._chunks > MAX_CHUNKS:
            raise NodeFailed(f"The nodes of the turn have found more than {MAX_CHUNKS} records.")
        self.knowledge.append(knowledge)

    @property
    def answer(self) -> str:
        """All that was answered so far."""
        if len(self.written) == 1 and not self.pieces:
            return self.written[0]
        return JOINT.join(text for text in (*self.written, "".join(self.pieces)) if text)

    def rendered(self, template: Template, user_message: str) -> str:
        """What a template becomes in this turn.

        Raises:
            TemplateError: too much, or all templates of the turn together have taken too many steps.
        """
        if self._steps > MAX_STEPS:
            raise TemplateError(f"the templates of the turn take more than {MAX_STEPS} steps")
        text, steps = template.measured(self.context(user_message))
        self._steps += steps
        return text

    def context(self, user_message: str) -> dict[str, Any]:
        """What a template can speak of. What has come since the last time is added to what it was then."""
        if self._context is None:
            self._context = {"instructions": [], "knowledge": []}
        context = self._context
        context["user_message"] = user_message
        for told in self.instructions[len(context["instructions"]) :]:
            context["instructions"].append({"name": told.name, "text": told.text})
            context[f"instruction_{told.name}"] = told.text
        for found in self.knowledge[len(context["knowledge"]) :]:
            chunks = [
                {"id": chunk.id, "text": chunk.text, "distance": f"{chunk.distance:.4f}"} for chunk in found.chunks
            ]
            context["knowledge"].append({"name": found.source, "has_chunks": bool(chunks), "chunks": chunks})
            context[f"knowledge_{found.source}"] = chunks
        return context
