"""A spoken question to an agent, through all of the stack, and through the engines alone."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench._peers import PYTHON, Peer
from bench._voice_direct import LEAST_CHARS

from trunkline.agents.graph.hearing.pcm import Resampler
from trunkline.agents.graph.sentences import Sentences
from trunkline.models.llama_server import default_threads
from trunkline.wires.tryll.drive import RemoteAgent, RemoteVoice, Sound, Tryll
from trunkline.wires.tryll.messages import (
    ConfigureSessionRequest,
    GenerateAndSpeakParams,
    GraphDescription,
    InferenceEngine,
    NodeDescription,
    SamplingOverrides,
)

DIRECT = str(Path(__file__).with_name("_voice_direct.py"))
HEARS, ANSWERS, SPEAKS = "whisper-base", "smollm2-135m", "piper-joe"

SYSTEM = "You are a miller. Answer in one short sentence."
#: The sound of one frame, in seconds: as microphones give it.
PIECE_SECONDS = 0.04
#: Below this a sample is silence: the end of speech is that of the last louder one.
QUIET = 200


@dataclass(frozen=True)
class Stages:
    """One question, in seconds: each from the end of the one before."""

    final: float
    """From the end of speech to what was understood."""
    token: float
    sentence: float
    audio: float

    @property
    def whole(self) -> float:
        return self.final + self.token + self.sentence + self.audio


@dataclass(frozen=True)
class Question:
    """A question as sound, without silence at its end, and in a file as recognizers want it."""

    pcm: bytes
    rate: int
    file: str


class Engine(Peer):
    """One engine by itself; `kind` as `_voice_direct.py` has it."""

    def __init__(self, kind: str, path: str, home: str) -> None:
        super().__init__([PYTHON, DIRECT, kind, path, str(default_threads())], home)
        self.line()

    def ask(self, **request: Any) -> list[Any]:
        """What it answers."""
        self.send(json.dumps(request).encode())
        found: list[Any] = json.loads(self.line())
        return found


class Direct:
    """All engines, one after the other, with nothing in between."""

    def __init__(self, hears: Engine, answers: Engine, speaks: Engine, tokens: int) -> None:
        self._hears = hears
        self._answers = answers
        self._speaks = speaks
        self._tokens = tokens

    def question(self, text: str, home: str, number: int) -> Question:
        """Let the voice ask something."""
        import numpy as np

        file = Path(home, f"question-{number}.pcm")
        _, rate = self._speaks.ask(text=text, file=str(file))
        samples = np.frombuffer(file.read_bytes(), "<i2")
        loud = np.nonzero(np.abs(samples.astype(np.int32)) > QUIET)[0]
        samples = samples[: int(loud[-1]) + 1]
        resampler = Resampler(rate)
        file.write_bytes(resampler.feed(samples) + resampler.flush())
        return Question(samples.tobytes(), rate, str(file))

    def ask(self, question: Question) -> Stages:
        """Ask it, as if nothing had been said before."""
        final, text = self._hears.ask(pcm=question.file)
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text.strip()}]
        token, sentence, spoken = self._answers.ask(
            messages=messages, max_tokens=self._tokens, temperature=0.0, stream=True, cache_prompt=True
        )
        audio, _ = self._speaks.ask(text=spoken)
        return Stages(final, token, sentence, audio)


class Stack:
    """An agent that hears and speaks, by our client over our server."""

    def __init__(self, client: Tryll, agent: RemoteAgent, voice: RemoteVoice) -> None:
        self._client = client
        self._agent = agent
        self._voice = voice

    @classmethod
    async def open(cls, port: int, rate: int, tokens: int) -> Stack:
        config = ConfigureSessionRequest(
            inference_engine=InferenceEngine.LLAMA_CPP,
            stt_engine=InferenceEngine.SHERPA_ONNX,
            tts_engine=InferenceEngine.SHERPA_ONNX,
        )
        client = await Tryll("127.0.0.1", port, config=config).connect()
        sampling = SamplingOverrides(temperature=0.0, max_tokens=tokens)
        params = GenerateAndSpeakParams(ANSWERS, SPEAKS, SYSTEM, sampling=sampling, min_sentence_chars=LEAST_CHARS)
        agent = await client.create_agent(GraphDescription((NodeDescription("say", params),), "say"))
        return cls(client, agent, await client.voice_input(HEARS, sample_rate=rate))

    async def ask(self, question: Question) -> Stages:
        """Ask it as a person does, at the speed of speech, and as if nothing had been said before."""
        await self._agent.restore(())
        voice = self._voice
        await voice.begin(agent=self._agent)
        step = int(question.rate * PIECE_SECONDS) * 2
        due = time.perf_counter()
        for begin in range(0, len(question.pcm), step):
            piece = question.pcm[begin : begin + step]
            # A piece is there when it is over.
            due += len(piece) / 2 / question.rate
            await asyncio.sleep(due - time.perf_counter())
            await voice.send(piece)
        ended = time.perf_counter()
        await voice.end()
        final = time.perf_counter()
        reply = voice.reply
        if reply is None:
            raise AssertionError("nothing was understood")
        cut = Sentences(LEAST_CHARS)
        token = sentence = audio = 0.0
        while (event := await reply.next_event()) is not None:
            now = time.perf_counter()
            if isinstance(event, str):
                token = token or now
                if any(cut.feed(event)):
                    sentence = sentence or now
            elif isinstance(event, Sound):
                audio = audio or now
        if not (token and audio):
            raise AssertionError("nothing was said")
        # An answer of one sentence ends with it; its sound is later.
        sentence = min(sentence or audio, audio)
        return Stages(final - ended, token - final, sentence - token, audio - sentence)

    async def close(self) -> None:
        await self._client.close()
