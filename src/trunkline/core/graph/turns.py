"""What a turn of a graph, and an utterance that is heard, tell those who listen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from trunkline.base.values import Value
from trunkline.core.events import Extension
from trunkline.core.faults import Fault
from trunkline.core.graph.ordinals import TurnStatus
from trunkline.core.graph.speech import TtsMark

#: What an extension with a node's event is called.
NODE_EVENT = "node_event"
#: And one with what happened in a turn, which an agent tells that was opened with the option `diagnostics`.
TURN_DIAGNOSTICS = "turn_diagnostics"
#: Gives what the diagnostics of a turn tell of what failed it.
DescribeError = Callable[[Fault], Mapping[str, object]]


def node_event(node: str, type: str, pairs: Iterable[tuple[str, str]]) -> Extension:
    """What a node tells, as an event of a conversation; the same wherever the graph runs."""
    return Extension(NODE_EVENT, {"node": node, "type": type, "pairs": dict(pairs)})


class Ending(Value, hot=True):
    """How a turn ended."""

    status: int = TurnStatus.SUCCESS
    debug_info: str = ""
    tokens_generated: int = 0
    tokens_prompt: int = 0
    tokens_cached: int = 0
    error: Fault | None = None
    """What failed it."""
    waited: float = 0.0
    """Seconds in which no model had time for it."""
    models: tuple[tuple[str, int], ...] = ()
    """The language models that were asked, and the tokens that each has generated."""


class Listener(Protocol):
    """Hears a turn."""

    @property
    def full(self) -> bool:
        """Whether the client is behind: then wait for `room` before telling anything more, and before the end."""

    async def room(self) -> None:
        """Wait until the client has caught up, or the turn is cancelled."""

    def delta(self, text: str) -> None:
        """A piece of the turn's answer, to be added to what came before."""

    def whole(self, text: str, final: bool) -> None:
        """All of the turn's answer so far, which begins with what came before. `final`: no text follows."""

    def audio(self, pcm: bytes, sample_rate: int) -> None:
        """Some of the answer, aloud: 16 bits, one channel. The rate is the same for all sound of a turn."""

    def timing(self, marks: tuple[TtsMark, ...]) -> None:
        """What is heard when, before the sound that it is about. Only where it was asked for."""

    def event(self, node: str, type: str, pairs: tuple[tuple[str, str], ...]) -> None:
        """What a node wants to be known."""


class TranscriptListener(Protocol):
    """Hears what is understood of an utterance."""

    def update(self, kind: int, text: str, audio_ms: int) -> None:
        """Something was; `kind` is a `TranscriptUpdateKind`. With `UTTERANCE_FINAL` it is over."""

    def failed(self, error: Fault) -> None:
        """Something is wrong: `UtteranceTooLong`, it is over without a transcript; `NoRecognizer`, some was not
        understood."""
