"""One server loads several engines, in whatever order its clients name them: they must live in one process."""

from __future__ import annotations

import subprocess
import sys
from itertools import permutations

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.process]

ENGINES = ("usearch.index", "onnxruntime", "xllamacpp")


@pytest.mark.parametrize("order", list(permutations(ENGINES)), ids="-".join)
def test_engines_can_be_loaded_in_any_order(order: tuple[str, ...]) -> None:
    # Each brings a C++ library of its own. A clash of two of them is a crash, not an error.
    loaded = subprocess.run([sys.executable, "-c", f"import {', '.join(order)}"], capture_output=True, check=False)
    assert loaded.returncode == 0, loaded.stderr.decode()[-2000:]
