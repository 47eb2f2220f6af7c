"""What can go wrong, once for all wires.

    Fault                        kind, message, retryable, hint
    ├── ProtocolError
    │   ├── LocalProtocolError   we broke the protocol: a bug in Trunkline
    │   └── RemoteProtocolError  the peer broke it
    ├── ConfigError              configuration or initialisation; fatal before `ready`
    │   ├── NoModel              no model was named
    │   ├── MissingKey           a credential is missing
    │   ├── SessionExists        the id is taken
    │   ├── SessionNotFound      there is no such session to resume
    │   ├── SessionHeld          another process has it open
    │   ├── SessionDamaged       the log cannot be read
    │   ├── UnknownAgent         no agent here has that name
    │   ├── GraphError           the graph cannot be run
    │   │   ├── UnknownNode      it has no node with that name
    │   │   ├── FixedParameter   it cannot change once the agent exists
    │   │   ├── BadParameter     the value is not valid for the parameter
    │   │   └── BadExit          an exit leads to a node that does not exist
    │   ├── StorageError         the contents of a storage cannot be used
    │   │   ├── BadStorageName, StorageExists, StorageNameInUse
    │   │   ├── OutsideStorage   a path leads out of the storage folder
    │   │   ├── StorageMissing   its file does not exist
    │   │   ├── WrongStorage     a storage of another kind is needed
    │   │   └── EmbeddingError   records that cannot be embedded, or searched
    │   │       └── BadEmbeddedName, EmbeddedExists
    │   └── ModelError           no such model, or nothing here that runs it
    │       ├── NoLanguageModel, NoEmbeddingModel, NoVoice, NoRecognizer
    │       └── ModelNotFetched  it is required and could not be downloaded
    ├── ProviderError            the model's service: rate limit, credentials, overload, connection
    │   ├── TooLong              the conversation is too long for the model or its service
    │   └── DownloadFailed       weights could not be downloaded or removed
    │       └── NoSpace, DownloadActive
    ├── ToolError                a tool failed, and not only the tool call
    ├── AgentBusy                one turn at a time, and this wire does not queue
    ├── AgentFailed              the agent disappeared or broke its contract
    │   ├── AgentCrashed         it raised an unexpected exception
    │   └── NodeFailed           a node of a graph could not do its part
    │       └── TooManySteps     the turn ran too many nodes
    ├── AgentTimeout             it did not answer in time
    ├── BudgetExceeded           the budget for this period is used up
    ├── Unsupported              this agent cannot do that
    │   ├── Mistyped             the user typed something that looks like a command but is not one
    │   └── BadAudio             the format of the sound is not supported
    │       └── NotListening, UtteranceTooLong
    ├── UnknownCall              no such tool call is waiting for an answer
    ├── Forbidden                the client's role does not allow it
    ├── StoreUnavailable         what sessions are kept in does not answer now, and nothing was done
    │   └── MayBeDone            it was asked, and does not say whether it was done
    ├── Cancelled                the user stopped it
    └── InternalError            a bug in Trunkline

`fault_table.TABLE` gives each kind its form on all wires. A fault becomes an event as `Failed(kind, message,
retryable)`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from trunkline.core.fault_table import TABLE

if TYPE_CHECKING:
    from trunkline.base.document_yaml import DocumentError


class Fault(Exception):
    """Base class of all faults. `hint` says what to do next; it is part of the text that people see."""

    kind: ClassVar[str] = "internal"

    retry_after: float | None = None
    """In how many seconds the same may be tried again, where that is known."""

    def __init__(self, message: str, *, retryable: bool | None = None, hint: str | None = None) -> None:
        super().__init__(f"{message} {hint}" if hint else message)
        self.message = message
        self.hint = hint
        self.retryable = TABLE[self.kind].retryable if retryable is None else retryable

    def say(self, *, message: str | None = None, hint: str | None = None) -> None:
        """Say it in other words, or say more."""
        self.message = self.message if message is None else message
        self.hint = self.hint if hint is None else hint
        self.args = (f"{self.message} {self.hint}" if self.hint else self.message,)

    def add(self, warnings: Iterable[str]) -> None:
        """Say also what is odd about the configuration: that may be the reason."""
        if odd := " ".join(warnings):
            self.say(hint=f"{self.hint} {odd}" if self.hint else odd)


class ProtocolError(Fault):
    """Bytes or commands that the protocol does not allow. Raise one of its two children."""

    def __init__(self, message: str, *, retryable: bool | None = None, hint: str | None = None) -> None:
        if type(self) is ProtocolError:
            raise TypeError("`ProtocolError` is abstract: say whose fault it is")
        super().__init__(message, retryable=retryable, hint=hint)


class LocalProtocolError(ProtocolError):
    """We tried to send something that the protocol does not allow."""

    kind = "local_protocol"


class RemoteProtocolError(ProtocolError):
    """The peer sent something that the protocol does not allow."""

    kind = "remote_protocol"


class ConfigError(Fault):
    """The configuration cannot be used."""

    kind = "config"

    @classmethod
    def of(cls, error: DocumentError) -> ConfigError:
        """What is wrong with a document that somebody wrote, with its place."""
        return cls(error.message, hint=error.hint)


class NoModel(ConfigError):
    """No model was named. Callers that can look for one may do so."""

    def __init__(
        self, message: str, *, hint: str | None = None, provider: str | None = None, base_url: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.provider = provider
        self.base_url = base_url
        """Where to look, if that was said."""


class MissingKey(ConfigError):
    """The credential of a model's service is missing. Peers that can ask for one may do so."""


class SessionExists(ConfigError):
    """The id of a new session is already taken."""

    kind = "session_exists"


class SessionNotFound(ConfigError):
    """There is no session to resume."""

    kind = "session_not_found"


class SessionHeld(ConfigError):
    """Another process has the session open."""

    kind = "session_held"

    ending = False
    """Whether that process is known to be ending."""
    above = False
    """Whether it is known to be the one that started us, or started that one."""


class SessionDamaged(ConfigError):
    """The session's log cannot be read."""

    kind = "session_damaged"


class UnknownAgent(ConfigError):
    """No agent here has that name."""

    kind = "unknown_agent"


class GraphError(ConfigError):
    """The graph cannot be run."""

    kind = "graph"


class UnknownNode(GraphError):
    """The graph has no node with that name."""

    kind = "unknown_node"


class FixedParameter(GraphError):
    """The parameter cannot change once the agent exists."""

    kind = "fixed_parameter"


class BadParameter(GraphError):
    """The value is not valid for the parameter."""

    kind = "bad_parameter"


class BadExit(GraphError):
    """An exit leads to a node that does not exist."""

    kind = "bad_exit"


class StorageError(ConfigError):
    """The strings of a storage cannot be used."""

    kind = "storage"


class BadStorageName(StorageError):
    """The name is not valid for a string storage, or no such storage exists."""

    kind = "bad_storage_name"


class StorageExists(StorageError):
    """A string storage with this name already exists."""

    kind = "storage_exists"


class StorageNameInUse(StorageError):
    """A file in the storage folder already has this name."""

    kind = "storage_name_in_use"


class OutsideStorage(StorageError):
    """The path leads out of the storage folder."""

    kind = "outside_storage"


class StorageMissing(StorageError):
    """The file of a storage does not exist."""

    kind = "storage_missing"


class WrongStorage(StorageError):
    """A storage of another kind is needed."""

    kind = "wrong_storage"


class EmbeddingError(StorageError):
    """The records of a storage cannot be embedded or searched."""

    kind = "embedding"


class BadEmbeddedName(EmbeddingError):
    """The name is not valid for an embedded storage, or no such storage exists."""

    kind = "bad_embedded_name"


class EmbeddedExists(EmbeddingError):
    """An embedded storage with this name already exists."""

    kind = "embedded_exists"


class ModelError(ConfigError):
    """There is no such model, or nothing here can run it."""

    kind = "model"


class NoLanguageModel(ModelError):
    """The language model cannot be used."""

    kind = "no_language_model"


class NoEmbeddingModel(ModelError):
    """The embedding model cannot be used."""

    kind = "no_embedding_model"


class NoVoice(ModelError):
    """The speech synthesis model cannot be used."""

    kind = "no_voice"


class NoRecognizer(ModelError):
    """The speech recognition model cannot be used."""

    kind = "no_recognizer"


class ModelNotFetched(ModelError):
    """A required model is missing and could not be downloaded."""

    kind = "model_not_fetched"


class ProviderError(Fault):
    """The model's service failed."""

    kind = "provider"


class TooLong(ProviderError):
    """The conversation is too long for the model's context window or for a single request to its service."""


class DownloadFailed(ProviderError):
    """Weights could not be downloaded or removed."""

    kind = "download"


class NoSpace(DownloadFailed):
    """There is not enough space on the disk."""

    kind = "no_space"


class DownloadActive(DownloadFailed):
    """The model is being downloaded."""

    kind = "download_active"


class ToolError(Fault):
    """A tool failed in a way that affects more than the tool call."""

    kind = "tool"


class AgentBusy(Fault):
    """The agent is in a turn, and this wire does not queue messages."""

    kind = "busy"


class AgentFailed(Fault):
    """The agent disappeared or broke its contract."""

    kind = "agent"


class AgentCrashed(AgentFailed):
    """The agent raised an unexpected exception. The text is for programmers: people are shown a different one."""

    kind = "crashed"


class NodeFailed(AgentFailed):
    """A node of a graph could not do its part of the turn."""

    kind = "node"


class TooManySteps(NodeFailed):
    """The turn ran too many nodes."""

    kind = "too_many_steps"


class AgentTimeout(Fault):
    """The agent did not answer in time."""

    kind = "timeout"


class BudgetExceeded(Fault):
    """The budget for this period is used up. After `retry_after` seconds there is more."""

    kind = "budget"

    def __init__(
        self, message: str, *, retryable: bool | None = None, hint: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, retryable=retryable, hint=hint)
        self.retry_after = retry_after


class Unsupported(Fault):
    """This agent cannot do that."""

    kind = "unsupported"


class Mistyped(Unsupported):
    """The user typed something that looks like a command but is not one. The host only passed it on."""

    kind = "mistyped"


class BadAudio(Unsupported):
    """The format of the sound is not supported."""

    kind = "bad_audio"


class NotListening(BadAudio):
    """The voice input is no longer listening."""

    kind = "not_listening"


class UtteranceTooLong(BadAudio):
    """An utterance was too long."""

    kind = "utterance_too_long"


class UnknownCall(Fault):
    """No tool call with that id is waiting for an answer."""

    kind = "unknown_call"


class Forbidden(Fault):
    """The client's role does not allow it."""

    kind = "forbidden"


class StoreUnavailable(Fault):
    """What sessions are kept in does not answer now, such as a database. What was asked for was not done: if it is
    retryable, the same may be asked again."""

    kind = "unavailable"


class MayBeDone(StoreUnavailable):
    """What was asked for may have been done, but no answer came. Asking again may do it twice."""


class Cancelled(Fault):
    """The user stopped it."""

    kind = "cancelled"


class InternalError(Fault):
    """A bug in Trunkline."""

    kind = "internal"
