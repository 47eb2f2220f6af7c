"""The coding agent on a real model: in its own process, and behind the two APIs that its engine serves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_process import AgentProcess
from tests.support.local_model import TIMEOUT_SECONDS, Served, llama_server, model_path
from trunkline.base.vocabulary import OWN_TOOLS

pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(TIMEOUT_SECONDS)]


def text_of(lines: list[dict[str, Any]]) -> str:
    return "".join(line["text"] for line in lines if line["type"] == "text_delta")


def configured(**compat: Any) -> None:
    """The local model, with one thread: tests run beside tests."""
    place = Path(os.environ["TRUNKLINE_HOME"]) / "config"
    place.mkdir(parents=True)
    settings = {"threads": 1, **compat}
    lines = [f"{name} = {str(value).lower()}" for name, value in settings.items()]
    (place / "config.toml").write_text("\n".join(["[providers.local.compat]", *lines]))


def local(workspace: Path, *flags: str) -> AgentProcess:
    return AgentProcess("--provider", "local", "--model", model_path(), *flags, cwd=workspace)


def test_it_answers_in_words_and_a_resumed_session_goes_on(tmp_path: Path) -> None:
    configured()
    with local(tmp_path, "--session-id", "talk", "--max-tokens", "24") as agent:
        agent.until("ready")
        agent.message("Say hello.")
        lines = agent.until("stream_end")
        assert text_of(lines).strip()
        assert lines[-1]["usage"]["output_tokens"] > 0
        agent.message("/context", "m2")
        filled = agent.until("info")[-1]["message"]
        assert agent.end() == 0
    with local(tmp_path, "--resume", "talk", "--max-tokens", "24") as agent:
        agent.until("ready")
        agent.message("/context", "m3")
        assert agent.until("info")[-1]["message"].split(" in ")[1] == filled.split(" in ")[1]
        agent.message("Say it again.", "m4")
        assert text_of(agent.until("stream_end")[1:] + agent.until("stream_end")).strip()
        assert agent.end() == 0


def test_its_tool_calls_are_calls_that_can_be_made(tmp_path: Path) -> None:
    configured(force_tool="true")
    with (Path(os.environ["TRUNKLINE_HOME"]) / "config" / "config.toml").open("a") as file:
        file.write("\n[tools]\nallow_list = []\n")
    (tmp_path / "a.txt").write_text("alpha\n")
    with local(tmp_path, "--no-session", "--max-turns", "1") as agent:
        agent.until("ready")
        agent.message("Read the file a.txt.")
        # Which one is the model's choice. Some are never asked about; of those, only the result tells what was wrong.
        call = agent.until("tool_request", "tool_running")[-1]
        if call["type"] == "tool_request":
            assert call["tool"]["name"] in OWN_TOOLS
            assert isinstance(call["tool"]["args"], dict)
            agent.send(type="tool_deny", call_id=call["call_id"], reason="only looking")
            assert "tool_cancelled" in [line["type"] for line in agent.until("stream_end")]
        else:
            assert call["tool_name"] in OWN_TOOLS
            result = agent.until("tool_result")[-1]
            assert not result["output"].lower().startswith(("missing required", "parameter `")), result
            agent.until("stream_end")
        assert agent.end() == 0


def test_a_stop_ends_what_it_writes_and_the_next_message_is_answered(tmp_path: Path) -> None:
    configured()
    with local(tmp_path, "--no-session", "--max-tokens", "2000") as agent:
        agent.until("ready")
        agent.message("Write a very long story about a lighthouse.")
        agent.until("text_delta")
        agent.send(type="stop")
        # Far fewer words than it may write.
        assert len(agent.until("stream_end")) < 500
        agent.message("Say hello.", "m2")
        agent.until("text_delta")
        agent.send(type="stop")
        assert agent.until("stream_end")[-1]["msg_id"] == "m2"
        assert agent.end() == 0


@pytest.fixture(scope="module")
def engine() -> Iterator[Served]:
    with llama_server() as served:
        yield served


@pytest.mark.parametrize(("provider", "variable"), [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")])
def test_a_real_server_of_each_format_answers(tmp_path: Path, engine: Served, provider: str, variable: str) -> None:
    flags = ("--no-session", "--provider", provider, "--base-url", engine.url, "--model", "any", "--max-tokens", "16")
    with AgentProcess(*flags, cwd=tmp_path, env={**os.environ, variable: engine.key}) as agent:
        agent.until("ready")
        agent.message("Say hello.")
        lines = agent.until("stream_end")
        assert [line for line in lines if line["type"] == "error"] == []
        assert text_of(lines).strip()
        assert lines[-1]["usage"]["output_tokens"] > 0
        assert agent.end() == 0


@pytest.mark.parametrize(("provider", "variable"), [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")])
def test_a_real_server_refuses_a_wrong_key_and_that_is_told_once(
    tmp_path: Path, engine: Served, provider: str, variable: str
) -> None:
    flags = ("--no-session", "--provider", provider, "--base-url", engine.url, "--model", "any")
    with AgentProcess(*flags, cwd=tmp_path, env={**os.environ, variable: "wrong-key-entirely"}) as agent:
        agent.until("ready")
        agent.message("Say hello.")
        (error,) = [line["error"] for line in agent.until("stream_end") if line["type"] == "error"]
        assert (error["code"], error["retryable"]) == ("provider_error", False)
        assert variable in error["message"]
        assert "wrong-key-entirely" not in error["message"]
        agent.end()
