"""The messages of the Tryll wire, protocol version 2: one frozen record for each table of `schema/messages.fbs`.

Names, positions and defaults are those of the schema; a test compares the two. Here are the session, the agents and
their turns; models and storages, and sound have modules of their own. What a graph is, `core.graph` says; its layout in
a frame is in `messages_params`. All of it can be had from here.
"""

from __future__ import annotations

from trunkline.core.graph.description import (
    CannedResponseParams,
    CharacterDefinition,
    ClassifyIntentLLMParams,
    ClassifyIntentParams,
    DirectorParams,
    GenerateAndSpeakParams,
    GenerateParams,
    GraphDescription,
    HumanMessageGuardrailParams,
    InstructionParams,
    IntentToInstructionParams,
    LogitBias,
    LoraAdapter,
    NodeDescription,
    NodeParams,
    RememberParams,
    RetrieveParams,
    SamplingOverrides,
    SpeakParams,
    ToolCallParams,
    ToolDefinition,
    ToolParamDefinition,
)
from trunkline.core.graph.models import ModelInfo, SamplingParams
from trunkline.core.graph.ordinals import (
    CannedResponseSelectionStrategy,
    DirectorStrategy,
    InferenceEngine,
    ModelStatus,
    NodeType,
    Placement,
    StringStorageKind,
    TranscriptUpdateKind,
    TtsMarkKind,
    TurnStatus,
)
from trunkline.core.graph.speech import TtsMark
from trunkline.wires.tryll.messages_base import (
    FromClient,
    FromServer,
    Message,
    Table,
)
from trunkline.wires.tryll.messages_models import (
    CreateEmbeddedStringStorageRequest,
    CreateEmbeddedStringStorageResponse,
    CreateStringStorageRequest,
    CreateStringStorageResponse,
    DeleteModelRequest,
    DestroyEmbeddedStringStorageRequest,
    DestroyStringStorageRequest,
    DownloadComplete,
    DownloadModelRequest,
    DownloadProgress,
    ListModelsRequest,
    ListModelsResponse,
    LoadModelRequest,
    LoadModelResponse,
    UnloadModelRequest,
)
from trunkline.wires.tryll.messages_params import LAYOUTS, NODE_PARAMS
from trunkline.wires.tryll.messages_voice import (
    AudioBufferFrame,
    BeginUtteranceRequest,
    CancelUtteranceRequest,
    CreateVoiceInputRequest,
    CreateVoiceInputResponse,
    DestroyVoiceInputRequest,
    EndUtteranceRequest,
    TtsAudioFormatFrame,
    TtsAudioFrame,
    TtsTimingFrame,
    WireTranscriptUpdate,
)

__all__ = [
    "BODIES", "LAYOUTS", "NODE_PARAMS", "PROTOCOL_VERSION", "Ack", "AnswerText", "AudioBufferFrame",
    "BeginUtteranceRequest", "CancelTurnRequest", "CancelUtteranceRequest", "CannedResponseParams",
    "CannedResponseSelectionStrategy", "ChangeAgentParamRequest", "CharacterDefinition", "ClassifyIntentLLMParams",
    "ClassifyIntentParams", "ConfigureSessionRequest", "ConfigureSessionResponse", "CreateAgentRequest",
    "CreateAgentResponse", "CreateEmbeddedStringStorageRequest", "CreateEmbeddedStringStorageResponse",
    "CreateStringStorageRequest", "CreateStringStorageResponse", "CreateVoiceInputRequest",
    "CreateVoiceInputResponse", "DebugCommandRequest", "DebugCommandResponse", "DeleteModelRequest",
    "DestroyAgentRequest", "DestroyEmbeddedStringStorageRequest", "DestroyStringStorageRequest",
    "DestroyVoiceInputRequest", "DirectorParams", "DirectorStrategy", "DownloadComplete", "DownloadModelRequest",
    "DownloadProgress", "EndUtteranceRequest", "ErrorResponse", "FromClient", "FromServer",
    "GenerateAndSpeakParams", "GenerateParams", "GraphDescription", "HealthRequest", "HealthResponse",
    "HistoryEntry", "HumanMessageGuardrailParams", "InferenceEngine", "InstructionParams",
    "IntentToInstructionParams", "ListModelsRequest", "ListModelsResponse", "LoadModelRequest", "LoadModelResponse",
    "LogitBias", "LoraAdapter", "Message", "ModelInfo", "ModelStatus", "NodeDescription", "NodeEvent",
    "NodeEventKeyValue", "NodeParams", "NodeType", "Placement", "RememberParams", "RestoreHistoryRequest",
    "RetrieveParams", "SamplingOverrides", "SamplingParams", "SaveHistoryRequest", "SaveHistoryResponse",
    "SendMessageRequest", "SessionReady", "SpeakParams", "StringStorageKind", "Table", "ToolCallParams",
    "ToolDefinition", "ToolParamDefinition", "TranscriptUpdateKind", "TtsAudioFormatFrame", "TtsAudioFrame",
    "TtsMark", "TtsMarkKind", "TtsTimingFrame", "TurnComplete", "TurnStatus", "UnloadModelRequest",
    "WireTranscriptUpdate",
]  # fmt: skip

PROTOCOL_VERSION = 2


class NodeEventKeyValue(Table, hot=True):
    """One pair of an event's payload."""

    wire = "s s"

    key: str = ""
    value: str = ""


class HistoryEntry(Table):
    """One message of a conversation. `role`: system, user or assistant."""

    wire = "s s"

    role: str = ""
    text: str = ""


# The session.


class SessionReady(FromServer):
    """The first frame of a connection. `extensions` names what the server can do beyond the documented protocol."""

    wire = "I Q [s"

    protocol_version: int = 0
    session_id: int = 0
    extensions: tuple[str, ...] = ()


class ConfigureSessionRequest(FromClient):
    """One engine for each kind of model. May be repeated; holds for agents that are created afterwards."""

    wire = "Q B ? s B B B s I s"

    request_id: int = 0
    inference_engine: int = InferenceEngine.MOCK
    allow_auto_model_downloading: bool = False
    game_name: str = ""
    stt_engine: int = InferenceEngine.MOCK
    tts_engine: int = InferenceEngine.MOCK
    embedding_engine: int = InferenceEngine.MOCK
    storage_data_folder: str = ""
    protocol_version: int = 0
    token: str = ""


class ConfigureSessionResponse(FromServer):
    """The session is configured."""

    wire = "Q"

    request_id: int = 0


# Agents and turns.


class CreateAgentRequest(FromClient):
    """Make an agent of a graph. `max_steps_per_turn` 0: as the server has it."""

    wire = "Q GraphDescription s ? I"

    request_id: int = 0
    graph: GraphDescription | None = None
    default_model_name: str = ""
    enable_diagnostics: bool = False
    max_steps_per_turn: int = 0


class CreateAgentResponse(FromServer):
    """The agent is there. Its id belongs to the session and is never 0."""

    wire = "Q Q"

    request_id: int = 0
    agent_id: int = 0


class SendMessageRequest(FromClient, hot=True):
    """Begin a turn."""

    wire = "Q Q s"

    request_id: int = 0
    agent_id: int = 0
    text: str = ""


class AnswerText(FromServer, hot=True):
    """A piece of an answer (`is_delta`), or all of it so far. One of each turn, the last, has `is_final`."""

    wire = "Q Q s ? ?"

    request_id: int = 0
    agent_id: int = 0
    text: str = ""
    is_delta: bool = False
    is_final: bool = False


class TurnComplete(FromServer, hot=True):
    """The last frame of a turn. The tokens of the prompt, and those of them that were still warm, are additions."""

    wire = "Q Q B s i i i"

    request_id: int = 0
    agent_id: int = 0
    status: int = TurnStatus.SUCCESS
    debug_info: str = ""
    tokens_generated: int = 0
    tokens_prompt: int = 0
    tokens_cached: int = 0


class DestroyAgentRequest(FromClient):
    """End an agent, and a turn of it."""

    wire = "Q Q"

    request_id: int = 0
    agent_id: int = 0


class ChangeAgentParamRequest(FromClient):
    """Give a node other parameters: all of them, of the same kind."""

    wire = "Q Q s |NodeParams"

    request_id: int = 0
    agent_id: int = 0
    node_name: str = ""
    params: NodeParams | None = None


class NodeEvent(FromServer, hot=True):
    """What a node wants to be known, before the end of its turn."""

    wire = "Q s s [NodeEventKeyValue"

    agent_id: int = 0
    node_name: str = ""
    event_type: str = ""
    kv_pairs: tuple[NodeEventKeyValue, ...] = ()


# Generic.


class Ack(FromServer):
    """It is done."""

    wire = "Q"

    request_id: int = 0


class ErrorResponse(FromServer):
    """It is not done; see `errors`. The ids tell what it is about when no request does."""

    wire = "Q I s Q Q"

    request_id: int = 0
    code: int = 0
    message: str = ""
    agent_id: int = 0
    voice_input_id: int = 0


class DebugCommandRequest(FromClient):
    """A developer's command."""

    wire = "Q s s"

    request_id: int = 0
    command: str = ""
    payload: str = ""


class DebugCommandResponse(FromServer):
    """What came of it."""

    wire = "Q s"

    request_id: int = 0
    result: str = ""


# Additions to the documented protocol. A server that has them says so in `SessionReady.extensions`.


class CancelTurnRequest(FromClient):
    """End the turn that an agent is in: it completes as cancelled. Extension `cancel`."""

    wire = "Q Q"

    request_id: int = 0
    agent_id: int = 0


class SaveHistoryRequest(FromClient):
    """Ask for an agent's conversation. Extension `history`."""

    wire = "Q Q"

    request_id: int = 0
    agent_id: int = 0


class SaveHistoryResponse(FromServer):
    """The conversation. One that does not fit into a frame comes in several, all but the last with `more`."""

    wire = "Q Q [HistoryEntry ?"

    request_id: int = 0
    agent_id: int = 0
    entries: tuple[HistoryEntry, ...] = ()
    more: bool = False


class RestoreHistoryRequest(FromClient):
    """Give an agent a conversation, in place of its own or, with `append`, after it. Extension `history`."""

    wire = "Q Q [HistoryEntry ?"

    request_id: int = 0
    agent_id: int = 0
    entries: tuple[HistoryEntry, ...] = ()
    append: bool = False


class HealthRequest(FromClient):
    """Ask how the server is. Needs no configured session. Extension `health`."""

    wire = "Q"

    request_id: int = 0


class HealthResponse(FromServer):
    """How the server is. `status`: ready or stopping."""

    wire = "Q s Q I I I I Q I Q"

    request_id: int = 0
    status: str = ""
    uptime_ms: int = 0
    sessions: int = 0
    agents: int = 0
    turns_running: int = 0
    turns_waiting: int = 0
    tokens_generated: int = 0
    """Since the server began."""
    models_loaded: int = 0
    memory_bytes: int = 0
    """Of all models that are loaded: measured, or estimated by their files."""


#: By tag, from 1. Append only.
BODIES: tuple[type[Message], ...] = (
    SessionReady, ConfigureSessionRequest, ConfigureSessionResponse, CreateAgentRequest, CreateAgentResponse,
    SendMessageRequest, AnswerText, TurnComplete, DestroyAgentRequest, Ack,
    ListModelsRequest, ListModelsResponse, DownloadModelRequest, DownloadProgress, DownloadComplete,
    LoadModelRequest, LoadModelResponse, UnloadModelRequest, CreateStringStorageRequest, CreateStringStorageResponse,
    DestroyStringStorageRequest, CreateEmbeddedStringStorageRequest, CreateEmbeddedStringStorageResponse,
    DestroyEmbeddedStringStorageRequest, ErrorResponse,
    NodeEvent, ChangeAgentParamRequest, CreateVoiceInputRequest, CreateVoiceInputResponse, DestroyVoiceInputRequest,
    BeginUtteranceRequest, EndUtteranceRequest, CancelUtteranceRequest, AudioBufferFrame, WireTranscriptUpdate,
    TtsAudioFormatFrame, TtsAudioFrame, DeleteModelRequest, DebugCommandRequest, DebugCommandResponse,
    CancelTurnRequest, SaveHistoryRequest, SaveHistoryResponse, RestoreHistoryRequest, HealthRequest,
    HealthResponse, TtsTimingFrame,
)  # fmt: skip
