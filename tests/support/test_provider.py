"""The stub as a program, which other tests run beside their own processes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.provider import in_thread, scripted
from trunkline.models.messages import Message, Text
from trunkline.models.model import Answer, Request, TextChunk
from trunkline.models.providers import ModelSettings, make

SCRIPT = {"replies": [{"tool_calls": [["Read", {"path": "x"}]]}], "default": {"text": "as always", "cut": 9}}


async def _texts(url: str, provider: str) -> list[str]:
    model = make(ModelSettings(provider, "m", base_url=url))
    request = Request([Message("user", (Text("hi"),))])
    chunks = [chunk async for chunk in model.stream(request)]
    await model.close()
    assert isinstance(chunks[-1], Answer)
    return [chunk.text for chunk in chunks if isinstance(chunk, TextChunk)]


def _answer(url: str, provider: str) -> list[str]:
    # In a loop of its own: the test waits for a process by blocking.
    return asyncio.run(_texts(url, provider))


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.process
def test_it_plays_its_script_in_the_format_it_is_asked_in(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT))
    command = [sys.executable, "-m", "tests.support.provider", "--script", str(script)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            url = f"http://127.0.0.1:{int(process.stdout.readline())}"
            assert _answer(url, "openai") == []
            assert _answer(url, "openai") == ["as", " always"]
            assert _answer(url, "anthropic") == ["as", " always"]
        finally:
            process.stdin.close()
        assert process.wait(10) == 0


async def test_it_runs_in_a_thread_as_well() -> None:
    with in_thread(scripted({"default": {"text": "hi"}})) as stub:
        assert await _texts(stub.url, "anthropic") == ["hi"]
        assert stub.requests[0].json["model"] == "m"
