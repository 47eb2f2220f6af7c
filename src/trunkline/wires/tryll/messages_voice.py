"""The messages of the Tryll wire that carry sound. See `messages`. Samples are 16 bits wide, little-endian."""

from __future__ import annotations

from trunkline.core.graph.ordinals import TranscriptUpdateKind
from trunkline.core.graph.speech import TtsMark
from trunkline.wires.tryll.messages_base import FromClient, FromServer


class CreateVoiceInputRequest(FromClient):
    """Make an ear: a model that hears what one microphone sends."""

    wire = "Q s I H H f I I s f"

    request_id: int = 0
    model_name: str = ""
    sample_rate: int = 16000
    channels: int = 1
    bits_per_sample: int = 16
    vad_threshold: float = 0.5
    vad_min_silence_ms: int = 500
    vad_speech_pad_ms: int = 250
    hotwords_storage_path: str = ""
    hotwords_score: float = 1.5


class CreateVoiceInputResponse(FromServer):
    """The ear is there. Its id belongs to the session and is never 0."""

    wire = "Q Q"

    request_id: int = 0
    voice_input_id: int = 0


class _VoiceInputRequest(FromClient):
    wire = "Q Q"

    request_id: int = 0
    voice_input_id: int = 0


class DestroyVoiceInputRequest(_VoiceInputRequest):
    """End an ear."""


class BeginUtteranceRequest(FromClient):
    """Listen from now on. What was heard goes to `agent_id`, unless that is 0; `barge_in` ends a turn of it."""

    wire = "Q Q Q ? I ?"

    request_id: int = 0
    voice_input_id: int = 0
    agent_id: int = 0
    auto_finish_on_silence: bool = True
    max_utterance_ms: int = 60000
    barge_in: bool = False


class EndUtteranceRequest(_VoiceInputRequest):
    """Take what was heard."""


class CancelUtteranceRequest(_VoiceInputRequest):
    """Forget what was heard."""


class AudioBufferFrame(FromClient):
    """Sound for an ear. Nothing answers it."""

    wire = "Q [h"

    voice_input_id: int = 0
    pcm: bytes = b""


class WireTranscriptUpdate(FromServer):
    """What an ear has understood."""

    wire = "Q B s I"

    voice_input_id: int = 0
    kind: int = TranscriptUpdateKind.PARTIAL
    text: str = ""
    audio_ms_consumed: int = 0


class TtsAudioFormatFrame(FromServer):
    """How the sound of a turn is to be read; once, before the first of it."""

    wire = "Q I H H"

    agent_id: int = 0
    sample_rate: int = 0
    channels: int = 1
    bits_per_sample: int = 16


class TtsAudioFrame(FromServer):
    """Some of an agent's voice. The turn's end is its end."""

    wire = "Q [h"

    agent_id: int = 0
    pcm: bytes = b""


class TtsTimingFrame(FromServer):
    """When what is spoken. Comes before the sound that it is about. Extension `timings`."""

    wire = "Q [TtsMark"

    agent_id: int = 0
    marks: tuple[TtsMark, ...] = ()
