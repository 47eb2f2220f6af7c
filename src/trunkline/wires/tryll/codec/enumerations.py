"""What the schema calls the values of its enumerations, and which fields hold one: the JSON form writes names."""

from __future__ import annotations

from trunkline.base.values import Value
from trunkline.wires.tryll import messages as m

#: The names of each enumeration, in the order of their numbers, which begin with 0.
NAMES: dict[str, tuple[str, ...]] = {
    "InferenceEngine": ("Mock", "LlamaCpp", "OnnxGenAI", "WindowsML", "OpenVino", "TensorRtLlm", "SherpaOnnx"),
    "TurnStatus": ("Success", "Error", "Cancelled"),
    "Placement": (
        "InPlaceOfUser", "BeforeUserAsUser", "BeforeUserAsSystem", "AfterUserAsUser", "AfterUserAsSystem",
    ),
    "CannedResponseSelectionStrategy": ("Random", "First", "RoundRobin"),
    "StringStorageKind": ("List", "Map", "Multimap"),
    "ModelStatus": ("Absent", "Local", "Downloading", "Loaded", "Downloaded"),
    "TranscriptUpdateKind": ("SpeechStart", "Partial", "SegmentFinal", "UtteranceFinal"),
    "TtsMarkKind": ("Word", "Viseme"),
    "DirectorStrategy": ("RoundRobin", "Model"),
}  # fmt: skip

#: The fields that hold one, by their table.
FIELDS: dict[type[Value], dict[str, str]] = {
    m.GenerateParams: {"placement": "Placement"},
    m.CannedResponseParams: {"selection_strategy": "CannedResponseSelectionStrategy"},
    m.GenerateAndSpeakParams: {"placement": "Placement"},
    m.DirectorParams: {"strategy": "DirectorStrategy"},
    m.ModelInfo: {"status": "ModelStatus"},
    m.ConfigureSessionRequest: {
        "inference_engine": "InferenceEngine",
        "stt_engine": "InferenceEngine",
        "tts_engine": "InferenceEngine",
        "embedding_engine": "InferenceEngine",
    },
    m.TurnComplete: {"status": "TurnStatus"},
    m.CreateStringStorageRequest: {"kind": "StringStorageKind"},
    m.WireTranscriptUpdate: {"kind": "TranscriptUpdateKind"},
    m.TtsMark: {"kind": "TtsMarkKind"},
}
