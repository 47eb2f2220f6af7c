"""Piper's voices: neural, quicker than speech on one core. See `piper_process` for where Piper itself is."""

from __future__ import annotations

from importlib.util import find_spec

from trunkline.base.extras import adding
from trunkline.models.llama_server import default_threads
from trunkline.models.voice.engines import SpeechError
from trunkline.models.voice.process_voice import ProcessVoice

MODULE = "trunkline.models.voice.piper_process"


async def load(name: str, path: str, *, threads: int | None = None) -> ProcessVoice:
    """The voice in an ONNX file, with its settings in a `.json` beside it.

    Raises:
        SpeechError: it cannot be loaded.
    """
    if find_spec("piper") is None:
        raise SpeechError(f"Piper is not installed. {adding('voice-gpl')}")
    return await ProcessVoice.load(name, MODULE, [path, str(threads or default_threads())])
