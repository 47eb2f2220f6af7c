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
    (2001, "ServerShuttingDown", "The server is stopping and takes no new work."),
    (2002, "SessionNotReady", "The session has not been configured."),
    (2003, "Unauthorized", "The token is missing or wrong."),
    (3001, "InvalidAgentId", "The session has no such agent."),
    (3002, "AgentAlreadyDestroyed", "The agent was destroyed."),
    (3003, "GraphCompilationFailed", "The graph cannot work."),
    (3004, "AgentBusy", "The agent is in a turn."),
    (3005, "UnknownNode", "The graph has no such node."),
    (3006, "ParamNotMutable", "The parameter cannot change once the agent is there."),
    (3007, "InvalidParamValue", "The parameter cannot have this value."),
    (3008, "InvalidExitTarget", "An exit leads to a node that is not there."),
    (3009, "StorageOutsideRoot", "The path leads out of the storage folder."),
    (3010, "StorageFileNotFound", "The storage's file is not there."),
    (3011, "StorageKindMismatch", "The node needs a storage of another kind."),
    (4001, "InferenceFailed", "A node failed."),
    (4002, "InferenceTimeout", "A node took too long."),
    (4003, "MaxStepsExceeded", "The turn ran too many nodes."),
    (4100, "SttModelLoadFailed", "The model that is to listen cannot be loaded."),
    (4101, "AudioFormatUnsupported", "Sound of this format is not understood."),
    (4102, "VoiceInputNotFound", "The session has no such voice input."),
    (4103, "UtteranceInProgress", "The voice input is listening already."),
    (4104, "NoActiveUtterance", "The voice input is not listening."),
    (4105, "UtteranceTimeout", "The utterance took too long."),
    (5001, "MalformedMessage", "The frame is not a message."),
    (5002, "UnknownMessageType", "The message is of an unknown kind."),
    (5003, "FrameTooLarge", "The frame is larger than 1 MiB."),
    (5004, "ProtocolVersionMismatch", "The client and the server speak different versions."),
    (5005, "DebugCommandsUnavailable", "The server takes no debug commands."),
    (6001, "DownloadFailed", "The download failed."),
    (6002, "DownloadNotAvailable", "The model is not available for this engine."),
    (6003, "InsufficientDiskSpace", "There is not enough room on the disk."),
    (6004, "DownloadAlreadyActive", "The model is being downloaded already."),
    (6006, "ModelAutoDownloadFailed", "A model that the agent needs could not be downloaded."),
    (7001, "InvalidStringStorageName", "A string storage cannot have this name."),
    (7002, "StringStorageAlreadyExists", "A string storage of this name is there already."),
    (7003, "InvalidStringStorageData", "The strings cannot be used."),
    (7004, "StorageNameInUse", "A file of the storage folder has this name."),
    (8001, "InvalidEmbeddedStringStorageName", "An embedded string storage cannot have this name."),
    (8002, "EmbeddedStringStorageAlreadyExists", "An embedded string storage of this name is there already."),
    (8003, "InvalidEmbeddedStringStorageData", "The records cannot be used."),
)

CATALOGUE: dict[int, Meaning] = {row[0]: Meaning(*row) for row in _ROWS}

#: What to do about the numbers of a range, from its first to its last.
RECOVERY: dict[tuple[int, int], str] = {
    (
        1001,
        1999,
    ): "Connect again, each time after a longer pause, and make everything anew: the session is gone, with all "
    "that it had. After 1003 the connection may be well: the same request can be sent again, if it does no harm twice.",
    (2001, 2001): "Stop sending, close, and come back later: the server is about to end.",
    (2002, 2999): "Configure the session, with the token if the server has one, and ask again.",
    (3001, 3002): "Make the agent again. Another one may have the conversation, if it was saved.",
    (3003, 3003): "Mend the graph, or name a model that is there: the same one is refused again.",
    (3004, 3004): "Wait for `TurnComplete`, then ask again. The turn that is under way is undisturbed.",
    (3005, 3999): "Mend the name, the value or the path that the message tells. The agent is as it was.",
    (
        4001,
        4099,
    ): "Only the turn has failed: say it again, or something shorter. After 4003 mend the graph, which goes round.",
    (4100, 4199): "Mend the order, the format or the name of the model. The voice input is idle, and can begin again.",
    (5001, 5002): "Do not send it again: the client is wrong, or newer than the server. The session goes on.",
    (5003, 5999): "Do not connect again as you are: show the message to a person.",
    (6001, 6001): "Try again later: a download goes on from where it broke off.",
    (6002, 6003): "Choose another model, mend the catalog, or make room; then ask again.",
    (6004, 6005): "Wait: it is on its way, for everybody.",
    (6006, 6999): "Fetch the model beforehand, or give it a source in the catalog.",
    (7001, 8999): "Nothing was made. Choose another name, or mend what the message tells of the data or its file.",
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
        """What a fault is on this wire."""
        return cls(form_of(fault.kind).tryll, str(fault))

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
