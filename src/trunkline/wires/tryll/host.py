"""What the server end of the wire needs from whoever has the agents: `GraphHost`.

The wire knows frames, sessions and their order; graphs, storages and models are the host's. Every failure that a client
is to hear of is a `Fault`; its number on the wire is in `core/fault_table.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol

from trunkline.base.values import Value
from trunkline.core.faults import Fault
from trunkline.wires.tryll.messages import (
    BeginUtteranceRequest,
    ConfigureSessionRequest,
    CreateAgentRequest,
    CreateEmbeddedStringStorageRequest,
    CreateStringStorageRequest,
    CreateVoiceInputRequest,
    ModelInfo,
    NodeParams,
    TurnStatus,
)

#: Told how far something is: the name of what is fetched or made, how much of it is there, and how much it will be (0
#: while that is not known).
Progress = Callable[[str, int, int], None]


class Ending(Value, hot=True):
    """How a turn ended; see `messages.TurnComplete`."""

    status: int = TurnStatus.SUCCESS
    debug_info: str = ""
    tokens_generated: int = 0
    tokens_prompt: int = 0
    tokens_cached: int = 0
    error: int = 0
    """The number that failed it, or 0."""


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

    def event(self, node: str, type: str, pairs: tuple[tuple[str, str], ...]) -> None:
        """What a node wants to be known."""


class HostedAgent(Protocol):
    """One agent, which is open."""

    def turn(self, text: str, listener: Listener) -> Coroutine[Any, Any, Ending]:
        """Begin a turn; it goes on as what is returned is awaited. That raises nothing but its own cancellation.

        Raises:
            AgentBusy: there is one, or a change.
        """

    def cancel(self) -> None:
        """End the turn, if there is one, as cancelled."""

    def close(self) -> None:
        """Let go of everything. Idempotent."""

    async def change(self, node_name: str, params: NodeParams) -> None:
        """Give a node other parameters.

        Raises:
            AgentBusy, GraphError, StorageError: it cannot be done.
        """

    def history(self) -> list[tuple[str, str]]:
        """What was said and answered."""

    def restore(self, exchanges: Iterable[tuple[str, str]], append: bool) -> None:
        """Go on from another conversation, or as if this had been said, too.

        Raises:
            AgentBusy: a turn is under way.
        """

    def history_size(self) -> int:
        """The bytes that its history takes."""

    def forget(self, size: int) -> None:
        """Drop the oldest exchanges until the history takes no more than this."""


class TranscriptListener(Protocol):
    """Hears what is understood of an utterance."""

    def update(self, kind: int, text: str, audio_ms: int) -> None:
        """Something was; see `messages.WireTranscriptUpdate`. With `UTTERANCE_FINAL` it is over."""

    def failed(self, error: Fault) -> None:
        """Something is wrong: `UtteranceTooLong`, it is over without a transcript; `NoRecognizer`, some was not
        understood."""


class HostedUtterance(Protocol):
    """One utterance, while it is heard. After its end, nothing is told."""

    @property
    def over(self) -> bool:
        """Whether it has ended, in whichever way."""

    async def feed(self, pcm: bytes | bytearray) -> None:
        """Hear more of it. Returns when it is sure what becomes of that sound, if perhaps not of its words."""

    async def finish(self) -> None:
        """That was all: tell the rest, and end it."""

    def cancel(self) -> None:
        """End it, and tell nothing more. Idempotent."""

    def hurry(self) -> None:
        """It will be cancelled as soon as `feed` returns: that need not wait for words any longer."""


class HostedVoice(Protocol):
    """One voice input, which is open. It hears one utterance at a time."""

    def begin(self, request: BeginUtteranceRequest, listener: TranscriptListener) -> HostedUtterance:
        """Hear an utterance."""

    def close(self) -> None:
        """Let go of everything. Idempotent."""


class HostedRecords(Protocol):
    """An embedded storage."""

    @property
    def record_count(self) -> int: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def size(self) -> int:
        """The bytes that it takes; 0 if it is in files, which are the host's own."""


class HostSession(Protocol):
    """What one session owns, apart from its agents."""

    def configure(self, request: ConfigureSessionRequest) -> None:
        """From now on, use these engines and this folder. What is there already stays as it is.

        Raises:
            OutsideStorage: the folder cannot be used.
        """

    async def create_agent(self, request: CreateAgentRequest, progress: Progress) -> HostedAgent:
        """Make an agent and get all that it needs.

        Raises:
            GraphError, StorageError, ModelError: it cannot be made.
        """

    async def create_strings(self, request: CreateStringStorageRequest) -> object:
        """Make a string storage; gives it. It can be referred to weakly, and lives as long as anybody uses it.

        Raises:
            StorageError: it cannot be made.
        """

    def destroy_strings(self, name: str) -> None:
        """Forget one.

        Raises:
            BadStorageName: there is none.
        """

    async def create_embedded(self, request: CreateEmbeddedStringStorageRequest, progress: Progress) -> HostedRecords:
        """Make an embedded storage; gives it. It can be referred to weakly, and lives as long as anybody uses it.

        Raises:
            StorageError, ModelError: it cannot be made.
        """

    def destroy_embedded(self, name: str) -> None:
        """Forget one.

        Raises:
            BadEmbeddedName: there is none.
        """

    async def create_voice(self, request: CreateVoiceInputRequest, progress: Progress) -> HostedVoice:
        """Make a voice input and get the model that it needs.

        Raises:
            StorageError, ModelError, BadAudio: it cannot be made.
        """

    def close(self) -> None:
        """The session is over, and its agents and voice inputs are closed."""


class GraphHost(Protocol):
    """What all sessions share: above all the models. A name that is not in the catalog is a `ModelError`."""

    def open_session(self) -> HostSession:
        """Begin a session."""

    def list_models(self) -> tuple[ModelInfo, ...]:
        """The catalog, with where each model is."""

    async def download(self, name: str, progress: Progress) -> None:
        """Fetch a model. Goes on when nobody waits for it any longer.

        Raises:
            ModelError, DownloadFailed: it cannot be fetched.
        """

    async def load(self, name: str) -> None:
        """Load a model, and keep it."""

    async def unload(self, name: str) -> None:
        """Keep it no longer."""

    async def delete(self, name: str) -> None:
        """Remove what a download has brought."""

    async def close(self) -> None:
        """Let go of everything. All sessions are closed."""
