"""The routes of what embeds, hears and speaks on this machine, beside those of agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Scope

from trunkline.core.events import Audio
from trunkline.core.faults import BadAudio, ModelError, Unsupported
from trunkline.core.keeper import SessionKeeper
from trunkline.core.machine import Heard, MachineModels, ModelKind
from trunkline.wires.openai.audio import (
    MAX_SPEECH_BODY,
    MAX_UPLOAD,
    AskedSpeech,
    AskedTranscript,
    joined,
    read_speech,
    read_transcript,
    write_transcript,
)
from trunkline.wires.openai.bodies import form_fields, json_params
from trunkline.wires.openai.codec import event
from trunkline.wires.openai.embeddings import (
    MAX_EMBEDDINGS_BODY,
    check_dimensions,
    read_embeddings,
    write_embeddings,
)
from trunkline.wires.openai.errors import OpenAIRefused, bad, of_failed_turn
from trunkline.wires.openai.streaming import MEDIA_TYPE, gone

T = TypeVar("T")

#: Texts whose vectors are written in a moment; more are written in a thread.
_FEW = 16
_MODEL = "model:"
_NOT_FOUND = 404
#: Nobody reads it: the client has hung up.
_NOBODY = 499
_DOES: dict[ModelKind, str] = {"embedding": "makes no embeddings", "stt": "cannot hear", "tts": "cannot speak"}


class MachineRoutes:
    """`routes` go into an `OpenAIApplication`. `keeper_of` gives the keeper of a request's client."""

    def __init__(self, machine: MachineModels, keeper_of: Callable[[Scope], SessionKeeper]) -> None:
        self._machine = machine
        self._keeper_of = keeper_of
        self.routes = [
            Route("/v1/embeddings", self._embeddings, methods=["POST"]),
            Route("/v1/audio/transcriptions", self._transcriptions, methods=["POST"]),
            Route("/v1/audio/translations", self._translations, methods=["POST"]),
            Route("/v1/audio/speech", self._speech, methods=["POST"]),
        ]

    async def _embeddings(self, request: Request) -> Response:
        keeper = self._talker(request)
        asked = read_embeddings(await json_params(request, MAX_EMBEDDINGS_BODY))
        name = await self._found(keeper, asked.model, "embedding")
        found = await _while_there(request, self._machine.embed(name, asked.texts))
        if found is None:
            return Response(status_code=_NOBODY)
        check_dimensions(asked, found)
        few = len(asked.texts) <= _FEW
        body = write_embeddings(asked, found) if few else await asyncio.to_thread(write_embeddings, asked, found)
        return Response(body, media_type="application/json")

    async def _transcriptions(self, request: Request) -> Response:
        keeper = self._talker(request)
        form = await form_fields(request, MAX_UPLOAD)
        asked = await asyncio.to_thread(read_transcript, form)
        name = await self._found(keeper, asked.model, "stt")
        heard = self._machine.transcribe(
            name, asked.sound, prompt=asked.prompt, language=asked.language, segmented=asked.segmented
        )
        if asked.stream:
            first = await _first(request, heard)
            return StreamingResponse(_told(first, heard, asked), media_type=MEDIA_TYPE)
        found = await _while_there(request, _all(heard))
        if found is None:
            return Response(status_code=_NOBODY)
        body, media_type = write_transcript(asked, found)
        return Response(body, media_type=media_type)

    async def _translations(self, request: Request) -> Response:
        self._talker(request)
        told = "Nothing here translates speech. `/v1/audio/transcriptions` writes down what is said in English."
        raise OpenAIRefused(_NOT_FOUND, told, code="unsupported_endpoint", headers={"connection": "close"})

    async def _speech(self, request: Request) -> Response:
        keeper = self._talker(request)
        asked = read_speech(await json_params(request, MAX_SPEECH_BODY))
        name = await self._found(keeper, asked.model, "tts")
        sound = self._machine.speak(name, asked.text, speed=asked.speed, rate=asked.rate)
        first = await _first(request, sound)
        return StreamingResponse(_spoken(first, sound, asked), media_type=asked.media_type)

    def _talker(self, request: Request) -> SessionKeeper:
        """The keeper of a client that may have something done.

        Raises:
            Forbidden: it may only look.
        """
        keeper = self._keeper_of(request.scope)
        keeper.check_may_ask()
        return keeper

    async def _found(self, keeper: SessionKeeper, model: str, kind: ModelKind) -> str:
        try:
            return await asyncio.to_thread(self._machine.find, model, kind)
        except ModelError as missing:
            problem = missing
        agents = {agent.name for agent in await keeper.agents()}
        if model in agents or f"{_MODEL}{model}" in agents:
            kinds = "a language model" if model not in agents or model.startswith(_MODEL) else "an agent"
            told = f"`{model[:80]}` is {kinds} and {_DOES[kind]}. {problem.hint or ''}"
            raise bad("model", told.rstrip(), "unsupported_model")
        raise OpenAIRefused(_NOT_FOUND, str(problem), param="model", code="model_not_found")


async def _while_there(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """What comes of some work; None if the client hangs up before, which ends it.

    Raises:
        OpenAIRefused: it did not work.
    """
    working = asyncio.create_task(work, name="a model's work")
    leaving = asyncio.create_task(gone(request.receive), name="client of a model")
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    except (BadAudio, Unsupported) as fault:
        raise bad("language" if not isinstance(fault, BadAudio) else "file", str(fault)) from None
    except ModelError as fault:
        raise of_failed_turn(fault) from None
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.wait({working, leaving})


async def _all(heard: AsyncGenerator[T, None]) -> list[T]:
    async with aclosing(heard):
        return [each async for each in heard]


async def _next(items: AsyncGenerator[T, None]) -> T | None:
    return await anext(items, None)


async def _first(request: Request, items: AsyncGenerator[T, None]) -> T | None:
    """The first item of a stream: what fails before it has a status of its own."""
    try:
        return await _while_there(request, _next(items))
    except BaseException:
        await items.aclose()
        raise


async def _spoken(first: Audio | None, sound: AsyncGenerator[Audio, None], asked: AskedSpeech) -> AsyncIterator[bytes]:
    async with aclosing(sound):
        if first is None:
            return
        yield asked.head(first) + first.data
        async for piece in sound:
            yield piece.data


async def _told(
    first: Heard | None, heard: AsyncGenerator[Heard, None], asked: AskedTranscript
) -> AsyncIterator[bytes]:
    said: list[Heard] = []
    async with aclosing(heard):
        if first is not None:
            said.append(first)
            yield event({"type": "transcript.text.delta", "delta": first.text})
        async for each in heard:
            said.append(each)
            yield event({"type": "transcript.text.delta", "delta": f" {each.text}"})
    used = {"type": "duration", "seconds": asked.seconds}
    yield event({"type": "transcript.text.done", "text": joined(said), "usage": used})
