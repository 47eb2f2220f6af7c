"""How soon an agent is there, and how much memory it takes while nobody talks to it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bench._measure import Goal, Row, Taken, clean_environment, interleaved, spread, time_row
from bench._peers import ECHO_AGENT, PYTHON, Agent, Peer

HELLO = b'{"type":"message","msg_id":"m1","input":"Hello"}'
NOTHING = "python -c pass"

READY_GOAL = Goal("<=", 6)
FIRST_DELTA_GOAL = Goal("<=", 10)


def start_rows(home: str, rounds: int) -> list[Row]:
    """From the spawn to `ready`, and to the first word."""

    def row(name: str, ours: Callable[[], Taken], goal: Goal, note: str = "") -> Row:
        pairs = interleaved(rounds, ours, lambda: run_nothing(home))
        return time_row(name, pairs, NOTHING, goal=goal, note=note)

    return [
        row(
            "spawn to `ready`",
            lambda: start(home),
            READY_GOAL,
            "the agent is `trunkline agent --json-stream --agent echo` with a new session; the control is timed from"
            " its spawn to its end",
        ),
        row("spawn to first delta, message sent at spawn", lambda: first_delta(home, eager=True), FIRST_DELTA_GOAL),
        row("spawn to first delta, message sent at `ready`", lambda: first_delta(home, eager=False), FIRST_DELTA_GOAL),
    ]


def run_nothing(home: str) -> Taken:
    """An interpreter that does nothing: the floor of every start."""
    started = time.perf_counter()
    process = subprocess.Popen([PYTHON, "-c", "pass"], env=clean_environment(), cwd=home)
    _, status, usage = os.wait4(process.pid, 0)
    taken = Taken(time.perf_counter() - started, usage.ru_utime + usage.ru_stime)
    process.returncode = os.waitstatus_to_exitcode(status)
    return taken


def start(home: str) -> Taken:
    """Until the agent says that it is ready."""
    with Peer(ECHO_AGENT, home) as agent:
        agent.line_of("ready")
        return Taken(time.perf_counter() - agent.started, agent.cpu)


def first_delta(home: str, *, eager: bool) -> Taken:
    """Until the agent says its first word."""
    with Peer(ECHO_AGENT, home) as agent:
        if eager:
            agent.send(HELLO)
        agent.line_of("ready")
        if not eager:
            agent.send(HELLO)
        agent.line_of("text_delta")
        return Taken(time.perf_counter() - agent.started, agent.cpu)


def memory_rows(home: str, rounds: int, events: int) -> list[Row]:
    """What an agent takes that waits, against an interpreter that waits."""
    idle, waiting, busy = [], [], []
    for _ in range(rounds):
        with Peer(ECHO_AGENT, home) as agent:
            agent.line_of("ready")
            idle.append(memory(agent.pid))
        with Agent(home) as agent:
            agent.produce(events)
            busy.append(memory(agent.pid))
        with Peer([PYTHON, "-c", "print(flush=True); input()"], home) as peer:
            peer.line()
            waiting.append(memory(peer.pid))
            peer.send(b"")
    kinds = {"resident": "Rss", "its own (USS)": "Uss", "its own and changed": "Private_Dirty"}
    return [
        Row(
            name=f"memory {when}, {kind}",
            unit="MiB",
            subject=spread([each[field] for each in ours]),
            control_name="python -c 'input()'",
            control=spread([each[field] for each in waiting]),
            ratio=spread([mine[field] / theirs[field] for mine, theirs in zip(ours, waiting, strict=True)]),
        )
        for when, ours in (("idle", idle), (f"after {events:,} events", busy))
        for kind, field in kinds.items()
    ]


def memory(pid: int) -> dict[str, float]:
    """What the kernel says of a process, in MiB. `Uss`: what would be free if it ended."""
    found: dict[str, float] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]:
        name, size = line.split()[:2]
        found[name.rstrip(":")] = int(size) / 1024
    found["Uss"] = found["Private_Clean"] + found["Private_Dirty"]
    return found
