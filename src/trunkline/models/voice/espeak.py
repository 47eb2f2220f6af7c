"""eSpeak NG's voice: that of a machine, and there at once. See `espeak_process` for where eSpeak NG itself is."""

from __future__ import annotations

from importlib.util import find_spec

from trunkline.base.extras import adding
from trunkline.models.voice.engines import SpeechError
from trunkline.models.voice.process_voice import ProcessVoice

MODULE = "trunkline.models.voice.espeak_process"


async def load(name: str) -> ProcessVoice:
    """The voice of American English.

    Raises:
        SpeechError: it cannot be loaded.
    """
    if find_spec("espeakng_loader") is None:
        raise SpeechError(f"eSpeak NG is not installed. {adding('voice-gpl')}")
    return await ProcessVoice.load(name, MODULE)
