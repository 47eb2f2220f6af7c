"""The figures of the AgentProc bridge, each against a control in the same run.

    python bench/agentproc.py [--quick | --long] [--json]

The peer is `agentproc` 0.4.2 from a package index, in an environment of its own that is made once. Exit codes: 0 when
every goal is met by the median, 1 when one is missed, 2 for wrong usage. Needs Linux. See bench/README.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

# Run as a script, Python looks for modules beside it, and not where `bench` and the scripts are.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(1, str(Path(__file__).resolve().parent.parent / "scripts"))

from bench._command import Progress, run
from bench._measure import Goal, Row, Taken, clean_environment, interleaved, spread, time_row
from bench._peers import TRUNKLINE
from bench._start import memory

import environments
from trunkline.wires.agentproc import drive
from trunkline.wires.agentproc.messages import TurnRequest
from trunkline.wires.agentproc.profile import Profile

READER = Path(__file__).resolve().with_name("_agentproc_peer.py")

TURN_GOAL = Goal("<=", 1.1)
COMMAND_GOAL = Goal("<=", 0.6)
TOGETHER_GOAL = Goal(">=", 0.9)
LINES_GOAL = Goal("<=", 1.0)
FLAT_GOAL = Goal("<=", 1.1)

#: Turns in one measurement: one alone is shorter than the machine's noise.
WINDOW = 10
#: Turns at once.
TOGETHER = 64

ECHO = '#!/bin/sh\necho "You said: $AGENT_MESSAGE"\n'
TALKER = "#!/bin/sh\nexec yes 'AGENT_PARTIAL:\"a word or two\"' | head -n {}\n"


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    turns: int
    """Windows of turns."""
    commands: int
    crowds: int
    lines: int
    rounds: int
    memory: int
    judged: bool = True


SIZES = {
    "normal": Sizes(60, 25, 15, 200_000, 7, 5_000),
    "quick": Sizes(25, 9, 7, 200_000, 3, 2_000),
    "long": Sizes(200, 51, 51, 200_000, 15, 20_000),
    "tiny": Sizes(1, 1, 1, 1_000, 1, 20, judged=False),
}


def measure(sizes: Sizes, progress: Progress) -> list[Row]:
    """All rows."""
    peer = environments.environment(environments.AGENTPROC_01)
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as home:
        echo = _script(home, "echo.sh", ECHO)
        talker = _script(home, "talker.sh", TALKER.format(sizes.lines))
        progress("single turns")
        rows = [turn_row(echo, sizes.turns)]
        progress("command lines")
        rows.append(command_row(home, echo, peer, sizes.commands))
        progress(f"{TOGETHER} turns at once")
        rows.append(together_row(echo, sizes.crowds))
        progress(f"{sizes.lines:,} partials")
        rows.append(lines_row(talker, peer, sizes.rounds, sizes.lines))
        progress(f"{sizes.memory:,} turns")
        rows.append(memory_row(echo, sizes.memory))
    return rows


def turn_row(echo: str, rounds: int) -> Row:
    """One turn after the other, in this process."""
    profile = Profile((echo,))
    environ = clean_environment()

    def ours() -> None:
        if drive.run(profile, TurnRequest("hi"), environ=environ).reply != "You said: hi":
            raise AssertionError("the agent did not answer")

    pairs = interleaved(rounds * WINDOW, lambda: _timed(ours), lambda: _timed(lambda: bare(echo, environ)))
    return time_row("a turn", pairs, "Popen.communicate()", goal=TURN_GOAL, note="the agent is a shell script")


def command_row(home: str, echo: str, peer: Path, rounds: int) -> Row:
    """One turn by the command line, from the spawn to the end."""
    profile = Path(home, "profile.yaml")
    profile.write_text(f"command: {echo}\ntimeout_secs: 60\n")
    ours = [TRUNKLINE, "agentproc", "run", "--profile", str(profile), "--message", "hi"]
    theirs = [str(peer / "agentproc"), "--profile", str(profile), "--prompt", "hi"]
    environ = clean_environment(HOME=home)

    def spawned(command: list[str]) -> Taken:
        started = time.perf_counter()
        done = subprocess.run(command, env=environ, cwd=home, capture_output=True, text=True, check=True)
        taken = Taken(time.perf_counter() - started)
        if done.stdout != "You said: hi\n":
            raise AssertionError(f"{command[0]} said {done.stdout!r}")
        return taken

    pairs = interleaved(rounds, lambda: spawned(ours), lambda: spawned(theirs))
    return time_row("a turn by the command line", pairs, "agentproc 0.4.2", goal=COMMAND_GOAL)


def together_row(echo: str, rounds: int) -> Row:
    """Many turns at once, in threads."""
    profile = Profile((echo,))
    environ = clean_environment()
    with ThreadPoolExecutor(TOGETHER) as pool:

        def crowd(turn: Callable[[], object]) -> Taken:
            started = time.perf_counter()
            for done in [pool.submit(turn) for _ in range(TOGETHER * 2)]:
                done.result()
            return Taken(time.perf_counter() - started)

        pairs = interleaved(
            rounds,
            lambda: crowd(lambda: drive.run(profile, TurnRequest("hi"), environ=environ)),
            lambda: crowd(lambda: bare(echo, environ)),
        )
    turns = TOGETHER * 2
    return Row(
        name=f"{TOGETHER} turns at once",
        unit="turns/s",
        subject=spread([turns / ours.wall for ours, _ in pairs]),
        control_name="a thread pool of Popen",
        control=spread([turns / theirs.wall for _, theirs in pairs]),
        ratio=spread([theirs.wall / ours.wall for ours, theirs in pairs]),
        goal=TOGETHER_GOAL,
    )


def lines_row(talker: str, peer: Path, rounds: int, lines: int) -> Row:
    """One agent that says a great many partials."""
    profile = Profile((talker,), max_reply_chars=10**9)

    def ours() -> Taken:
        count = 0

        def hear(_: object) -> None:
            nonlocal count
            count += 1

        started = time.perf_counter()
        drive.run(profile, TurnRequest("hi"), hear=hear)
        taken = Taken(time.perf_counter() - started)
        if count != lines:
            raise AssertionError(f"{count} partials of {lines} came")
        return taken

    # Not from this folder, where `agentproc` is this very file.
    command = [str(peer / "python"), "-P", str(READER), talker, str(lines)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean_environment()
    ) as process:

        def theirs() -> Taken:
            if process.stdin is None or process.stdout is None:
                raise AssertionError("the peer has no pipes")
            process.stdin.write("\n")
            process.stdin.flush()
            return Taken(float(process.stdout.readline()))

        pairs = interleaved(rounds, ours, theirs)
        process.communicate()
    return time_row(f"{lines:,} partials of one turn", pairs, "agentproc 0.4.2, run()", goal=LINES_GOAL)


def memory_row(echo: str, turns: int) -> Row:
    """Whether turns leave something behind."""
    profile = Profile((echo,))
    environ = clean_environment()
    for _ in range(max(10, turns // 50)):
        drive.run(profile, TurnRequest("hi"), environ=environ)
    early = memory(os.getpid())["Rss"]
    for _ in range(turns):
        drive.run(profile, TurnRequest("hi"), environ=environ)
    late = memory(os.getpid())["Rss"]
    return Row(
        name=f"memory after {turns:,} turns, resident",
        unit="MiB",
        subject=spread([late]),
        control_name="after the first of them",
        control=spread([early]),
        ratio=spread([late / early]),
        goal=FLAT_GOAL,
    )


def bare(echo: str, environ: dict[str, str]) -> bytes:
    """The least that a turn can be: the same agent, and nothing around it."""
    process = subprocess.Popen(
        [echo],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environ, "AGENT_MESSAGE": "hi"},
    )
    return process.communicate()[0]


def _timed(work: Callable[[], object]) -> Taken:
    started = time.perf_counter()
    work()
    return Taken(time.perf_counter() - started)


def _script(home: str, name: str, text: str) -> str:
    path = Path(home, name)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def main(arguments: list[str] | None = None) -> int:
    """Measure, tell, judge."""
    return run("The figures of the AgentProc bridge, each against its control.", SIZES, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
