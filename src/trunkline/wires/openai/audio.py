"""Speech to text and text to speech: what requests ask for, and how answers are written. No IO."""

from __future__ import annotations

import io
import struct
import wave
from collections.abc import Mapping, Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.base.multipart import FormField
from trunkline.base.values import Value
from trunkline.core.events import Audio
from trunkline.core.machine import Heard
from trunkline.wires.openai.codec import Params, missing, model_of, wrong_type
from trunkline.wires.openai.errors import OpenAIRefused, bad, unsupported
from trunkline.wires.openai.messages import MAX_NAME_CHARS

#: The largest form with a file, as OpenAI has it.
MAX_UPLOAD = 25 * 1024 * 1024
#: The longest prompt: what models make of one is far less.
MAX_PROMPT_CHARS = 4096
#: The longest text that is spoken, as OpenAI has it.
MAX_SPEECH_CHARS = 4096
MAX_SPEECH_BODY = 256 * 1024
#: How fast can be spoken: OpenAI's slowest, and what voices here can at most.
SLOWEST, FASTEST = 0.25, 3.0
#: The rate of sound without a header, as OpenAI's clients expect it.
PCM_RATE = 24_000

TRANSCRIPTS = ("json", "text", "srt", "verbose_json", "vtt")
_SPOKEN = {"wav": "audio/wav", "pcm": "audio/pcm"}
#: What OpenAI has besides.
_ENCODED = ("mp3", "opus", "aac", "flac")
_SAMPLE_BYTES = 2
_CHANNELS = (1, 2)
#: In the head of a file whose length is not known yet.
_UNKNOWN_LENGTH = 0xFFFFFFFF
_HINT = "`ffmpeg -i FILE -ac 1 -ar 16000 NEW.wav` makes one."


class AskedTranscript(Value):
    """One request to write down what is said."""

    model: str
    sound: Audio
    form: str = "json"
    prompt: str = ""
    language: str = ""
    stream: bool = False

    @property
    def segmented(self) -> bool:
        """Whether it matters when something is said, or that it is told early."""
        return self.stream or self.form in ("srt", "verbose_json", "vtt")

    @property
    def seconds(self) -> float:
        """How long the sound is."""
        return round(len(self.sound.data) / (_SAMPLE_BYTES * self.sound.channels * self.sound.rate), 3)


def read_transcript(form: Mapping[str, FormField]) -> AskedTranscript:
    """What a form asks for.

    Raises:
        OpenAIRefused: it is not one, or its file cannot be read here.
    """
    said = {name: field.text for name, field in form.items() if field.filename is None and name != "file"}
    model = model_of(Params(said))
    file = form.get("file")
    if file is None or not file.data:
        raise missing("file")
    kind = said.get("response_format") or "json"
    if kind not in TRANSCRIPTS:
        raise bad("response_format", f"`response_format` must be one of {_listed(TRANSCRIPTS)}.")
    if said.get("timestamp_granularities[]", "segment") != "segment":
        told = "The models here do not tell when each word was said."
        raise unsupported("timestamp_granularities", f"{told} Ask for `segment`, or leave it out.")
    prompt = said.get("prompt", "")
    if len(prompt) > MAX_PROMPT_CHARS:
        raise bad("prompt", f"`prompt` may have {MAX_PROMPT_CHARS} characters at most.", "string_above_max_length")
    stream = said.get("stream", "").lower() == "true"
    if stream and kind != "json":
        raise bad("response_format", "Only `json` can be streamed.")
    return AskedTranscript(model, read_wav(file.data), kind, prompt, said.get("language", ""), stream)


def read_wav(data: bytes) -> Audio:
    """The sound in a file.

    Raises:
        OpenAIRefused: it is none that can be heard here.
    """
    if not data.startswith(b"RIFF") or data[8:12] != b"WAVE":
        raise _unreadable("Only WAV files can be read here.")
    try:
        with wave.open(io.BytesIO(data)) as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            # Of a file that was streamed, the length in its head is larger than it is.
            pcm = file.readframes(min(file.getnframes(), len(data)))
    except Exception as error:  # of a damaged file, the module raises what it likes
        raise _unreadable(f"The WAV file cannot be read: {str(error) or 'it ends too early'}.") from None
    if channels not in _CHANNELS:
        raise _unreadable(f"The file has {channels} channels, and one or two can be heard.")
    pcm = _in_16_bits(pcm, width)
    whole = len(pcm) - len(pcm) % (channels * _SAMPLE_BYTES)
    if not whole:
        raise _unreadable("The file has no sound in it.")
    return Audio(pcm[:whole], rate, channels)


def _unreadable(told: str) -> OpenAIRefused:
    return bad("file", f"{told} {_HINT}", "invalid_file_format")


def _in_16_bits(pcm: bytes, width: int) -> bytes:
    """The two upper bytes of each sample; of those that have one, it is from 0 to 255."""
    if width == _SAMPLE_BYTES:
        return pcm
    count = len(pcm) // width
    made = bytearray(count * _SAMPLE_BYTES)
    if width == 1:
        made[1::2] = pcm.translate(bytes((each - 128) % 256 for each in range(256)))
    else:
        made[0::2] = pcm[width - 2 : count * width : width]
        made[1::2] = pcm[width - 1 : count * width : width]
    return bytes(made)


def write_transcript(asked: AskedTranscript, heard: Sequence[Heard]) -> tuple[bytes, str]:
    """The answer, and its media type."""
    text = joined(heard)
    if asked.form == "text":
        return f"{text}\n".encode("utf-8", "replace"), "text/plain; charset=utf-8"
    if asked.form == "srt":
        parts = [f"{number}\n{_span(each, ',')}\n{each.text}\n" for number, each in enumerate(heard, 1)]
        return "\n".join(parts).encode("utf-8", "replace"), "application/x-subrip; charset=utf-8"
    if asked.form == "vtt":
        parts = ["WEBVTT\n", *(f"{_span(each, '.')}\n{each.text}\n" for each in heard)]
        return "\n".join(parts).encode("utf-8", "replace"), "text/vtt; charset=utf-8"
    used = {"type": "duration", "seconds": asked.seconds}
    members: dict[str, Any] = {"text": text, "usage": used}
    if asked.form == "verbose_json":
        segments = [
            {"id": number, "start": each.start, "end": each.end, "text": each.text} for number, each in enumerate(heard)
        ]
        members = {"task": "transcribe", "language": "english", "duration": asked.seconds, **members}
        members["segments"] = segments
    return jsontext.dumps(members), "application/json"


def joined(heard: Sequence[Heard]) -> str:
    """All that was said."""
    return " ".join(each.text for each in heard)


def _span(heard: Heard, point: str) -> str:
    return f"{_clock(heard.start, point)} --> {_clock(heard.end, point)}"


def _clock(seconds: float, point: str) -> str:
    whole, ms = divmod(round(seconds * 1000), 1000)
    minutes, second = divmod(whole, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}{point}{ms:03}"


class AskedSpeech(Value):
    """One request to speak."""

    model: str
    text: str
    form: str = "wav"
    speed: float = 1.0

    @property
    def media_type(self) -> str:
        """Of the sound."""
        return _SPOKEN[self.form]

    @property
    def rate(self) -> int | None:
        """That the sound must have; None: the voice's own, which the head tells."""
        return PCM_RATE if self.form == "pcm" else None

    def head(self, sound: Audio) -> bytes:
        """What comes before the sound."""
        return wav_head(sound) if self.form == "wav" else b""


def read_speech(params: Params) -> AskedSpeech:
    """What a request asks for. Which `voice` it names does not matter: models here have one.

    Raises:
        OpenAIRefused: it is not one, or asks for what cannot be had here.
    """
    model = model_of(params)
    text = params.required_text("input")
    if len(text) > MAX_SPEECH_CHARS:
        raise bad("input", f"`input` may have {MAX_SPEECH_CHARS} characters at most.", "string_above_max_length")
    voice = params.any("voice")
    if not isinstance(voice, str | dict | None) or (isinstance(voice, str) and len(voice) > MAX_NAME_CHARS):
        raise wrong_type("voice", "a name")
    # The usual form of OpenAI would be MP3: who does not ask for it gets what can be had.
    form = params.text("response_format") or "wav"
    if form in _ENCODED:
        told = f"There is no encoder for `{form}` here."
        raise unsupported("response_format", f"{told} Ask for `wav` or `pcm`.")
    if form not in _SPOKEN:
        raise bad("response_format", f"`response_format` must be one of {_listed(_SPOKEN)}.")
    if (params.text("stream_format") or "audio") != "audio":
        raise unsupported("stream_format", "Sound is streamed as it is here. Leave `stream_format` out.")
    speed = params.number("speed", SLOWEST, FASTEST)
    return AskedSpeech(model, text, form, 1.0 if speed is None else speed)


def wav_head(sound: Audio) -> bytes:
    """The head of a WAV file whose length is not known yet."""
    frame = sound.channels * _SAMPLE_BYTES
    form = struct.pack(
        "<4sIHHIIHH", b"fmt ", 16, 1, sound.channels, sound.rate, sound.rate * frame, frame, 8 * _SAMPLE_BYTES
    )
    return b"RIFF" + struct.pack("<I", _UNKNOWN_LENGTH) + b"WAVE" + form + struct.pack("<4sI", b"data", _UNKNOWN_LENGTH)


def _listed(names: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}`" for name in names)
