"""The benchmark of the Tryll server runs, and every row has the control and the goal that it was given."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.benchmarks import measured
from tests.support.local_model import SHARED_CACHE, TIMEOUT_SECONDS, model_path

CODEC = [
    ("a turn", "CPU >= 40"),
    ("SendMessageRequest", "CPU >= 40"),
    ("AnswerText", "CPU >= 40"),
    ("TurnComplete", "CPU >= 40"),
    ("NodeEvent", None),
]
IDLE = "memory of an idle connection of 500"
PROMISED = [
    *(row for name, goal in CODEC for row in ((f"encode {name}", "generated code", goal),
                                              (f"verify and decode {name}", "generated code", "CPU >= 6"))),
    ("a turn of a graph in a session of the core", "by itself", None),
    ("the wire alone", "asyncio echo", "CPU >= 0.3"),
    *([("the wire alone", "C++ epoll echo", None)] if shutil.which("g++") or shutil.which("c++") else []),
    ("whole turns on Mock", "the wire alone", "CPU >= 0.1"),
    ("turns of 1,000 agents in one session", "of 512 in 16 sessions", None),
    ("whole turns on Mock over a WebSocket", "over TCP", "CPU >= 0.6"),
    ("whole turns on Mock over a WebSocket, in JSON", "over TCP", "CPU >= 0.4"),
    ("making agent 1,000 of a session", "agent 50", None),
    (IDLE, "3 KiB", "wall <= 1"),
    (IDLE, "asyncio echo", None),
    (f"{IDLE}, configured", "asyncio echo", None),
    ("first AnswerText", "xllamacpp", "wall >= 0.95"),
    ("tokens", "xllamacpp", "wall >= 0.95"),
    ("first AnswerText of turn 2, 30 words before it", "turn 1", "wall >= 10"),
]  # fmt: skip


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(TIMEOUT_SECONDS)
def test_every_row_is_measured_against_its_control(tmp_path: Path) -> None:
    model_path()
    measured("tryll", tmp_path, PROMISED, timeout=TIMEOUT_SECONDS, XDG_CACHE_HOME=os.path.dirname(SHARED_CACHE))
