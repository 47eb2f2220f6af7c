"""What whoever runs graphs is asked for: engines, storages and voice inputs."""

from __future__ import annotations

from collections.abc import Callable

from trunkline.base.values import Value
from trunkline.core.graph.ordinals import InferenceEngine, StringStorageKind

#: Told how far something is: the name of what is fetched or made, how much of it is there, and how much it will be (0
#: while that is not known).
Progress = Callable[[str, int, int], None]


class HostSettings(Value):
    """One engine for each kind of model, whether models may be fetched, and the folder that files are in."""

    inference_engine: int = InferenceEngine.MOCK
    allow_auto_model_downloading: bool = False
    stt_engine: int = InferenceEngine.MOCK
    tts_engine: int = InferenceEngine.MOCK
    embedding_engine: int = InferenceEngine.MOCK
    storage_data_folder: str = ""


class StringStorageDescription(Value):
    """Some strings with a name, given here or in a file."""

    name: str = ""
    strings: tuple[str, ...] = ()
    file_path: str = ""
    kind: int = StringStorageKind.LIST
    keys: tuple[str, ...] = ()


class EmbeddedStorageDescription(Value):
    """Strings that are found by their meaning, given here, as records with fields, or by a file that describes them.

    `records_json` is `{"records": [...], "fields": [...]}`. With a `memory_path` it is a memory: what its agents write
    down is kept in that file, and is there again in later sessions.
    """

    name: str = ""
    config_path: str = ""
    strings: tuple[str, ...] = ()
    embedding_model: str = ""
    records_json: str = ""
    memory_path: str = ""


class VoiceInputDescription(Value):
    """How one microphone is listened to."""

    model_name: str = ""
    sample_rate: int = 16000
    channels: int = 1
    bits_per_sample: int = 16
    vad_threshold: float = 0.5
    vad_min_silence_ms: int = 500
    vad_speech_pad_ms: int = 250
    hotwords_storage_path: str = ""
    hotwords_score: float = 1.5
