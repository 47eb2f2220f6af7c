"""The programs that the kits have to pass, in moments too short to be met by chance."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.base.processes import is_alive, until

HOUSE = Path(__file__).parents[2]
# A signal that comes while a process is being started, and the number of that process.
BEFORE = """
import os, signal, subprocess, sys, time

class Popen(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        print(self.pid, flush=True)
        signal.raise_signal(signal.SIGTERM)

subprocess.Popen = Popen
"""
AGENT = """
from tests.conform.good_agent import Call, GoodAgent
agent = GoodAgent([])
agent.handle_signals()
call = agent.calls["c1"] = Call("c1", "Bash", "exec", {"command": "exec sleep 300"}, "")
call.state = "approved"
agent.advance(call)
"""
BRIDGE = """
from tests.conform.agentproc.good_bridge import DEFAULTS, GoodBridge
class Bridge(GoodBridge):
    load = lambda self: {}
    check = lambda self: None
    argv = lambda self: ["sleep", "300"]
    env = lambda self: None
    cwd = lambda self: None
    stdin = lambda self: subprocess.DEVNULL
Bridge([""] * 7).main()
"""


@pytest.mark.process
@pytest.mark.parametrize("program", [AGENT, BRIDGE], ids=["agent", "bridge"])
def test_a_process_that_is_being_started_when_a_signal_comes_is_not_left(program: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BEFORE + program], cwd=HOUSE, stdout=subprocess.PIPE, timeout=50, check=False
    )
    assert ended.returncode == 143
    started = int(ended.stdout.split()[-1])
    until(lambda: not is_alive(started))
