"""The figures of the agent social network, each against a control in the same run.

    python bench/network.py [--quick | --long] [--json]

Each server is a process of its own with a database of its own; the requests come from this one. Exit codes: 0 when
every goal is met by the median, 1 when one is missed, 2 for wrong usage. Needs Linux. See bench/README.md.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench._command import Progress, run
from bench._http_load import load, request
from bench._measure import Goal, Row, Taken, interleaved, rate_row, time_row
from bench._network_world import Place, make, recorded
from bench._peers import PYTHON, Peer

from trunkline.store.database.sqlite import MAX_GROUP

SERVER = str(Path(__file__).resolve().with_name("_network_server.py"))

GROUP_GOAL = Goal(">=", 2.0)
PLAIN_GOAL = Goal(">=", 0.5)
CONTEXT_GOAL = Goal("<=", 2.0)

#: Runners that write at the same time.
CONNECTIONS = 32
#: Contexts in one measurement: one alone is shorter than the machine's noise.
WINDOW = 20


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    writes: int
    """Signed writes in one round."""
    rounds: int
    contexts: int
    """Windows of contexts."""
    threads: int
    """Of the large community."""
    judged: bool = True


SIZES = {
    "normal": Sizes(2000, 15, 30, 10_000),
    "quick": Sizes(1000, 7, 10, 10_000),
    "long": Sizes(4000, 41, 100, 10_000),
    "tiny": Sizes(40, 1, 1, 200, judged=False),
}

#: Of the small community.
FEW_THREADS = 100


def measure(sizes: Sizes, progress: Progress) -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as home:
        progress("signed writes")
        rows = write_rows(home, sizes)
        progress(f"contexts, after writing {sizes.threads:,} threads")
        rows.append(context_row(home, sizes))
    return rows


class Server(Peer):
    """A server with its own database."""

    def __init__(self, home: str, kind: str, place: Place, *, group: int = MAX_GROUP, statements: str = "[]") -> None:
        super().__init__([PYTHON, SERVER, kind, place.path, str(group), statements], home)
        self.place = place
        self.sent = 0
        self._port = int(self.line())

    def write(self, count: int) -> Taken:
        """Let the agent write so many comments."""
        path = f"/api/threads/{self.place.thread}/comments"
        requests = [
            request("POST", path, headers, json.dumps(body).encode()) for headers, body in self.place.signed(count)
        ]
        self.sent += count
        return self._load(requests, CONNECTIONS)

    def context(self, place: Place) -> Taken:
        """Read the context of an agent, one time after the other."""
        path = f"/api/agents/context?agentId={place.agent}&commentLimit=50"
        return self._load([request("GET", path, place.read_headers)] * WINDOW, 1)

    def _load(self, requests: list[bytes], connections: int) -> Taken:
        cpu = self.cpu
        wall = asyncio.run(load(self._port, requests, connections))
        return Taken(wall, self.cpu - cpu)


def write_rows(home: str, sizes: Sizes) -> list[Row]:
    """Signed comments: with shared commits, with one commit each, and by a handler that does nothing else."""
    subject, single, plain = (asyncio.run(make(f"{home}/{name}.db", [1]))[0] for name in ("group", "single", "plain"))
    statements = json.dumps(asyncio.run(recorded(plain)))
    with (
        Server(home, "network", subject) as ours,
        Server(home, "network", single, group=1) as alone,
        Server(home, "plain", plain, statements=statements) as bare,
    ):
        before = {server: server.place.comments() for server in (ours, alone, bare)}
        against_single = interleaved(sizes.rounds, _writing(ours, sizes), _writing(alone, sizes))
        against_plain = interleaved(sizes.rounds, _writing(ours, sizes), _writing(bare, sizes))
        for server, count in before.items():
            if server.place.comments() != count + server.sent:
                raise AssertionError("there are not as many comments as were acknowledged")
    note = f"{CONNECTIONS} connections, `synchronous = FULL`"
    plainly = "the control checks the signature, runs the same statements and shares commits likewise"
    count = sizes.writes
    return [
        rate_row("signed writes", count, against_single, "one commit for each", goal=GROUP_GOAL, note=note),
        rate_row("signed writes", count, against_plain, "a plain ASGI handler", goal=PLAIN_GOAL, note=plainly),
    ]


def _writing(server: Server, sizes: Sizes) -> Callable[[], Taken]:
    return lambda: server.write(sizes.writes)


def context_row(home: str, sizes: Sizes) -> Row:
    """What an agent reads before it decides, in a large community and in a small one."""
    small, large = asyncio.run(make(f"{home}/context.db", [FEW_THREADS, sizes.threads]))
    with Server(home, "network", large) as server:
        pairs = interleaved(sizes.contexts, lambda: server.context(large), lambda: server.context(small))
    each = [(_each(ours), _each(theirs)) for ours, theirs in pairs]
    return time_row(f"context of {sizes.threads:,} threads", each, f"of {FEW_THREADS} threads", goal=CONTEXT_GOAL)


def _each(taken: Taken) -> Taken:
    return Taken(taken.wall / WINDOW, taken.cpu and taken.cpu / WINDOW)


def main(arguments: list[str] | None = None) -> int:
    """Measure, tell, judge."""
    return run("The figures of the agent social network, each against its control.", SIZES, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
