"""Trunkline: any agent, any wire.

What those need who write an agent, a host or a game: `from trunkline import Agent, Session, TextDelta`. A name is
looked up in its module when it is first used, so that `import trunkline` by itself costs nothing. Everything else is
imported from where it lives, and may move.
"""

from __future__ import annotations

# Type checkers take it for true. Importing the one of `typing` would cost more than the rest of this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from trunkline.agents.echo import EchoAgent
    from trunkline.agents.external.acp import AcpAgent
    from trunkline.agents.external.agentproc import AgentProcAgent
    from trunkline.agents.external.jsonstream import JsonStreamAgent
    from trunkline.agents.external.tryll import TryllAgent
    from trunkline.agents.scripted import ScriptedAgent
    from trunkline.base.paths import sessions_dir
    from trunkline.base.vocabulary import Mode
    from trunkline.core.agent import (
        AddHistory,
        AddMcpServer,
        Agent,
        Approve,
        Capabilities,
        Change,
        Conversation,
        Decision,
        Deny,
        Journal,
        Meter,
        OAuthClient,
        OpenRequest,
        SetMode,
        SetOptions,
    )
    from trunkline.core.approvals import Decisions, Policy
    from trunkline.core.events import (
        Audio,
        Category,
        Envelope,
        Event,
        Extension,
        Failed,
        Gap,
        Granted,
        GrantRevoked,
        HistoryInjected,
        ModeChanged,
        Notice,
        Outcome,
        OutputType,
        Plan,
        PlanEntry,
        Progress,
        SessionIdentified,
        Steered,
        TextDelta,
        ThinkingDelta,
        ToolAnswered,
        ToolCancelled,
        ToolFinished,
        ToolRequested,
        ToolStarted,
        TurnEnded,
        TurnStarted,
        UserMessage,
    )
    from trunkline.core.faults import (
        AgentBusy,
        AgentCrashed,
        AgentFailed,
        AgentTimeout,
        BadAudio,
        BadEmbeddedName,
        BadExit,
        BadParameter,
        BadStorageName,
        BudgetExceeded,
        Cancelled,
        ConfigError,
        DownloadActive,
        DownloadFailed,
        EmbeddedExists,
        EmbeddingError,
        Fault,
        FixedParameter,
        Forbidden,
        GraphError,
        InternalError,
        LocalProtocolError,
        MayBeDone,
        MissingKey,
        Mistyped,
        ModelError,
        ModelNotFetched,
        NodeFailed,
        NoEmbeddingModel,
        NoLanguageModel,
        NoModel,
        NoRecognizer,
        NoSpace,
        NotListening,
        NoVoice,
        OutsideStorage,
        ProtocolError,
        ProviderError,
        RemoteProtocolError,
        SessionDamaged,
        SessionExists,
        SessionHeld,
        SessionNotFound,
        StorageError,
        StorageExists,
        StorageMissing,
        StorageNameInUse,
        StoreUnavailable,
        ToolError,
        TooLong,
        TooManySteps,
        UnknownAgent,
        UnknownCall,
        UnknownNode,
        Unsupported,
        UtteranceTooLong,
        WrongStorage,
    )
    from trunkline.core.ids import new_id
    from trunkline.core.log import EventLog, MemoryLog, SessionInfo, SessionStore
    from trunkline.core.session import Session
    from trunkline.core.usage import Usage
    from trunkline.store.files import FileStore
    from trunkline.wires.sns.drive import Sns, SnsError
    from trunkline.wires.tryll.drive import RemoteAgent, RemoteVoice, ToolCall, Tryll, TurnFailed
    from trunkline.wires.tryll.drive.managed import ManagedServer
    from trunkline.wires.tryll.drive.sync import SyncAgent, SyncTryll, SyncVoice
    from trunkline.wires.tryll.errors import TryllError

#: What a source tree says that was never installed.
_NO_VERSION = "0.0"

__version__: str
"""The version of the last release, and how many commits have come since. From a file that is made by the build."""

__all__ = [
    "AcpAgent",
    "AddHistory",
    "AddMcpServer",
    "Agent",
    "AgentBusy",
    "AgentCrashed",
    "AgentFailed",
    "AgentProcAgent",
    "AgentTimeout",
    "Approve",
    "Audio",
    "BadAudio",
    "BadEmbeddedName",
    "BadExit",
    "BadParameter",
    "BadStorageName",
    "BudgetExceeded",
    "Cancelled",
    "Capabilities",
    "Category",
    "Change",
    "ConfigError",
    "Conversation",
    "Decision",
    "Decisions",
    "Deny",
    "DownloadActive",
    "DownloadFailed",
    "EchoAgent",
    "EmbeddedExists",
    "EmbeddingError",
    "Envelope",
    "Event",
    "EventLog",
    "Extension",
    "Failed",
    "Fault",
    "FileStore",
    "FixedParameter",
    "Forbidden",
    "Gap",
    "GrantRevoked",
    "Granted",
    "GraphError",
    "HistoryInjected",
    "InternalError",
    "Journal",
    "JsonStreamAgent",
    "LocalProtocolError",
    "ManagedServer",
    "MayBeDone",
    "MemoryLog",
    "Meter",
    "MissingKey",
    "Mistyped",
    "Mode",
    "ModeChanged",
    "ModelError",
    "ModelNotFetched",
    "NoEmbeddingModel",
    "NoLanguageModel",
    "NoModel",
    "NoRecognizer",
    "NoSpace",
    "NoVoice",
    "NodeFailed",
    "NotListening",
    "Notice",
    "OAuthClient",
    "OpenRequest",
    "Outcome",
    "OutputType",
    "OutsideStorage",
    "Plan",
    "PlanEntry",
    "Policy",
    "Progress",
    "ProtocolError",
    "ProviderError",
    "RemoteAgent",
    "RemoteProtocolError",
    "RemoteVoice",
    "ScriptedAgent",
    "Session",
    "SessionDamaged",
    "SessionExists",
    "SessionHeld",
    "SessionIdentified",
    "SessionInfo",
    "SessionNotFound",
    "SessionStore",
    "SetMode",
    "SetOptions",
    "Sns",
    "SnsError",
    "Steered",
    "StorageError",
    "StorageExists",
    "StorageMissing",
    "StorageNameInUse",
    "StoreUnavailable",
    "SyncAgent",
    "SyncTryll",
    "SyncVoice",
    "TextDelta",
    "ThinkingDelta",
    "TooLong",
    "TooManySteps",
    "ToolAnswered",
    "ToolCall",
    "ToolCancelled",
    "ToolError",
    "ToolFinished",
    "ToolRequested",
    "ToolStarted",
    "Tryll",
    "TryllAgent",
    "TryllError",
    "TurnEnded",
    "TurnFailed",
    "TurnStarted",
    "UnknownAgent",
    "UnknownCall",
    "UnknownNode",
    "Unsupported",
    "Usage",
    "UserMessage",
    "UtteranceTooLong",
    "WrongStorage",
    "new_id",
    "sessions_dir",
]

#: Where each name lives.
_HOMES = {
    "trunkline.agents.echo": "EchoAgent",
    "trunkline.agents.external.acp": "AcpAgent",
    "trunkline.agents.external.agentproc": "AgentProcAgent",
    "trunkline.agents.external.jsonstream": "JsonStreamAgent",
    "trunkline.agents.external.tryll": "TryllAgent",
    "trunkline.agents.scripted": "ScriptedAgent",
    "trunkline.base.paths": "sessions_dir",
    "trunkline.base.vocabulary": "Mode",
    "trunkline.core.agent": (
        "AddHistory AddMcpServer Agent Approve Capabilities Change Conversation Decision Deny Journal "
        "Meter OAuthClient OpenRequest SetMode SetOptions"
    ),
    "trunkline.core.approvals": "Decisions Policy",
    "trunkline.core.events": (
        "Audio Category Envelope Event Extension Failed Gap Granted GrantRevoked HistoryInjected ModeChanged "
        "Notice Outcome OutputType Plan PlanEntry Progress SessionIdentified Steered TextDelta ThinkingDelta "
        "ToolAnswered ToolCancelled ToolFinished ToolRequested ToolStarted TurnEnded TurnStarted UserMessage"
    ),
    "trunkline.core.faults": (
        "AgentBusy AgentCrashed AgentFailed AgentTimeout BadAudio BadEmbeddedName BadExit BadParameter BadStorageName "
        "BudgetExceeded Cancelled ConfigError DownloadActive DownloadFailed EmbeddedExists EmbeddingError Fault "
        "FixedParameter Forbidden GraphError InternalError LocalProtocolError MayBeDone MissingKey Mistyped ModelError "
        "ModelNotFetched NoEmbeddingModel NoLanguageModel NoModel NoRecognizer NoSpace NoVoice NodeFailed NotListening "
        "OutsideStorage ProtocolError ProviderError RemoteProtocolError SessionDamaged SessionExists SessionHeld "
        "SessionNotFound StorageError StorageExists StorageMissing StorageNameInUse StoreUnavailable TooLong "
        "TooManySteps ToolError UnknownAgent UnknownCall UnknownNode Unsupported UtteranceTooLong WrongStorage"
    ),
    "trunkline.core.ids": "new_id",
    "trunkline.core.log": "EventLog MemoryLog SessionInfo SessionStore",
    "trunkline.core.session": "Session",
    "trunkline.core.usage": "Usage",
    "trunkline.store.files": "FileStore",
    "trunkline.wires.sns.drive": "Sns SnsError",
    "trunkline.wires.tryll.drive": "RemoteAgent RemoteVoice ToolCall Tryll TurnFailed",
    "trunkline.wires.tryll.drive.managed": "ManagedServer",
    "trunkline.wires.tryll.drive.sync": "SyncAgent SyncTryll SyncVoice",
    "trunkline.wires.tryll.errors": "TryllError",
}

if not TYPE_CHECKING:  # or else type checkers would believe in every name

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used."""
        if name == "__version__":
            return _read_version()
        for home, names in _HOMES.items():
            if name in names.split():
                from importlib import import_module

                value = globals()[name] = getattr(import_module(home), name)
                return value
        raise AttributeError(f"module `trunkline` has no attribute `{name}`")


def _read_version() -> str:
    try:
        # Not by its name: type checkers look at trees in which nothing was built.
        built = __import__("trunkline._version", fromlist=["__version__"])
        found: str = built.__version__
    except ModuleNotFoundError:
        found = _NO_VERSION
    globals()["__version__"] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
