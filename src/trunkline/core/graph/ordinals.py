"""The enumerations of graphs, as plain numbers: those that the Tryll wire sends.

`enum.IntEnum` costs a millisecond per dozen members at every start, and a newer peer may send a number that no member
has: fields hold ints, and these classes name them.
"""

from __future__ import annotations


class Ordinals:
    """Base of the enumerations."""

    @classmethod
    def names(cls) -> dict[int, str]:
        """The name of each number, in capitals."""
        return {value: name for name, value in vars(cls).items() if name.isupper()}


class InferenceEngine(Ordinals):
    """What runs the models of one kind in a session."""

    MOCK = 0
    LLAMA_CPP = 1
    ONNX_GEN_AI = 2
    WINDOWS_ML = 3
    OPEN_VINO = 4
    TENSOR_RT_LLM = 5
    SHERPA_ONNX = 6


class NodeType(Ordinals):
    """What kind of node it is, for people. On the wire the tag of `NodeParams` decides, and its order is another."""

    GENERATE = 0
    HUMAN_MESSAGE_GUARDRAIL = 1
    CANNED_RESPONSE = 2
    TOOL_CALL = 3
    RETRIEVE = 4
    INSTRUCTION = 5
    CLASSIFY_INTENT = 6
    INTENT_TO_INSTRUCTION = 7
    CLASSIFY_INTENT_LLM = 8
    GENERATE_AND_SPEAK = 9
    SPEAK = 10
    REMEMBER = 11
    DIRECTOR = 12


class TurnStatus(Ordinals):
    """How a turn ended."""

    SUCCESS = 0
    ERROR = 1
    CANCELLED = 2


class Placement(Ordinals):
    """Where a rendered template goes, seen from the user's message."""

    IN_PLACE_OF_USER = 0
    BEFORE_USER_AS_USER = 1
    BEFORE_USER_AS_SYSTEM = 2
    AFTER_USER_AS_USER = 3
    AFTER_USER_AS_SYSTEM = 4


class CannedResponseSelectionStrategy(Ordinals):
    """Which of its lines a canned response takes."""

    RANDOM = 0
    FIRST = 1
    ROUND_ROBIN = 2


class DirectorStrategy(Ordinals):
    """Who of a director's characters speaks next."""

    ROUND_ROBIN = 0
    MODEL = 1


class StringStorageKind(Ordinals):
    """What a string storage is looked up by."""

    LIST = 0
    MAP = 1
    MULTIMAP = 2

    @classmethod
    def of_file(cls, path: str) -> int | None:
        """The kind that a file's name tells, where nobody says another; None if it tells none."""
        name = path.lower()
        if name.endswith(".mm.json"):
            return cls.MULTIMAP
        return cls.MAP if name.endswith(".json") else cls.LIST if name.endswith(".txt") else None


class ModelStatus(Ordinals):
    """Where a model's files are. `DOWNLOADED` came after `LOADED`."""

    ABSENT = 0
    LOCAL = 1
    DOWNLOADING = 2
    LOADED = 3
    DOWNLOADED = 4


class TranscriptUpdateKind(Ordinals):
    """What a transcript update tells."""

    SPEECH_START = 0
    PARTIAL = 1
    SEGMENT_FINAL = 2
    UTTERANCE_FINAL = 3


class TtsMarkKind(Ordinals):
    """What a mark in a turn's sound is about."""

    WORD = 0
    VISEME = 1
