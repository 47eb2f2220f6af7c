"""Trunkline: any agent, any wire.

What those need who write an agent or a host: `from trunkline import Agent, Session, TextDelta`. A name is looked up in
its module when it is first used, so that `import trunkline` by itself costs nothing. Everything else is imported from
where it lives, and may move.
"""

from __future__ import annotations

# Type checkers take it for true. Importing the one of `typing` would cost more than the rest of this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from trunkline.agents.external.agentproc import AgentProcAgent
    from trunkline.agents.external.jsonstream import JsonStreamAgent
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
        Progress,
        SessionIdentified,
        TextDelta,
        ThinkingDelta,
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
        Cancelled,
        ConfigError,
        Fault,
        InternalError,
        LocalProtocolError,
        Mistyped,
        NoModel,
        ProtocolError,
        ProviderError,
        RemoteProtocolError,
        SessionDamaged,
        SessionExists,
        SessionHeld,
        SessionNotFound,
        ToolError,
        TooLong,
        UnknownCall,
        Unsupported,
    )
    from trunkline.core.ids import new_id
    from trunkline.core.log import EventLog, MemoryLog, SessionInfo, SessionStore
    from trunkline.core.session import Session
    from trunkline.core.usage import Usage
    from trunkline.store.files import FileStore

__version__ = "0.1.0"

__all__ = [
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
    "Cancelled",
    "Capabilities",
    "Category",
    "Change",
    "ConfigError",
    "Conversation",
    "Decision",
    "Decisions",
    "Deny",
    "Envelope",
    "Event",
    "EventLog",
    "Extension",
    "Failed",
    "Fault",
    "FileStore",
    "Gap",
    "GrantRevoked",
    "Granted",
    "HistoryInjected",
    "InternalError",
    "Journal",
    "JsonStreamAgent",
    "LocalProtocolError",
    "MemoryLog",
    "Mistyped",
    "Mode",
    "ModeChanged",
    "NoModel",
    "Notice",
    "OpenRequest",
    "Outcome",
    "OutputType",
    "Policy",
    "Progress",
    "ProtocolError",
    "ProviderError",
    "RemoteProtocolError",
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
    "TextDelta",
    "ThinkingDelta",
    "TooLong",
    "ToolCancelled",
    "ToolError",
    "ToolFinished",
    "ToolRequested",
    "ToolStarted",
    "TurnEnded",
    "TurnStarted",
    "UnknownCall",
    "Unsupported",
    "Usage",
    "UserMessage",
    "new_id",
    "sessions_dir",
]

#: Where each name lives.
_HOMES = {
    "trunkline.agents.external.agentproc": "AgentProcAgent",
    "trunkline.agents.external.jsonstream": "JsonStreamAgent",
    "trunkline.base.paths": "sessions_dir",
    "trunkline.core.agent": (
        "AddHistory AddMcpServer Agent Approve Capabilities Change Conversation Decision Deny Journal "
        "OpenRequest SetMode SetOptions"
    ),
    "trunkline.core.approvals": "Decisions Policy",
    "trunkline.core.events": (
        "Audio Category Envelope Event Extension Failed Gap Granted GrantRevoked HistoryInjected Mode ModeChanged "
        "Notice Outcome OutputType Progress SessionIdentified TextDelta ThinkingDelta ToolCancelled ToolFinished "
        "ToolRequested ToolStarted TurnEnded TurnStarted UserMessage"
    ),
    "trunkline.core.faults": (
        "AgentBusy AgentCrashed AgentFailed AgentTimeout Cancelled ConfigError Fault InternalError LocalProtocolError "
        "Mistyped NoModel ProtocolError ProviderError RemoteProtocolError SessionDamaged SessionExists SessionHeld "
        "SessionNotFound ToolError TooLong UnknownCall Unsupported"
    ),
    "trunkline.core.ids": "new_id",
    "trunkline.core.log": "EventLog MemoryLog SessionInfo SessionStore",
    "trunkline.core.session": "Session",
    "trunkline.core.usage": "Usage",
    "trunkline.store.files": "FileStore",
}

if not TYPE_CHECKING:  # or else type checkers would believe in every name

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used."""
        for home, names in _HOMES.items():
            if name in names.split():
                from importlib import import_module

                value = globals()[name] = getattr(import_module(home), name)
                return value
        raise AttributeError(f"module `trunkline` has no attribute `{name}`")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
