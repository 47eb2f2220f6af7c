"""What a cluster costs, against one exchange alone in the same run.

    python bench/cluster.py [--quick | --long] [--json]

Three exchanges, three NATS servers and a PostgreSQL, each a process of its own; the control is one exchange on SQLite.
The agent is the scripted one, which says words as fast as they are taken. Rates are told by the clock and by the
processors: three nodes on two cores cannot be three times as fast, so the goal is the processor time of an event.
Exit codes: 0 when every goal is met by the median, 1 when one is missed, 2 for wrong usage. Needs Linux. See
bench/README.md.
"""

from __future__ import annotations

import asyncio
import json
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx
from bench._command import Progress, run
from bench._measure import Goal, Row, Taken, cpu_seconds, interleaved, rate_row, spread

from tests.support.cluster_process import TOKEN, NodeProcess, cluster
from tests.support.ports import free_port

CPU_GOAL = Goal(">=", 0.4, "CPU")
#: Words of one turn.
WORDS = 200
SCRIPT = f"turns:\n  - steps:\n      - text: {json.dumps([f'word{number} ' for number in range(WORDS)])}\n"
SLOW = 'turns:\n  - steps:\n      - text: "I begin."\n      - wait: 600\n      - text: "I end."\n'
AGENTS = """[agents.fast]
agent = "scripted:fast.yaml"
[agents.slow]
agent = "scripted:slow.yaml"
"""
ALONE = """[exchange]
listen = "127.0.0.1:{port}"
home = "home/exchange"
[people.demo]
token_env = "DEMO_TOKEN"
role = "admin"
"""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    sessions: int
    rounds: int
    messages: int
    takeovers: int
    judged: bool = True


SIZES = {
    "normal": Sizes(60, 5, 300, 3),
    "quick": Sizes(30, 3, 100, 1),
    "long": Sizes(100, 11, 1000, 7),
    "tiny": Sizes(2, 1, 3, 1, judged=False),
}


class Clients:
    """HTTP clients of some nodes."""

    def __init__(self, nodes: Sequence[NodeProcess]) -> None:
        self.nodes = nodes
        self._count = 0

    def rate(self, sessions: int) -> Taken:
        """One turn in each of so many new sessions at once, read by a client of the session's node."""
        self._count += 1
        before = self._cpu()
        began = time.perf_counter()
        asyncio.run(self._turns(sessions, f"r{self._count}"))
        return Taken(time.perf_counter() - began, self._cpu() - before)

    def _cpu(self) -> float:
        return sum(cpu_seconds(node.process.pid) for node in self.nodes if node.process is not None)

    async def _turns(self, sessions: int, name: str) -> None:
        async with client() as http:
            await asyncio.gather(*(self._turn(http, f"{name}-{number}", number) for number in range(sessions)))

    async def _turn(self, http: httpx.AsyncClient, session: str, number: int) -> None:
        node = self.nodes[number % len(self.nodes)].url
        (await http.post(f"{node}/api/sessions", json={"agent": "fast", "session_id": session})).raise_for_status()
        await said(http, node, session, "go", node)


def client() -> httpx.AsyncClient:
    """One that asks for nothing but what it is told to."""
    limits = httpx.Limits(max_connections=None)
    return httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60, limits=limits, trust_env=False)


async def said(http: httpx.AsyncClient, node: str, session: str, text: str, watched: str) -> tuple[float, float]:
    """Have a message answered: when its first word came, and its end, in seconds after it was sent."""
    async with http.stream("GET", f"{watched}/api/sessions/{session}/events") as events:
        lines = events.aiter_lines()
        async for line in lines:
            if line.startswith(": watching"):
                break
        began = time.perf_counter()
        (await http.post(f"{node}/api/sessions/{session}/messages", json={"text": text})).raise_for_status()
        first = 0.0
        async for line in lines:
            if line == "event: text_delta" and not first:
                first = time.perf_counter() - began
            elif line == "event: turn_ended":
                return first, time.perf_counter() - began
    raise AssertionError("the stream ended before the turn")


async def latency(sessions: Sequence[str], there: NodeProcess, here: NodeProcess, messages: int) -> list[float]:
    """The time until a message's first word, in milliseconds, by a client of `here`; the sessions are on `there`."""
    found = []
    async with client() as http:
        for number in range(messages):
            session = sessions[number % len(sessions)]
            first, _ = await said(http, here.url, session, "go", here.url)
            found.append(first * 1e3)
    return found


async def opened(node: NodeProcess, names: Sequence[str], agent: str = "fast") -> None:
    """New sessions on a node."""
    async with client() as http:
        for name in names:
            answer = await http.post(f"{node.url}/api/sessions", json={"agent": agent, "session_id": name})
            answer.raise_for_status()


async def takeover(killed: NodeProcess, other: NodeProcess, session: str) -> float:
    """From `kill -9` of a session's owner in the middle of a turn to the end that a client of another node sees."""
    await opened(killed, [session], "slow")
    async with client() as http, http.stream("GET", f"{other.url}/api/sessions/{session}/events") as events:
        lines = events.aiter_lines()
        async for line in lines:
            if line.startswith(": watching"):
                break
        (await http.post(f"{other.url}/api/sessions/{session}/messages", json={"text": "go"})).raise_for_status()
        async for line in lines:
            if line == "event: text_delta":
                break
        began = time.perf_counter()
        await asyncio.to_thread(killed.stop, signal.SIGKILL)
        async for line in lines:
            if line == "event: turn_ended":
                return time.perf_counter() - began
    raise AssertionError("the stream ended before the turn")


@contextmanager
def alone(directory: Path) -> Iterator[NodeProcess]:
    """One exchange, as ever."""
    port = free_port()
    node = NodeProcess(directory, "alone", port, ALONE.format(port=port) + AGENTS)
    scripts(node)
    node.start()
    try:
        node.wait()
        yield node
    finally:
        node.stop()


def scripts(node: NodeProcess) -> None:
    """What the agents say."""
    (node.directory / "fast.yaml").write_text(SCRIPT, encoding="utf-8")
    (node.directory / "slow.yaml").write_text(SLOW, encoding="utf-8")


def measure(sizes: Sizes, progress: Progress) -> list[Row]:
    """All figures."""
    rows: list[Row] = []
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-bench-")))
        progress("one exchange, and a cluster of three: starting them")
        single = stack.enter_context(alone(directory))
        nodes = list(stack.enter_context(cluster(directory, AGENTS, prepare=scripts)).values())
        control = Clients([single])
        events = sizes.sessions * (WORDS + 2)
        for count in (1, 2, 3):
            progress(f"events through {count} of the nodes")
            subject = Clients(nodes[:count])
            pairs = interleaved(
                sizes.rounds, partial(subject.rate, sizes.sessions), partial(control.rate, sizes.sessions)
            )
            goal = CPU_GOAL if count == 3 else None
            rows.append(rate_row(f"events, {count} of 3 nodes", events, pairs, "one exchange, SQLite", goal=goal))
        progress("a client of another node")
        names = [f"l{number}" for number in range(10)]
        asyncio.run(opened(nodes[0], names))
        own = asyncio.run(latency(names, nodes[0], nodes[0], sizes.messages))
        foreign = asyncio.run(latency(names, nodes[0], nodes[1], sizes.messages))
        rows += [
            _latency_row("first word, p50", foreign, own, 50),
            _latency_row("first word, p99", foreign, own, 99),
        ]
        progress("taking over from a node that was killed")
        times = []
        for number in range(sizes.takeovers):
            times.append(asyncio.run(takeover(nodes[2], nodes[0], f"t{number}")))
            nodes[2].start()
            nodes[2].wait()
        lease = spread([9.0])
        rows.append(
            Row("kill -9 of the owner, to the turn's end", "s", spread(times), "the lease", lease,
                spread([seconds / 9.0 for seconds in times]), goal=Goal("<=", 15 / 9))
        )  # fmt: skip
    return rows


def _latency_row(name: str, foreign: Sequence[float], own: Sequence[float], part: int) -> Row:
    ours, theirs = (_percentile(values, part) for values in (foreign, own))
    ratio = spread([ours / theirs])
    return Row(name, "ms", spread([ours]), "a client of the owner", spread([theirs]), ratio)


def _percentile(values: Sequence[float], part: int) -> float:
    return values[0] if len(values) < 2 else statistics.quantiles(values, n=100, method="inclusive")[part - 1]


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    return run((__doc__ or "").splitlines()[0], SIZES, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
