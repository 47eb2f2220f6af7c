"""The extra `up` has all that `trunkline up` runs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def brought(extra: str) -> set[str]:
    """The packages of an extra, and of those that it names."""
    declared = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    found: set[str] = set()
    for each in declared[extra]:
        ours = re.fullmatch(r"trunkline\[(.+)\]", each)
        found |= set().union(*(brought(name) for name in ours[1].split(","))) if ours else {each}
    return found


@pytest.mark.parametrize("part", ["network", "runner", "exchange", "chain", "local", "graph", "embeddings", "voice"])
def test_each_part_that_it_runs_is_in_it(part: str) -> None:
    assert brought(part) <= brought("up")
