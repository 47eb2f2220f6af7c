"""How one talks with an agent on a Tryll server, and the models, the agent and the ear that this needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trunkline.agents.external.tryll_models import is_missing, pick
from trunkline.agents.graph.spoken import speaks, spoken
from trunkline.base.values import Value
from trunkline.wires.tryll.drive import RemoteAgent, RemoteVoice, Tryll
from trunkline.wires.tryll.drive.connection import Progress
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

if TYPE_CHECKING:
    from trunkline.agents.graph.yaml_graph import GraphFile

#: Nobody wants to hear more at a time.
ANSWER_TOKENS = 200
INSTRUCTIONS = "You are in a spoken conversation. Answer in one or two short sentences, in plain words without lists."

#: Models of this name need no file, and run on the engine of the same name.
_MOCK = "mock"


class TalkOptions(Value):
    """How one talks. Models that nobody names are the first of their kind that can be had."""

    model: str = ""
    stt: str = ""
    """The model that hears."""
    tts: str = ""
    """The model that speaks."""
    hears: bool = True
    """Whether somebody may speak: else no model that hears is needed."""
    instructions: str = INSTRUCTIONS
    """For the model, unless there is a graph."""
    sample_rate: int = 16000
    channels: int = 1
    pause_ms: int = 500
    """Hands-free, a pause of this length ends an utterance."""
    barge_in: bool = True
    """Whether speech ends the answer."""
    engine: int | None = None
    """What runs the models that answer; without it, their name decides."""
    diagnostics: bool = False
    """Whether the way of each turn is told."""
    graph: GraphFile | None = None
    """Who answers: a character, which is given a voice if it has none."""

    @property
    def answers(self) -> str:
        """The model that answers, if it is named; by the graph, if by nobody else."""
        return self.model or (self.graph.default_model if self.graph is not None else "")

    @property
    def config(self) -> ConfigureSessionRequest:
        """The engines: the real ones, but for models whose names begin with `mock`."""
        language, hears, voiced = (_is_mock(name) for name in (self.answers, self.stt, self.tts))
        hears = hears or not self.hears
        inference = self.engine
        if inference is None:
            inference = InferenceEngine.MOCK if language else InferenceEngine.LLAMA_CPP
        return ConfigureSessionRequest(
            inference_engine=inference,
            embedding_engine=inference,
            stt_engine=InferenceEngine.MOCK if hears else InferenceEngine.SHERPA_ONNX,
            tts_engine=InferenceEngine.MOCK if voiced else InferenceEngine.SHERPA_ONNX,
            allow_auto_model_downloading=True,
        )


async def made(
    tryll: Tryll, options: TalkOptions, progress: Progress | None, notice: Callable[[str], object]
) -> tuple[RemoteAgent, RemoteVoice | None, TalkOptions]:
    """The agent and the ear, if one is needed, with all models fetched, and the options with their names.

    Args:
        progress: hears of models that are downloaded.
        notice: hears of models that cannot be had, if there is another.

    Raises:
        TryllError: there is no such model, or it cannot be used.
    """
    models = await tryll.list_models()
    language = options.answers or pick(models)
    knowledge = options.graph.knowledge if options.graph is not None else ()
    needed = (
        {language, *(each.embedding_model for each in knowledge)}
        if options.config.inference_engine != InferenceEngine.MOCK
        else set()
    )
    for model in models:
        if model.name in needed and is_missing(model):
            await tryll.ensure_model(model.name, progress, load=False)
    hears = await _had(tryll, models, "stt", options.stt, progress, notice) if options.hears else ""
    if options.graph is not None and speaks(options.graph.graph):
        voiced = options.tts
        if voiced and not _is_mock(voiced):
            notice(f"The graph speaks with its own voice: `{voiced}` is not used.")
    else:
        voiced = await _had(tryll, models, "tts", options.tts, progress, notice)
    if options.graph is not None:
        agent = await _character(tryll, options.graph, language, voiced, progress)
    else:
        graph = speaking(options.instructions, voiced)
        agent = await tryll.create_agent(
            graph, default_model=language, diagnostics=options.diagnostics, progress=progress
        )
    voice = None
    if options.hears:
        voice = await tryll.voice_input(
            hears,
            sample_rate=options.sample_rate,
            channels=options.channels,
            vad_min_silence_ms=options.pause_ms,
            progress=progress,
        )
    return agent, voice, options.replace(model=language, stt=hears, tts=voiced)


def speaking(instructions: str, tts: str) -> GraphDescription:
    """A graph that answers aloud, and no more."""
    params = GenerateAndSpeakParams(
        tts_model_name=tts, system_prompt=instructions, sampling=SamplingOverrides(max_tokens=ANSWER_TOKENS)
    )
    return GraphDescription((NodeDescription("answer", params),), "answer")


async def _character(
    tryll: Tryll, file: GraphFile, language: str, voice: str, progress: Progress | None
) -> RemoteAgent:
    """The agent of a graph, with all that its file brings along."""
    await tryll.bring(*file.storages, *file.knowledge, progress=progress)
    return await tryll.create_agent(
        spoken(file.graph, voice),
        default_model=language,
        # They have the sentence that says why a turn failed.
        diagnostics=True,
        # To say an answer is a step, too.
        max_steps=2 * file.max_steps,
        progress=progress,
    )


def _is_mock(model: str) -> bool:
    return model.startswith(_MOCK)


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
    if _is_mock(wanted):
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
            notice(f"`{model.name}` is not available: {error.message}")
        else:
            return model.name
    return wanted
