"""The wire vectors of the game clients: each client's own program reads, refuses and writes them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from struct import pack
from typing import Any, cast

import pytest

import client_vectors
from client_vectors import FOLDER
from trunkline.wires.tryll.codec import decode, json_form
from trunkline.wires.tryll.messages import BODIES, NODE_PARAMS

LANGUAGES = sorted(path.stem.removeprefix("vectors_") for path in Path(__file__).parent.glob("vectors_*.py"))
#: A program that hangs is a failure, on whatever machine.
PATIENCE_SECONDS = 120


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def same(told: Any, wanted: Any) -> bool:
    """Whether two values are one, by the rules of clients/vectors/README.md."""
    if isinstance(wanted, dict):
        return (
            isinstance(told, dict) and set(told) == set(wanted) and all(same(told[key], wanted[key]) for key in wanted)
        )
    if isinstance(wanted, list):
        return isinstance(told, list) and len(told) == len(wanted) and all(map(same, told, wanted))
    if isinstance(wanted, float):
        return isinstance(told, int | float) and not isinstance(told, bool) and pack("<f", told) == pack("<f", wanted)
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        digits = told if isinstance(told, str) else None
        return digits == str(wanted) or (type(told) in (int, float) and told == wanted)
    return type(told) is type(wanted) and bool(told == wanted)


def test_nothing_is_stale() -> None:
    """`python scripts/client_vectors.py` writes what is."""
    assert [path.name for path in client_vectors.stale()] == []


def test_they_have_every_message_and_every_node() -> None:
    told = lines("transcript.jsonl")
    assert {line["message"]["type"] for line in told} == {kind.__name__ for kind in BODIES}
    nodes = {(line["message"].get("params") or {}).get("type") for line in told}
    assert {kind.__name__ for kind in NODE_PARAMS} <= nodes


def test_two_values_are_told_apart() -> None:
    assert same(0.150000006, 0.15)
    assert same("18446744073709551615", 2**64 - 1)
    for told, wanted in (
        (1, True),
        (True, 1),
        (0, None),
        ("", None),
        ([], None),
        (0.1500001, 0.15),
        (18446744073709551616.0, 2**64 - 1),
    ):
        assert not same(told, wanted)


Run = Callable[..., list[str]]


@pytest.fixture(scope="module", params=LANGUAGES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Lets the program of a language answer lines."""
    build = import_module(f"tests.clients.vectors_{request.param}").build
    command = cast(list[str], build(tmp_path_factory.mktemp(request.param)))

    def answers(payloads: list[str], *arguments: str) -> list[str]:
        given = "".join(f"{payload}\n" for payload in payloads)
        done = subprocess.run(
            [*command, *arguments], input=given, capture_output=True, encoding="utf-8", timeout=PATIENCE_SECONDS
        )
        assert done.returncode == 0, done.stderr
        said = done.stdout.splitlines()
        assert len(said) == len(payloads)
        return said

    return answers


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_client_reads_every_message_as_it_is(run: Run) -> None:
    told = lines("transcript.jsonl")
    for said, line in zip(run([line["frame"] for line in told]), told, strict=True):
        assert same(json.loads(said), line["message"]), (said, line["message"])


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_client_writes_every_message_so_that_it_is_read_again(run: Run) -> None:
    told = lines("transcript.jsonl")
    for said, line in zip(run([line["frame"] for line in told], "--encode"), told, strict=True):
        assert same(json_form.full(decode(bytes.fromhex(said))), line["message"]), (said, line["message"])


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_client_refuses_what_is_no_message(run: Run) -> None:
    wrong = lines("refused.jsonl")
    for said, line in zip(run([line["frame"] for line in wrong]), wrong, strict=True):
        assert json.loads(said).get("error") is not None, (said, line["why"])
