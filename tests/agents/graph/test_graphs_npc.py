"""The bundled character: she stays who she is, whatever the model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.models.test_embedding_onnx import onnx_path
from tests.support.invoked import invoke
from tests.support.local_model import SHARED_CACHE, TIMEOUT_SECONDS, model_path
from trunkline.cli.graph_run import command
from trunkline.cli.graph_test import command as holding_tests


def turn(message: str, *options: str) -> dict[str, Any]:
    result = invoke(command, "npc", "--json", "-m", message, *options)
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    ("message", "last", "answer"),
    [
        ("Who are you?", "herself", "I am Berta. I keep the gate of Millbrook."),
        ("Hello!", "greet", "Good day, traveller. I am Berta. What brings you to Millbrook?"),
        ("quantum chromodynamics", "unsure", "That I do not know, traveller. I only keep the gate."),
        ("Who is the mayor of Millbrook?", "answer", "You said: Who is the mayor of Millbrook?"),
    ],
)
def test_her_own_lines_need_no_model_and_facts_do(message: str, last: str, answer: str) -> None:
    said = turn(message)
    assert (said["nodes"][-1]["name"], said["answer"]) == (last, answer)


# Each in a test of its own: each loads its models, and on a busy machine all together may need more than one's time.
@pytest.mark.long
@pytest.mark.timeout(TIMEOUT_SECONDS)
@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("What is your name?", "Berta"),
        ("Hello there", "Berta"),
        ("Who is the mayor of Millbrook?", "Anselm"),
        ("Is the bridge open?", "closed"),
        ("What is the capital of France?", "I only keep the gate"),
        ("Open the gate.", "As you wish"),
    ],
)
def test_with_real_models_she_is_berta_and_tells_what_she_knows(
    message: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_path()
    onnx_path()
    monkeypatch.setenv("TRUNKLINE_CACHE", SHARED_CACHE)
    assert words in turn(message, "--engine", "local")["answer"]


@pytest.mark.long
@pytest.mark.timeout(TIMEOUT_SECONDS)
@pytest.mark.parametrize("arguments", [("npc",), ("smith", "--model", "smollm2-135m")], ids=lambda given: given[0])
def test_with_real_models_the_graphs_that_come_along_pass_their_tests(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    model_path()
    onnx_path()
    monkeypatch.setenv("TRUNKLINE_CACHE", SHARED_CACHE)
    result = invoke(holding_tests, *arguments)
    assert result.exit_code == 0, result.stdout
    assert result.stdout.count("passed   ") >= 3
