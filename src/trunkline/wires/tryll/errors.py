"""The errors of the Tryll wire: their numbers, and what each one means.

    1xxx  the connection; a client's own, never on the wire
    2xxx  the session
    3xxx  agents and graphs
    4xxx  a turn (inside of it only: they end the turn, and no `ErrorResponse` tells of them); from 4100 on, voice
    5xxx  the protocol
    6xxx  models
    7xxx  string storages
    8xxx  embedded string storages

`CATALOGUE` is the whole list, and `RECOVERY` what to do about its ranges. 2003 and 5005 are ours: the documents name no
number for the first and no name for the second.
"""

from __future__ import annotations

from trunkline.base.extras import told_elsewhere
from trunkline.base.values import Value
from trunkline.core.fault_table import form_of
from trunkline.core.faults import Fault


class Meaning(Value):
    """One number of the catalogue."""

    code: int
    name: str
    text: str


_ROWS = (
    (1001, "ConnectionFailed", "The server could not be reached."),
    (1002, "ConnectionDropped", "The connection was lost."),
    (1003, "Timeout", "No answer came in time."),
    (2001, "ServerShuttingDown", "The server is stopping and accepts no new work."),
    (2002, "SessionNotReady", "The session has not been configured."),
    (2003, "Unauthorized", "The token is missing or wrong."),
    (3001, "InvalidAgentId", "The session has no such agent."),
    (3002, "AgentAlreadyDestroyed", "The agent was destroyed."),
    (3003, "GraphCompilationFailed", "The graph cannot be run."),
    (3004, "AgentBusy", "The agent is in a turn."),
    (3005, "UnknownNode", "The graph has no such node."),
    (3006, "ParamNotMutable", "The parameter cannot change once the agent exists."),
    (3007, "InvalidParamValue", "The value is not valid for the parameter."),
    (3008, "InvalidExitTarget", "An exit leads to a node that does not exist."),
    (3009, "StorageOutsideRoot", "The path leads out of the storage folder."),
    (3010, "StorageFileNotFound", "The storage's file does not exist."),
    (3011, "StorageKindMismatch", "The node needs a storage of another kind."),
    (4001, "InferenceFailed", "A node failed."),
    (4002, "InferenceTimeout", "A node took too long."),
    (4003, "MaxStepsExceeded", "The turn ran too many nodes."),
    (4100, "SttModelLoadFailed", "The speech recognition model cannot be loaded."),
    (4101, "AudioFormatUnsupported", "The audio format is not supported."),
    (4102, "VoiceInputNotFound", "The session has no such voice input."),
    (4103, "UtteranceInProgress", "The voice input is already listening."),
    (4104, "NoActiveUtterance", "The voice input is not listening."),
    (4105, "UtteranceTimeout", "The utterance took too long."),
    (5001, "MalformedMessage", "The frame is not a valid message."),
    (5002, "UnknownMessageType", "The type of the message is unknown."),
    (5003, "FrameTooLarge", "The frame is larger than 1 MiB."),
    (5004, "ProtocolVersionMismatch", "The client and the server speak different protocol versions."),
    (5005, "DebugCommandsUnavailable", "The server does not accept debug commands."),
    (6001, "DownloadFailed", "The download failed."),
    (6002, "DownloadNotAvailable", "The model is not available for this engine."),
    (6003, "InsufficientDiskSpace", "There is not enough space on the disk."),
    (6004, "DownloadAlreadyActive", "The model is already being downloaded."),
    (6006, "ModelAutoDownloadFailed", "A model that the agent needs could not be downloaded."),
    (7001, "InvalidStringStorageName", "The name is not valid for a string storage."),
    (7002, "StringStorageAlreadyExists", "A string storage with this name already exists."),
    (7003, "InvalidStringStorageData", "The strings cannot be used."),
    (7004, "StorageNameInUse", "A file in the storage folder has this name."),
    (8001, "InvalidEmbeddedStringStorageName", "The name is not valid for an embedded string storage."),
    (8002, "EmbeddedStringStorageAlreadyExists", "An embedded string storage with this name already exists."),
    (8003, "InvalidEmbeddedStringStorageData", "The records cannot be used."),
)

CATALOGUE: dict[int, Meaning] = {row[0]: Meaning(*row) for row in _ROWS}

#: What to do about the numbers of a range, from its first to its last.
RECOVERY: dict[tuple[int, int], str] = {
    (
        1001,
        1999,
    ): "Reconnect with increasing pauses, and create everything again: the session and all that it contained are gone. "
    "After 1003 the connection may still be usable: retry the request if sending it twice does no harm.",
    (2001, 2001): "Stop sending, close the connection, and try again later: the server is shutting down.",
    (2002, 2999): "Configure the session, with the token if the server requires one, and repeat the request.",
    (3001, 3002): "Create the agent again. A new agent can restore the conversation if it was saved.",
    (3003, 3003): "Correct the graph, or name a model that is available: the same graph would be refused again.",
    (3004, 3004): "Wait for `TurnComplete`, then repeat the request. The turn in progress is not affected.",
    (3005, 3999): "Correct the name, the value or the path that the message mentions. The agent is unchanged.",
    (
        4001,
        4099,
    ): "Only the turn has failed: send the message again, or a shorter one. After 4003, correct the graph: it loops.",
    (4100, 4199): "Correct the order, the format or the model's name. The voice input is idle and can start again.",
    (5001, 5002): "Do not send it again: the client is wrong, or newer than the server. The session continues.",
    (5003, 5999): "Do not reconnect with the same client: show the message to a person.",
    (6001, 6001): "Try again later: a download resumes where it stopped.",
    (6002, 6003): "Choose another model, correct the catalog, or free some space; then repeat the request.",
    (6004, 6005): "Wait: the download is in progress, for all clients.",
    (6006, 6999): "Download the model beforehand, or give it a source in the catalog.",
    (7001, 8999): "Nothing was created. Choose another name, or correct the data or file as the message says.",
}


def advice(code: int) -> str:
    """What to do about an error; "" for a number that nobody knows."""
    return next((text for (first, last), text in RECOVERY.items() if first <= code <= last), "")


class TryllError(Exception):
    """The content of an `ErrorResponse`, or the reason why a turn failed. `message` can be shown to people.

    A peer may send numbers that are not in the catalogue; they are kept as they are.
    """

    def __init__(self, code: int, message: str = "") -> None:
        self.code = code
        self.message = message or (CATALOGUE[code].text if code in CATALOGUE else "The server gave no reason.")
        super().__init__(f"[{code}] {self.message}")

    @classmethod
    def of(cls, fault: Fault) -> TryllError:
        """What a fault is on this wire. Clients hear nothing of where this Python is."""
        return cls(form_of(fault.kind).tryll, told_elsewhere(str(fault)))

    @property
    def name(self) -> str:
        """The code's name, or "" for one that is not in the catalogue."""
        return CATALOGUE[self.code].name if self.code in CATALOGUE else ""

    @property
    def advice(self) -> str:
        """What to do about it, or "" for a number that nobody knows."""
        return advice(self.code)


def described(fault: Fault) -> dict[str, object]:
    """What the diagnostics of a turn tell of what failed it."""
    error = TryllError.of(fault)
    return {"code": error.code, "name": error.name, "message": error.message}
