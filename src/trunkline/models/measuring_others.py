"""Measures models that embed, hear, speak, and tell speech from noise, as `measuring` does those that answer."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import Any

from trunkline.core.faults import ConfigError, ProviderError
from trunkline.models import catalog
from trunkline.models.catalog_entry import DETECTS, EMBEDDING, HEARS, LLAMA, SPEAKS, CatalogEntry
from trunkline.models.figures import MeasuredModel, MeasurePlan, Measuring, Runs
from trunkline.models.here import models_here
from trunkline.models.installed import lacking_engines
from trunkline.models.load_configured import options_for
from trunkline.models.load_options import used_by
from trunkline.models.measuring import one_at_a_time
from trunkline.models.voice.engines import HEARING_RATE, Recognizer, Voice
from trunkline.models.voice.sound import SAMPLE_BYTES

#: Texts that are embedded in one run.
TEXTS = 64
#: What is said, and then heard. Ordinary sentences, of some ten seconds.
SENTENCES = (
    "Good evening, traveller. The road to the harbour is closed, but the innkeeper has a boat. "
    "Ask him for the key before the sun goes down, and take some bread for the ferryman."
)
#: From here on a window counts as speech.
THRESHOLD = 0.5


async def measure(entry: CatalogEntry, plan: MeasurePlan, tell: Measuring | None = None) -> MeasuredModel:
    """Load a model, have it do something, and let go of it. One at a time.

    Raises:
        AgentBusy: another one is being measured.
        ConfigError: it is not here, or nothing that runs it, or there is no voice whose words it could hear.
        ProviderError: it does not work.
    """
    path = catalog.path(entry)
    if path is None:
        raise ConfigError(
            f"The model `{entry.name}` is not here yet.", hint=f"Get it with `trunkline models pull {entry.name}`."
        )
    if (lacks := lacking_engines((entry.engine,))) is not None:
        raise ConfigError(lacks)
    with one_at_a_time(entry.name):
        if entry.kind == EMBEDDING:
            return await _embedding(entry, path, plan, tell)
        if entry.kind == SPEAKS:
            return await _voice(entry, path, plan, tell)
        if entry.kind == HEARS:
            return await _recognizer(entry, path, plan, tell)
        if entry.kind == DETECTS:
            return await _detector(entry, plan, tell)
    raise ConfigError(f"There is no way to measure `{entry.name}`, which is of the kind `{entry.kind}`.")


async def _embedding(entry: CatalogEntry, path: str, plan: MeasurePlan, tell: Measuring | None) -> MeasuredModel:
    texts = [f"{number}. {SENTENCES[: 40 + number]}" for number in range(TEXTS)]
    runs = Runs(entry.name, entry.kind, tell)
    began = time.monotonic()
    engine = await _loaded_embedding(entry, path)
    seconds = time.monotonic() - began
    try:
        await engine.embed(texts)
        runs.loaded(seconds, used_by(engine))
        for _ in range(plan.repeat):
            began = time.monotonic()
            await engine.embed(texts)
            runs.add(texts_per_second=TEXTS / (time.monotonic() - began))
    finally:
        await engine.close()
    return runs.found


async def _loaded_embedding(entry: CatalogEntry, path: str) -> Any:
    options = await asyncio.to_thread(options_for, entry.name, entry.origin)
    if entry.engine == LLAMA:
        from trunkline.models.embedding_llama import LlamaEmbedding

        return await LlamaEmbedding.load(entry.name, path, window=entry.context, options=options.over(entry.options))
    from trunkline.models.embedding_onnx import OnnxEmbedding

    return await OnnxEmbedding.load(entry.name, path, threads=options.over(entry.options).threads)


async def _voice(entry: CatalogEntry, path: str, plan: MeasurePlan, tell: Measuring | None) -> MeasuredModel:
    runs = Runs(entry.name, entry.kind, tell)
    began = time.monotonic()
    voice = await _loaded_voice(entry, path)
    seconds = time.monotonic() - began
    try:
        await _said(voice)
        runs.loaded(seconds, used_by(voice), getattr(voice, "pid", None))
        for _ in range(plan.repeat):
            took, first, sound = await _said(voice)
            factor = took / (len(sound) / SAMPLE_BYTES / voice.sample_rate)
            runs.add(real_time_factor=factor, first_sound_ms=first * 1000)
    finally:
        await voice.close()
    return runs.found


async def _loaded_voice(entry: CatalogEntry, path: str) -> Voice:
    from trunkline.models.voice.loading import load_voice

    options = await asyncio.to_thread(options_for, entry.name, entry.origin)
    return await load_voice(entry, path, threads=options.over(entry.options).threads)


async def _said(voice: Voice) -> tuple[float, float, bytes]:
    """Have it say the sentences: the seconds for all, those until the first sound, and the sound."""
    began, first = time.monotonic(), 0.0
    sound = bytearray()
    async with aclosing(voice.speak(SENTENCES)) as spoken:
        async for piece in spoken:
            first = first or time.monotonic()
            sound += piece
    if not sound:
        raise ProviderError(f"The model `{voice.name}` said nothing.")
    return time.monotonic() - began, first - began, bytes(sound)


async def _recognizer(entry: CatalogEntry, path: str, plan: MeasurePlan, tell: Measuring | None) -> MeasuredModel:
    from trunkline.models.voice.loading import load_recognizer

    sound = await _something_said()
    options = await asyncio.to_thread(options_for, entry.name, entry.origin)
    runs = Runs(entry.name, entry.kind, tell)
    began = time.monotonic()
    recognizer: Recognizer = await load_recognizer(entry, path, threads=options.over(entry.options).threads)
    seconds = time.monotonic() - began
    try:
        if not await recognizer.transcribe(sound):
            raise ProviderError(f"The model `{entry.name}` heard nothing in the words of a voice.")
        runs.loaded(seconds, used_by(recognizer))
        for _ in range(plan.repeat):
            began = time.monotonic()
            await recognizer.transcribe(sound)
            runs.add(real_time_factor=(time.monotonic() - began) / _seconds(sound))
    finally:
        await recognizer.close()
    return runs.found


async def _detector(entry: CatalogEntry, plan: MeasurePlan, tell: Measuring | None) -> MeasuredModel:
    from trunkline.models.voice.detect import make_detector

    sound = await _something_said()
    runs = Runs(entry.name, entry.kind, tell)
    began = time.monotonic()
    detector = await asyncio.to_thread(make_detector, THRESHOLD)
    seconds = time.monotonic() - began
    await asyncio.to_thread(detector.feed, sound)
    runs.loaded(seconds, used_by(detector))
    for _ in range(plan.repeat):
        began = time.monotonic()
        await asyncio.to_thread(detector.feed, sound)
        runs.add(real_time_factor=(time.monotonic() - began) / _seconds(sound))
    return runs.found


async def _something_said() -> bytes:
    """The sentences in the voice of a model that is here, as those that hear want them.

    Raises:
        ConfigError: there is none.
    """
    names = models_here(SPEAKS)
    if not names:
        raise ConfigError(
            "There is no voice here whose words could be heard.",
            hint="Get one with `trunkline models pull piper-joe`.",
        )
    entry = catalog.find(names[0])
    voice = await _loaded_voice(entry, catalog.path(entry) or "")
    try:
        _, _, sound = await _said(voice)
    finally:
        await voice.close()
    return await asyncio.to_thread(_at_hearing_rate, sound, voice.sample_rate)


def _at_hearing_rate(pcm: bytes, rate: int) -> bytes:
    """Sound of another rate, well enough for words."""
    import numpy as np

    given = np.frombuffer(pcm[: len(pcm) // SAMPLE_BYTES * SAMPLE_BYTES], "<i2").astype(np.float64)
    places = np.arange(int(len(given) * HEARING_RATE / rate)) * (rate / HEARING_RATE)
    return bytes(np.interp(places, np.arange(len(given)), given).astype("<i2"))


def _seconds(sound: bytes) -> float:
    return len(sound) / SAMPLE_BYTES / HEARING_RATE
