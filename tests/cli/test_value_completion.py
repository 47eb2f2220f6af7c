"""What a shell offers of the exchange that runs here, of its file, and of the models that there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from tests.support.exchange_api import Asked, answering
from trunkline.cli import local_exchange
from trunkline.cli.app import app
from trunkline.core.faults import ConfigError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    return tmp_path / "exchange"


def offered(line: str) -> list[str]:
    """What is offered for the last word of a line."""
    *words, last = line.split(" ")
    return [item.value for item in ShellComplete(app, {}, "trunkline", "_X").get_completions(words, last)]


def serve(asked: Asked) -> tuple[int, Any]:
    waiting = {"id": "aaa1", "agent": "helper", "tool": "Bash"}
    return 200, {
        "/api/sessions?limit=100": {"sessions": [{"id": "0199-a"}, {"id": "0199-b"}, {"id": "x\x1b[2J"}]},
        "/api/approvals?state=pending": {"approvals": [waiting, {**waiting, "id": "bbb1"}]},
        "/api/agents": {"agents": [{"name": "helper"}, {"name": "echo"}]},
    }[asked.path]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("sessions fork 0", ["0199-a", "0199-b"]),
        ("sessions handover 0199-b", ["0199-b"]),
        ("sessions handover 0199-b --to h", ["helper"]),
        ("explain ", ["0199-a", "0199-b"]),
        ("record 0", ["0199-a", "0199-b"]),
        ("approvals show ", ["aaa1", "bbb1"]),
        ("approvals approve a", ["aaa1"]),
        ("approvals deny b", ["bbb1"]),
        ("chat --attach h", ["helper"]),
        ("chat helper --attach --resume 0", ["0199-a", "0199-b"]),
        ("agentproc serve --attach h", ["helper"]),
    ],
)
def test_what_the_exchange_has_is_offered(home: Path, line: str, found: list[str]) -> None:
    with answering(home, serve):
        assert offered(line) == found


def test_what_waits_is_offered_with_what_it_is_for(home: Path) -> None:
    with answering(home, serve):
        found = ShellComplete(app, {}, "trunkline", "_X").get_completions(["approvals", "approve"], "a")
    assert [item.help for item in found] == ["helper: Bash"]


def test_agents_of_the_file_are_offered_where_no_exchange_runs(tmp_path: Path) -> None:
    assert offered("sessions handover x --to ") == []
    file = tmp_path / "trunkline.toml"
    file.write_text("[agents.helper]\nagent = 'echo'\n[agents.other]\nagent = 'echo'\n")
    assert offered("sessions handover x --to h") == ["helper"]
    file.write_text("[agents")
    assert offered("chat --attach ") == []


def test_nobody_waits_long_for_an_exchange_that_hangs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def request(method: str, path: str, *, seconds: float) -> Any:
        asked.append(seconds)
        raise ConfigError("It hangs.")

    monkeypatch.setattr(local_exchange, "request", request)
    assert offered("chat --attach ") == []
    assert asked == [2.0]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("tryll serve --agent ech", "echo"),
        ("tryll serve --agent echo --agent graph:n", "graph:npc"),
        ("tryll chat --model smol", "smollm2-135m"),
        ("tryll talk --model mo", "mock"),
        ("tryll talk --stt whis", "whisper-base"),
        ("tryll talk --tts esp", "espeak"),
        ("graph run npc --model smol", "smollm2-135m"),
        ("chat --provider local --model smol", "smollm2-135m"),
        ("chat --provider anthropic --model claude-", "claude-sonnet-4-5"),
    ],
)
def test_agents_and_models_are_offered(line: str, name: str) -> None:
    assert name in offered(line)


@pytest.mark.parametrize("line", ["up --config x", "doctor --config x", "replay x", "record s -o x", "init x"])
def test_files_are_offered_for_files(line: str) -> None:
    *words, last = line.split(" ")
    (item,) = ShellComplete(app, {}, "trunkline", "_X").get_completions(words, last)
    assert item.type == "file"
