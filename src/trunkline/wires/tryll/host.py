"""What the server end of the wire needs from whoever has the agents: `GraphHost`.

The wire knows frames, sessions and their order; graphs, storages and models are the host's. Every failure that a client
is to hear of is a `Fault`; its number on the wire is in `core/fault_table.py`.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import Any, Protocol

from trunkline.core.graph.description import GraphDescription, NodeParams
from trunkline.core.graph.hosting import (
    EmbeddedStorageDescription,
    HostSettings,
    Progress,
    StringStorageDescription,
    VoiceInputDescription,
)
from trunkline.core.graph.models import ModelInfo
from trunkline.core.graph.resident import ResidentModel
from trunkline.core.graph.turns import DescribeError, Ending, Listener, TranscriptListener


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

    def begin(self, listener: TranscriptListener, *, hands_free: bool, max_ms: int) -> HostedUtterance:
        """Hear an utterance. `hands_free`: silence ends it. It lasts at most `max_ms`, unless that is 0."""

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

    def configure(self, settings: HostSettings) -> None:
        """From now on, use these engines and this folder. What is there already stays as it is.

        Raises:
            OutsideStorage: the folder cannot be used.
        """

    async def create_agent(
        self, graph: GraphDescription, progress: Progress, *, default_model: str, diagnostics: bool, max_steps: int
    ) -> HostedAgent:
        """Make an agent and get all that it needs.

        `diagnostics`: each turn ends with a `debug_info`. `max_steps` 0: as the host has it.

        Raises:
            GraphError, StorageError, ModelError: it cannot be made.
        """

    async def create_strings(self, described: StringStorageDescription) -> object:
        """Make a string storage; gives it. It can be referred to weakly, and lives as long as anybody uses it.

        Raises:
            StorageError: it cannot be made.
        """

    def destroy_strings(self, name: str) -> None:
        """Forget one.

        Raises:
            BadStorageName: there is none.
        """

    async def create_embedded(self, described: EmbeddedStorageDescription, progress: Progress) -> HostedRecords:
        """Make an embedded storage; gives it. It can be referred to weakly, and lives as long as anybody uses it.

        Raises:
            StorageError, ModelError: it cannot be made.
        """

    def destroy_embedded(self, name: str) -> None:
        """Forget one.

        Raises:
            BadEmbeddedName: there is none.
        """

    async def create_voice(self, described: VoiceInputDescription, progress: Progress) -> HostedVoice:
        """Make a voice input and get the model that it needs.

        Raises:
            StorageError, ModelError, BadAudio: it cannot be made.
        """

    def close(self) -> None:
        """The session is over, and its agents and voice inputs are closed."""


class GraphHost(Protocol):
    """What all sessions share."""

    @property
    def models(self) -> HostedModels:
        """Those that all sessions share."""

    def open_session(self, describe: DescribeError) -> HostSession:
        """Begin a session. `describe` gives what the diagnostics of a turn tell of what failed it."""

    async def close(self) -> None:
        """Let go of everything. All sessions are closed."""


class HostedModels(Protocol):
    """The models of a host. A name that is not in the catalog is a `ModelError`."""

    def list(self) -> tuple[ModelInfo, ...]:
        """The catalog, with where each model is."""

    def named(self, kind: str) -> tuple[str, ...]:
        """The names of those of a kind, as catalogs call it: `llm` is what answers. Looks at no file."""

    def resident(self) -> tuple[ResidentModel, ...]:
        """The models that are loaded, as they are now. Quick."""

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
