"""A cluster under load on all its wires while its nodes are killed, stopped, cut off, ended and drained, and its NATS
servers are killed and stopped; and what its history says of that.

    python -m tests.chaos.cluster.run --sessions 300 --seconds 600          or: make faults

Ends with 1 if a promise broke. `--broken fencing|leases|retries` runs nodes in which something is missing, which must
be found.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.cluster import faults
from tests.chaos.cluster.agent import DONE
from tests.chaos.cluster.broken import BREAKAGES
from tests.chaos.cluster.history import History, broken_promises, read_done, read_stream
from tests.chaos.cluster.load import WIRES, Load
from tests.support.cluster_process import NODES, NodeProcess, cluster
from tests.support.ports import free_port
from trunkline.store.jetstream.stream import SessionStream

AGENTS = '[agents.worker]\nagent = "tests.chaos.cluster.agent:worker"\nworkspace = "."\n'
GAMES = '\n[wires.tryll]\nlisten = "127.0.0.1:{port}"\n'

#: Of each kind of broken promise.
MOST_SHOWN = 10
#: How long turns may take to end after the load, on a busy machine.
REST_SECONDS = 90
#: How long before the end of the load nothing more is done: longer than an end may take.
QUIET_SECONDS = 20

#: How long a talker thinks before it says something: like a person with an agent, or with hardly a pause. 300 of the
#: second kind ask for more than two cores can do, and ends come late whatever a cluster does.
PERSON, BUSY = 30.0, 0.25

#: What shows that something is missing. Without leases, nothing has to happen.
SHOWN_BY: Mapping[str, tuple[faults.Fault, ...]] = {
    "": faults.FAULTS,
    "fencing": faults.OVERTAKEN,
    "leases": (),
    "retries": (faults.kill_node, faults.stop_node),
}


@dataclass
class Outcome:
    """What came of a run."""

    broken: list[str]
    """The promises that broke, in words."""
    history: History
    faults: list[str]


async def run(
    directory: Path, sessions: int, seconds: float, pause: float, seed: int, broken: str = "", think: float = BUSY
) -> Outcome:
    """Have it happen. Prints what was measured."""
    done = directory / "done"
    os.environ[DONE] = str(done)
    games = {node: free_port() for node in NODES}

    def prepare(node: NodeProcess) -> None:
        with (node.directory / "trunkline.toml").open("a", encoding="utf-8") as file:
            file.write(GAMES.format(port=games[node.name]))

    with cluster(directory, AGENTS, broken=broken, cuttable=True, prepare=prepare) as nodes:
        load = Load(nodes, nodes.servers, games, random.Random(seed), think)
        began = time.monotonic()
        trouble = asyncio.create_task(faults.trouble(load, SHOWN_BY[broken], seconds - QUIET_SECONDS, pause))
        await load.run(sessions, seconds)
        told = await trouble
        history = load.history
        async with SessionStream.opened([server.url for server in nodes.servers]) as stream:
            history.messages = await read_stream(stream, history.clients)
            async with load.approving():
                rested = time.monotonic() + REST_SECONDS
                while not broken and time.monotonic() < rested and _is_unfinished(history):
                    await asyncio.sleep(1)
                    history.messages = await read_stream(stream, history.clients)
        history.is_quiet = not told
        history.done = read_done(done)
        events = sum(len(message.events) for message in history.messages)
        print(
            f"{sessions} sessions, {time.monotonic() - began:.0f} s, {events} events in {len(history.messages)} "
            f"messages, {sum(len(view.answered) for view in history.clients.values())} approvals; "
            f"{len(told)} faults: {', '.join(told)}"
        )
        print(*_by_wire(history), sep="\n")
        for each in load.troubles[:10]:
            print("trouble:", each)
        return Outcome(broken_promises(history), history, told)


def _is_unfinished(history: History) -> bool:
    """Whether there may be turns to come, or their ends. How long they take is noted elsewhere."""
    return any(told.startswith(("no end: turn", "lost message")) for told in broken_promises(history))


def _by_wire(history: History) -> Iterator[str]:
    """What each wire had to do. Over HTTP, connections are the watchers', and not counted."""
    yield f"{'wire':12} {'messages':>8} {'taken in':>8} {'ended':>8} {'interrupted':>11} {'slowest end':>11}"
    for wire in WIRES:
        found = [hearing for hearing in history.hearings if hearing.wire == wire]
        ended = sum(hearing.is_ended for hearing in found)
        interrupted = sum(not heard.ends for hearing in found for heard in hearing.heard)
        slowest = max((hearing.slowest for hearing in found), default=0.0)
        taken = sum(hearing.is_taken for hearing in found)
        yield f"{wire:12} {len(found):8} {taken:8} {ended:8} {interrupted:11} {slowest:9.1f} s"


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--pause", type=float, default=8, help="seconds between faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--think", type=float, default=PERSON, help="seconds between messages of a session, on average")
    parser.add_argument("--broken", choices=sorted(BREAKAGES), default="")
    parser.add_argument("--directory", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trunkline-faults-") as temporary:
        directory = (given.directory or Path(temporary)).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        outcome = asyncio.run(
            run(directory, given.sessions, given.seconds, given.pause, given.seed, given.broken, given.think)
        )
    kinds = Counter(promise.partition(":")[0] for promise in outcome.broken)
    for kind, count in kinds.most_common():
        print(f"BROKEN: {kind}, {count} times, such as:")
        for promise in [each for each in outcome.broken if each.startswith(f"{kind}:")][:MOST_SHOWN]:
            print("   ", promise)
    print("every promise was kept" if not outcome.broken else f"{len(outcome.broken)} promises broke")
    return 1 if outcome.broken else 0


if __name__ == "__main__":
    sys.exit(main())
