"""How one talks with an agent on a Tryll server, and the models, the agent and the ear that this needs."""

from __future__ import annotations

from collections.abc import Callable

from trunkline.agents.external.tryll import is_missing, pick
from trunkline.base.values import Value
from trunkline.wires.tryll.drive import RemoteAgent, RemoteVoice, Tryll
from trunkline.wires.tryll.drive_connection import Progress
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import (
    ConfigureSessionRequest,
    GenerateAndSpeakParams,
    GraphDescription,
    InferenceEngine,
    ModelInfo,
    NodeDescription,
    SamplingOverrides,
)

#: Nobody wants to hear more at a time.
ANSWER_TOKENS = 200
INSTRUCTIONS = "You are in a spoken conversation. Answer in one or two short sentences, in plain words without lists."

#: Models of this name need no file, and run on the engine of the same name.
_MOCK = "mock"


class Manner(Value):
    """How one talks. Models that nobody names are the first of their kind that can be had."""

    model: str = ""
    stt: str = ""
    """The model that hears."""
    tts: str = ""
    """The model that speaks."""
    instructions: str = INSTRUCTIONS
    sample_rate: int = 16000
    channels: int = 1
    pause_ms: int = 500
    """Hands-free, a pause of this length ends an utterance."""
    barge_in: bool = True
    """Whether speech ends the answer."""

    @property
    def config(self) -> ConfigureSessionRequest:
        """The engines: the real ones, but for models whose names begin with `mock`."""
        language, hears, speaks = (name.startswith(_MOCK) for name in (self.model, self.stt, self.tts))
        return ConfigureSessionRequest(
            inference_engine=InferenceEngine.MOCK if language else InferenceEngine.LLAMA_CPP,
            stt_engine=InferenceEngine.MOCK if hears else InferenceEngine.SHERPA_ONNX,
            tts_engine=InferenceEngine.MOCK if speaks else InferenceEngine.SHERPA_ONNX,
            allow_auto_model_downloading=True,
        )


async def made(
    tryll: Tryll, manner: Manner, progress: Progress | None, notice: Callable[[str], object]
) -> tuple[RemoteAgent, RemoteVoice, Manner]:
    """The agent and the ear, with all models fetched, and the manner with their names.

    Args:
        progress: hears of models that are downloaded.
        notice: hears of models that cannot be had, if there is another.

    Raises:
        TryllError: there is no such model, or it cannot be used.
    """
    models = await tryll.list_models()
    language = manner.model or pick(models)
    for model in models:
        if model.name == language and is_missing(model):
            await tryll.ensure_model(language, progress, load=False)
    hears = await _had(tryll, models, "stt", manner.stt, progress, notice)
    speaks = await _had(tryll, models, "tts", manner.tts, progress, notice)
    graph = speaking(manner.instructions, speaks)
    agent = await tryll.create_agent(graph, default_model=language, progress=progress)
    voice = await tryll.voice_input(
        hears,
        sample_rate=manner.sample_rate,
        channels=manner.channels,
        vad_min_silence_ms=manner.pause_ms,
        progress=progress,
    )
    return agent, voice, manner.replace(model=language, stt=hears, tts=speaks)


def speaking(instructions: str, tts: str) -> GraphDescription:
    """A graph that answers aloud, and no more."""
    params = GenerateAndSpeakParams(
        tts_model_name=tts, system_prompt=instructions, sampling=SamplingOverrides(max_tokens=ANSWER_TOKENS)
    )
    return GraphDescription((NodeDescription("answer", params),), "answer")


async def _had(
    tryll: Tryll,
    models: tuple[ModelInfo, ...],
    kind: str,
    wanted: str,
    progress: Progress | None,
    notice: Callable[[str], object],
) -> str:
    """The model of a kind that is wanted, or the first that can be had, fetched if need be; "" if there is none.

    Raises:
        TryllError: the one that is wanted cannot be had.
    """
    if wanted.startswith(_MOCK):
        return wanted
    for model in models:
        if model.model_type != kind or wanted not in ("", model.name):
            continue
        if not is_missing(model):
            return model.name
        try:
            await tryll.ensure_model(model.name, progress, load=False)
        except TryllError as error:
            if wanted:
                raise
            notice(f"`{model.name}` cannot be had: {error.message}")
        else:
            return model.name
    return wanted
