"""Embeddings and speech over HTTP: what is asked, answered and refused."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import struct
import wave
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any
from unittest import mock

import httpx
import pytest

from trunkline.core.events import Audio
from trunkline.core.faults import BadAudio, Forbidden, NoRecognizer, ProviderError, Unsupported
from trunkline.core.keeper import OfferedAgent
from trunkline.core.machine import Embedded, Heard, ModelKind
from trunkline.wires.openai.audio import MAX_PROMPT_CHARS, MAX_SPEECH_CHARS, MAX_UPLOAD, PCM_RATE
from trunkline.wires.openai.embeddings import MAX_EMBEDDINGS_BODY, MAX_INPUT_CHARS, MAX_INPUTS
from trunkline.wires.openai.machine import MachineRoutes
from trunkline.wires.openai.serve import OpenAIApplication

MODELS = {"minilm-l6": "embedding", "whisper-base": "stt", "espeak": "tts"}


class FakeMachine:
    """Models that have each number of a text for a vector, hear what they are told, and speak silence."""

    def __init__(self) -> None:
        self.heard = [Heard(0.0, 1.5, "Hello there."), Heard(1.5, 3661.25, "General.")]
        self.asked: list[Any] = []
        self.fails: Exception | None = None
        self.tokens: int | None = 7
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered, self.left = asyncio.Event(), asyncio.Event()

    def names(self) -> Sequence[str]:
        return list(MODELS)

    def find(self, model: str, kind: ModelKind) -> str:
        name = model.removeprefix("model:")
        if MODELS.get(name) != kind:
            raise NoRecognizer("There is no such model.", hint="Get it with `trunkline models pull x`.")
        return name

    async def embed(self, name: str, texts: Sequence[str]) -> Embedded:
        self._ask(name, texts)
        self.entered.set()
        try:
            await self.gate.wait()
        finally:
            self.left.set()
        return Embedded([[float(len(text)), 0.5] for text in texts], self.tokens)

    async def transcribe(
        self, name: str, sound: Audio, *, prompt: str = "", language: str = "", segmented: bool = False
    ) -> AsyncGenerator[Heard, None]:
        self._ask(name, sound, prompt, language, segmented)
        for each in self.heard:
            yield each

    async def speak(
        self, name: str, text: str, *, speed: float = 1.0, rate: int | None = None
    ) -> AsyncGenerator[Audio, None]:
        self._ask(name, text, speed, rate)
        for _ in range(2):
            yield Audio(b"\1\0" * 10, rate or 22_050)

    async def close(self) -> None: ...

    def _ask(self, *said: Any) -> None:
        self.asked.append(said)
        if self.fails is not None:
            raise self.fails


@pytest.fixture
def machine() -> FakeMachine:
    return FakeMachine()


@pytest.fixture
def keeper() -> mock.Mock:
    offered = [OfferedAgent("echo"), OfferedAgent("model:smollm2-135m", is_model=True)]
    return mock.Mock(agents=mock.AsyncMock(return_value=offered))


@pytest.fixture
async def client(machine: FakeMachine, keeper: mock.Mock) -> AsyncIterator[httpx.AsyncClient]:
    app = OpenAIApplication(lambda scope: keeper, MachineRoutes(machine, lambda scope: keeper).routes)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x/v1") as client:
        yield client


def error(response: httpx.Response) -> dict[str, Any]:
    found: dict[str, Any] = response.json()["error"]
    return found


async def embed(client: httpx.AsyncClient, **members: Any) -> httpx.Response:
    return await client.post("/embeddings", json={"model": "minilm-l6", "input": "abc", **members})


async def test_vectors_are_numbers_or_base64_in_the_order_of_the_texts(
    client: httpx.AsyncClient, machine: FakeMachine
) -> None:
    told = (await embed(client, input=["abc", "a"])).json()
    assert [each["embedding"] for each in told["data"]] == [[3.0, 0.5], [1.0, 0.5]]
    assert [each["index"] for each in told["data"]] == [0, 1]
    assert told["object"] == "list"
    assert told["usage"] == {"prompt_tokens": 7, "total_tokens": 7}
    packed = (await embed(client, model="model:minilm-l6", encoding_format="base64")).json()["data"][0]["embedding"]
    assert struct.unpack("<2f", base64.b64decode(packed)) == (3.0, 0.5)
    machine.tokens = None
    assert "usage" not in (await embed(client)).json()


async def test_many_texts_are_as_good_as_few(client: httpx.AsyncClient) -> None:
    assert len((await embed(client, input=["x"] * MAX_INPUTS)).json()["data"]) == MAX_INPUTS


@pytest.mark.parametrize(
    ("members", "param", "told"),
    [
        ({"input": None}, "input", "Missing required parameter"),
        ({"input": []}, "input", "is empty"),
        ({"input": ""}, "input", "is empty"),
        ({"input": ["a", ""]}, "input", "`input[1]` is empty"),
        ({"input": 5}, "input", "a string or a list"),
        ({"input": [1, 2]}, "input", "holds tokens"),
        ({"input": [[1, 2]]}, "input", "holds tokens"),
        ({"input": [{}]}, "input[0]", "must be a string"),
        ({"input": ["x"] * (MAX_INPUTS + 1)}, "input", "2048 texts at most"),
        ({"input": "x" * (MAX_INPUT_CHARS + 1)}, "input", "characters at most"),
        ({"encoding_format": "int8"}, "encoding_format", "`float` or `base64`"),
        ({"dimensions": 5}, "dimensions", "vectors of 2 numbers"),
        ({"dimensions": 0}, "dimensions", "at least 1"),
        ({"model": None}, "model", "Missing required parameter"),
        ({"model": "echo"}, "model", "`echo` is an agent and makes no embeddings. Get it with"),
        ({"model": "model:smollm2-135m"}, "model", "is a language model and makes no embeddings"),
        ({"model": "smollm2-135m"}, "model", "is a language model"),
    ],
)
async def test_what_cannot_be_embedded_is_refused_in_openais_form(
    client: httpx.AsyncClient, members: dict[str, Any], param: str, told: str
) -> None:
    response = await embed(client, **members)
    assert response.status_code == 400
    assert error(response)["param"] == param
    assert told in error(response)["message"]
    assert error(response)["type"] == "invalid_request_error"


async def test_dimensions_that_the_model_has_are_fine(client: httpx.AsyncClient) -> None:
    assert (await embed(client, dimensions=2)).status_code == 200


async def test_an_unknown_model_is_not_found_and_the_way_to_get_one_is_told(client: httpx.AsyncClient) -> None:
    response = await embed(client, model="nobody")
    assert response.status_code == 404
    assert error(response)["code"] == "model_not_found"
    assert "trunkline models pull" in error(response)["message"]


async def test_a_model_that_fails_is_a_server_error_with_its_words(
    client: httpx.AsyncClient, machine: FakeMachine
) -> None:
    machine.fails = ProviderError("It broke.")
    response = await embed(client)
    assert response.status_code >= 500
    assert "It broke." in error(response)["message"]


async def test_bodies_have_bounds_and_a_kind(client: httpx.AsyncClient) -> None:
    response = await client.post(
        "/embeddings", content=b" " * (MAX_EMBEDDINGS_BODY + 1), headers={"content-type": "application/json"}
    )
    assert response.status_code == 413
    assert error(response)["code"] == "request_too_large"
    response = await client.post("/embeddings", content=b"x", headers={"content-type": "text/plain"})
    assert response.status_code == 415
    response = await client.post("/audio/transcriptions", json={})
    assert response.status_code == 415
    response = await client.post("/audio/transcriptions", files={"file": ("a.wav", b" " * MAX_UPLOAD)})
    assert response.status_code == 413
    response = await client.post(
        "/audio/transcriptions", content=b"x", headers={"content-type": "multipart/form-data; boundary=b"}
    )
    assert response.status_code == 400
    assert error(response)["code"] == "invalid_form"


@pytest.mark.parametrize("path", ["embeddings", "audio/transcriptions", "audio/translations", "audio/speech"])
async def test_who_may_only_look_has_nothing_done(client: httpx.AsyncClient, keeper: mock.Mock, path: str) -> None:
    keeper.check_may_ask.side_effect = Forbidden("Observers may only look.")
    response = await client.post(f"/{path}", json={})
    assert response.status_code == 403
    assert "Observers" in error(response)["message"]


async def test_a_client_that_hangs_up_ends_the_work(machine: FakeMachine, keeper: mock.Mock) -> None:
    app = OpenAIApplication(lambda scope: keeper, MachineRoutes(machine, lambda scope: keeper).routes)
    machine.gate.clear()
    body = json.dumps({"model": "minilm-l6", "input": "x"}).encode()
    messages: asyncio.Queue[Any] = asyncio.Queue()
    messages.put_nowait({"type": "http.request", "body": body})
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/embeddings",
        "raw_path": b"/v1/embeddings",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    serving = asyncio.create_task(app(scope, messages.get, mock.AsyncMock()))
    await machine.entered.wait()
    messages.put_nowait({"type": "http.disconnect"})
    await serving
    assert machine.left.is_set()


# Hearing


def wav(width: int = 2, channels: int = 1, rate: int = 16_000, frames: bytes = b"\1\2\3\4" * 600) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(width)
        writer.setframerate(rate)
        writer.writeframes(frames)
    return file.getvalue()


async def hear(client: httpx.AsyncClient, data: bytes | None = None, **fields: Any) -> httpx.Response:
    files = {"file": ("a.wav", wav() if data is None else data, "audio/wav")}
    return await client.post("/audio/transcriptions", data={"model": "whisper-base", **fields}, files=files)


async def test_what_was_said_is_told_with_how_long_it_took(client: httpx.AsyncClient, machine: FakeMachine) -> None:
    told = (await hear(client, prompt="Kenobi", language="en", temperature="0")).json()
    assert told == {"text": "Hello there. General.", "usage": {"type": "duration", "seconds": 0.075}}
    assert machine.asked == [("whisper-base", Audio(b"\1\2\3\4" * 600, 16_000), "Kenobi", "en", False)]


async def test_the_forms_of_a_transcript(client: httpx.AsyncClient) -> None:
    response = await hear(client, response_format="text")
    assert response.text == "Hello there. General.\n"
    assert response.headers["content-type"].startswith("text/plain")
    assert (await hear(client, response_format="srt")).text == (
        "1\n00:00:00,000 --> 00:00:01,500\nHello there.\n\n2\n00:00:01,500 --> 01:01:01,250\nGeneral.\n"
    )
    assert (await hear(client, response_format="vtt")).text == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nHello there.\n\n00:00:01.500 --> 01:01:01.250\nGeneral.\n"
    )
    granularity: dict[str, Any] = {"timestamp_granularities[]": "segment"}
    told = (await hear(client, response_format="verbose_json", **granularity)).json()
    assert told["segments"][1] == {"id": 1, "start": 1.5, "end": 3661.25, "text": "General."}
    assert (told["language"], told["duration"], told["task"]) == ("english", 0.075, "transcribe")


async def test_a_transcript_can_be_streamed(client: httpx.AsyncClient) -> None:
    response = await hear(client, stream="true")
    assert response.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line.removeprefix("data: ")) for line in response.text.splitlines() if line]
    assert [event["type"] for event in events] == ["transcript.text.delta"] * 2 + ["transcript.text.done"]
    assert "".join(event.get("delta", "") for event in events) == events[-1]["text"] == "Hello there. General."


@pytest.mark.parametrize(
    ("width", "frames", "expected"),
    [
        (1, b"\x00\x80\xff", struct.pack("<3h", -32768, 0, 32512)),
        (3, b"\x99\x01\x02\x99\xff\xff", struct.pack("<2h", 0x0201, -1)),
        (4, b"\x99\x99\x01\x02", struct.pack("<h", 0x0201)),
    ],
)
async def test_samples_of_other_widths_are_heard(
    client: httpx.AsyncClient, machine: FakeMachine, width: int, frames: bytes, expected: bytes
) -> None:
    assert (await hear(client, wav(width, frames=frames))).status_code == 200
    assert machine.asked[0][1].data == expected


async def test_a_file_that_was_streamed_is_heard_to_its_end(client: httpx.AsyncClient, machine: FakeMachine) -> None:
    spoken = await client.post("/audio/speech", json={"model": "espeak", "input": "x", "voice": "alloy"})
    assert (await hear(client, spoken.content)).status_code == 200
    assert machine.asked[1][1] == Audio(b"\1\0" * 20, 22_050)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"ID3 or something else", "Only WAV files"),
        (b"RIFF\0\0\0\0WAVE", "cannot be read"),
        (wav()[:30], "cannot be read"),
        (wav(channels=3, frames=b"\0" * 6), "3 channels"),
        (wav(frames=b""), "no sound"),
    ],
)
async def test_a_file_that_cannot_be_heard_is_refused_and_says_what_could(
    client: httpx.AsyncClient, data: bytes, told: str
) -> None:
    response = await hear(client, data)
    assert response.status_code == 400
    assert (error(response)["param"], error(response)["code"]) == ("file", "invalid_file_format")
    assert told in error(response)["message"]
    assert "ffmpeg" in error(response)["message"]


@pytest.mark.parametrize(
    ("fields", "param", "told"),
    [
        ({"response_format": "docx"}, "response_format", "must be one of"),
        ({"response_format": "text", "stream": "true"}, "response_format", "Only `json`"),
        ({"timestamp_granularities[]": "word"}, "timestamp_granularities", "when each word"),
        ({"prompt": "x" * (MAX_PROMPT_CHARS + 1)}, "prompt", "characters at most"),
        ({"model": "echo"}, "model", "is an agent and cannot hear"),
    ],
)
async def test_a_form_that_asks_for_what_cannot_be_had_is_refused(
    client: httpx.AsyncClient, fields: dict[str, Any], param: str, told: str
) -> None:
    response = await hear(client, **fields)
    assert response.status_code == 400
    assert error(response)["param"] == param
    assert told in error(response)["message"]


async def test_a_form_without_a_file_or_a_model_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.post("/audio/transcriptions", files={"model": (None, "whisper-base")})
    assert error(response)["param"] == "file"
    response = await client.post("/audio/transcriptions", files={"file": ("a", wav())})
    assert error(response)["param"] == "model"


@pytest.mark.parametrize("stream", ["false", "true"])
async def test_a_language_or_sound_that_the_model_does_not_know_is_refused(
    client: httpx.AsyncClient, machine: FakeMachine, stream: str
) -> None:
    machine.fails = Unsupported("English only.")
    response = await hear(client, language="de", stream=stream)
    assert (response.status_code, error(response)["param"]) == (400, "language")
    machine.fails = BadAudio("Too slow.")
    response = await hear(client, stream=stream)
    assert (response.status_code, error(response)["param"]) == (400, "file")


async def test_translations_are_told_not_to_be_there(client: httpx.AsyncClient) -> None:
    response = await client.post("/audio/translations", files={"file": ("a", wav())})
    assert response.status_code == 404
    assert "Nothing here translates" in error(response)["message"]


# Speaking


async def speak(client: httpx.AsyncClient, **members: Any) -> httpx.Response:
    return await client.post("/audio/speech", json={"model": "espeak", "input": "Hi.", "voice": "alloy", **members})


async def test_speech_is_a_wav_file_unless_something_else_is_asked_for(
    client: httpx.AsyncClient, machine: FakeMachine
) -> None:
    response = await speak(client, voice="nobody", instructions="Sing.")
    assert response.headers["content-type"] == "audio/wav"
    with wave.open(io.BytesIO(response.content)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (22_050, 1, 2)
        assert file.readframes(1000) == b"\1\0" * 20
    assert machine.asked == [("espeak", "Hi.", 1.0, None)]


async def test_sound_without_a_head_has_the_rate_that_clients_expect(
    client: httpx.AsyncClient, machine: FakeMachine
) -> None:
    response = await speak(client, response_format="pcm", speed=2, voice={"id": "x"})
    assert response.headers["content-type"] == "audio/pcm"
    assert response.content == b"\1\0" * 20
    assert machine.asked == [("espeak", "Hi.", 2, PCM_RATE)]


@pytest.mark.parametrize(
    ("members", "param", "told"),
    [
        ({"response_format": "mp3"}, "response_format", "no encoder for `mp3`"),
        ({"response_format": "opus"}, "response_format", "no encoder"),
        ({"response_format": "ogg"}, "response_format", "must be one of"),
        ({"stream_format": "sse"}, "stream_format", "as it is"),
        ({"input": ""}, "input", "Missing required parameter"),
        ({"input": "x" * (MAX_SPEECH_CHARS + 1)}, "input", "4096 characters at most"),
        ({"speed": 4}, "speed", "between 0.25 and 3"),
        ({"speed": "fast"}, "speed", "a number"),
        ({"voice": 1}, "voice", "a name"),
        ({"model": "echo"}, "model", "is an agent and cannot speak"),
    ],
)
async def test_speech_that_cannot_be_had_is_refused(
    client: httpx.AsyncClient, members: dict[str, Any], param: str, told: str
) -> None:
    response = await speak(client, **members)
    assert response.status_code == 400
    assert error(response)["param"] == param
    assert told in error(response)["message"]


async def test_the_longest_text_is_spoken(client: httpx.AsyncClient) -> None:
    assert (await speak(client, input="x" * MAX_SPEECH_CHARS)).status_code == 200


async def test_a_voice_that_fails_before_its_first_sound_is_a_server_error(
    client: httpx.AsyncClient, machine: FakeMachine
) -> None:
    machine.fails = ProviderError("It is hoarse.")
    response = await speak(client)
    assert response.status_code >= 500
    assert "hoarse" in error(response)["message"]
