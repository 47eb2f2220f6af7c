"""The figures of the game clients, each against the Python client in the same run.

    python bench/clients.py [--quick | --long] [--json]

Both clients are processes of their own, with as many connections to one server, and take turns. What counts is the
processor time that they take themselves: the wall clock says how long a game waits for its next frame. Exit codes: 0
when the goal is met by the median, 1 when it is missed, 2 for wrong usage. Needs Linux and g++. See bench/README.md.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench._command import Progress, run
from bench._measure import Goal, Row, Taken, interleaved, rate_row
from bench._peers import PYTHON, Peer
from bench._tryll_wire import Server

CONNECTIONS = 16
#: The words of an answer, each a frame, and two frames at its end.
FRAMES = 20
GOAL = Goal(">=", 3.0, by="CPU")

HERE = Path(__file__).resolve().parent
CLIENT = HERE.parent / "clients" / "cpp"


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rounds: int
    turns: int
    """Of each connection, in one measurement."""
    judged: bool = True


SIZES = {
    "normal": Sizes(15, 50),
    "quick": Sizes(5, 30),
    "long": Sizes(41, 50),
    "tiny": Sizes(1, 1, judged=False),
}


class Player(Peer):
    """A client whose connections have so many turns each, when they are told."""

    def __init__(self, command: list[str], home: str, port: int) -> None:
        super().__init__([*command, str(port), str(CONNECTIONS)], home)

    def play(self, turns: int) -> Taken:
        cpu, started = self.cpu, time.perf_counter()
        self.send(str(turns).encode())
        if self.line() != b"done":
            raise AssertionError("the client did not say that it is done")
        return Taken(time.perf_counter() - started, self.cpu - cpu)


def compiled(home: str) -> str | None:
    """The C++ client; None where there is no compiler."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        return None
    program = str(Path(home, "load"))
    sources = [str(HERE / "_clients_load.cpp"), str(CLIENT / "tryll.cpp")]
    subprocess.run([compiler, "-std=c++17", "-O2", "-pthread", "-o", program, *sources], check=True)
    return program


def measure(sizes: Sizes, progress: Progress) -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as home:
        progress("how long a compiler takes, which is not counted")
        program = compiled(home)
        if program is None:
            progress("nothing: there is no C++ compiler")
            return []
        progress(f"turns of {CONNECTIONS} connections")
        with (
            Server("graphs", home) as server,
            Player([program], home, server.port) as ours,
            Player([PYTHON, str(HERE / "_clients_load.py")], home, server.port) as control,
        ):
            pairs = interleaved(sizes.rounds, lambda: ours.play(sizes.turns), lambda: control.play(sizes.turns))
    note = f"{CONNECTIONS} connections, one turn at a time on each, {FRAMES} frames in a turn; ours 60 updates a second"
    turns = CONNECTIONS * sizes.turns
    return [rate_row("turns of the C++ client", turns, pairs, "Python client", goal=GOAL, note=note)]


def main(arguments: list[str] | None = None) -> int:
    """Measure, tell, judge."""
    return run("The figures of the game clients, each against the Python client.", SIZES, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
