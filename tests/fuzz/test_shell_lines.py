"""What rules allow is what shells run: on lines of every shape, with real shells."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path

import pytest

from tests.conftest import require
from tests.fuzz.shell_lines import SEEDS, ShellLines, ShellYard, judged, wrong_allows, wrong_denials

pytestmark = pytest.mark.process


@pytest.fixture
def yard(tmp_path: Path) -> ShellYard:
    for shell in ("bash", "dash"):
        require(shell, shutil.which(shell) is not None, f"install `{shell}`")
    return ShellYard(tmp_path / "yard")


def test_a_shell_leaves_a_trace_of_what_it_runs(yard: ShellYard) -> None:
    for shell in yard.shells:
        ran, made = yard.run(shell, "good a; fine -x; bad; echo x > f")
        assert (ran, made) == (["good", "fine -x", "bad"], ["f"])


def test_every_line_that_is_known_to_be_a_trick_is_seen_through(yard: ShellYard) -> None:
    assert list(wrong_allows(yard, iter(SEEDS), len(SEEDS))) == []
    assert list(wrong_denials(yard, iter(SEEDS), len(SEEDS))) == []


def test_lines_are_the_same_for_the_same_seed_and_some_are_allowed(yard: ShellYard) -> None:
    lines = list(islice(iter(ShellLines(5)), 300))
    assert lines == list(islice(iter(ShellLines(5)), 300))
    policy = yard.policy(allow=("good:*", "echo:*", "cat:*", "printf:*", "fine -x:*"))
    assert sum(judged(policy, line) == "allow" for line in lines) > 5


def test_no_line_runs_more_than_was_allowed_or_what_was_denied(yard: ShellYard) -> None:
    assert list(wrong_allows(yard, iter(ShellLines(1)), 400)) == []
    assert list(wrong_denials(yard, iter(ShellLines(2)), 150)) == []


@pytest.mark.fuzz
@pytest.mark.long
@pytest.mark.timeout(600)
def test_nor_do_many_lines(yard: ShellYard) -> None:
    assert list(wrong_allows(yard, iter(ShellLines(3)), 10_000)) == []
    assert list(wrong_denials(yard, iter(ShellLines(4)), 4_000)) == []
