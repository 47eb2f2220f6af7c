"""llama.cpp in this process: what happens around the answers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.local_model import TIMEOUT_SECONDS, model_path
from tests.support.patience import PATIENCE_SECONDS

# On one core the engine's own thread has not begun by the time that the model is there.
LOAD_AND_LET_GO = """
import os, sys
from trunkline.models.llama_server import LlamaServer

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for _ in range(3):
    LlamaServer(sys.argv[1], 256, threads=1)
"""


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(TIMEOUT_SECONDS)
def test_a_model_can_be_let_go_as_soon_as_it_is_loaded() -> None:
    command = [sys.executable, "-c", LOAD_AND_LET_GO, model_path()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
