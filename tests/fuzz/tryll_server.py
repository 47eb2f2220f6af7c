"""A running Tryll server under attack, and good clients that must not notice.

    python -m tests.fuzz.tryll_server [--seconds S] [--seed X]

A `trunkline tryll serve` process is attacked by another process (`tryll_attackers`), while clients here have turns.
Findings are: a turn whose answer is wrong, or that takes too long; more memory than the limit, or more of it kept after
each attack; a single word on the server's standard error; a session or a turn that is left when all have gone; a crash;
SIGTERM, with turns under way, that takes longer than is promised.

Exit codes: 0 when nothing was found, 1 when something was, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.support.tryll_process import SERVE, STOP_SECONDS, TryllProcess, tryll_process
from tests.support.tryll_served import Peer
from trunkline.wires.tryll import messages as m

EXIT_FOUND = 1

ROOT = Path(__file__).resolve().parent.parent.parent
ATTACKERS = "tests.fuzz.tryll_attackers"

#: Clients that keep having turns.
GOOD = 4
#: The longest that one may take. A turn is a dozen rounds of the event loop, and in each of them two attackers may have
#: a frame read that takes a fifth of a second; on a machine that has other things to do, longer.
TURN_SECONDS = 10.0
#: What half of all turns take at most; a seventh of a second when nobody attacks.
USUAL_SECONDS = 2.0
#: What a server may have beyond what it began with, while it is attacked and when that is over. One frame may cost
#: 64 MiB, and memory that was used once is not all given back.
ATTACKED_BYTES = 160 * 1024 * 1024
SETTLED_BYTES = 64 * 1024 * 1024
#: Who keeps more than that is attacked again as often as this. What is kept is the most that the heap ever had at once,
#: and it is chance which frames meet; but the same attack finds room in it, and a leak grows each time.
AGAIN = 2
#: A leak grows by more than this again, and by more than this share of what was kept first.
AGAIN_BYTES = 8 * 1024 * 1024
AGAIN_SHARE = 4
#: How long it may take until all that attackers left behind is gone.
SETTLE_SECONDS = 10.0
#: How long the attackers may take to go: some of them wait for an answer.
FAREWELL_SECONDS = 20.0
#: What the end of a process may take after the end of its connections.
CRASH_SECONDS = 0.5
#: Turns under way when the server is told to end.
LAST_TURNS = 8
#: Nothing may be fetched: the port is the one that discards, and nobody listens there.
NOWHERE = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_CONFIG_FILE": "/dev/null"}


class Finding(Exception):
    """The server broke a promise."""


class Watch:
    """What was seen so far."""

    def __init__(self, server: TryllProcess) -> None:
        self.server = server
        self.turns: list[float] = []
        self.begun_with = self.most = server.rss()

    def look(self) -> None:
        """Look at the process itself.

        Raises:
            Finding: it is gone, has said something, or has grown too much.
        """
        if (code := self.server.child.poll()) is not None:
            raise Finding(f"the server ended by itself, with {code}: {''.join(self.server.said)}")
        if self.server.said:
            raise Finding(f"the server complains: {''.join(self.server.said)}")
        self.most = max(self.most, self.server.rss())
        if self.most - self.begun_with > ATTACKED_BYTES:
            raise Finding(f"the server grew from {self.begun_with >> 20} to {self.most >> 20} MiB")


async def good(watch: Watch, number: int, until: float) -> None:
    """A client that keeps having turns, now and then on a new connection.

    Raises:
        Finding: one of them was not as it should be.
    """
    count = 0
    while time.monotonic() < until:
        async with watch.server.peer() as peer:
            agents = [await peer.agent("any"), await peer.agent("mock-slow")]
            for _ in range(10):
                count += 1
                await turn(watch, peer, agents[count % 2], f"good {number} says {count} things")
                if time.monotonic() >= until:
                    break


async def turn(watch: Watch, peer: Peer, agent: int, text: str) -> None:
    """One turn, of which every rule holds."""
    begun = time.monotonic()
    peer.say(m.SendMessageRequest(7, agent, text))
    answers, complete = await peer.turn()
    taken = time.monotonic() - begun
    watch.turns.append(taken)
    if "".join(answer.text for answer in answers) != f"You said: {text}" or complete.status != m.TurnStatus.SUCCESS:
        raise Finding(f"a wrong answer: {answers} {complete}")
    if taken > TURN_SECONDS:
        raise Finding(f"a turn took {taken:.1f} s")


async def besieged(watch: Watch, seconds: float, seed: int) -> str:
    """Attack, and see how the good ones fare. Gives what the attackers say they did.

    Raises:
        Finding: they fared badly.
    """
    command = [sys.executable, "-m", ATTACKERS, str(watch.server.port), "--seconds", str(seconds), "--seed", str(seed)]
    attackers = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    until = time.monotonic() + seconds
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(GOOD):
                group.create_task(good(watch, number, until))
            while time.monotonic() < until:
                watch.look()
                await asyncio.sleep(0.05)
        async with asyncio.timeout(FAREWELL_SECONDS):
            said, _ = await attackers.communicate()
        if attackers.returncode:
            raise Finding(f"a promise to attackers was broken: {said.decode()}")
        return said.decode().strip()
    finally:
        if attackers.returncode is None:
            attackers.kill()
            await attackers.wait()


async def settled(watch: Watch) -> int:
    """Nothing is left of those who have gone. Gives the bytes that the server has beyond what it began with.

    Raises:
        Finding: something is.
    """
    async with watch.server.peer() as peer:
        until = time.monotonic() + SETTLE_SECONDS
        while True:
            health = await peer.ask(m.HealthRequest(1), m.HealthResponse)
            if (health.sessions, health.agents, health.turns_running) == (1, 0, 0):
                break
            if time.monotonic() > until:
                raise Finding(f"{SETTLE_SECONDS:g} s after the last has gone: {health}")
            await asyncio.sleep(0.05)
    watch.look()
    return watch.server.rss() - watch.begun_with


async def attacked_again(watch: Watch, seconds: float, seed: int, kept: int) -> None:
    """See that a server that has kept so many bytes does not keep as many again each time.

    Raises:
        Finding: it does.
    """
    sizes = [kept]
    while len(sizes) <= AGAIN:
        await besieged(watch, seconds, seed)
        sizes.append(await settled(watch))
        if sizes[-1] - sizes[-2] <= max(kept // AGAIN_SHARE, AGAIN_BYTES):
            return
    told = ", then ".join(str(size >> 20) for size in sizes)
    raise Finding(f"the server keeps more MiB of nothing after each attack: {told}")


async def ended(watch: Watch) -> float:
    """SIGTERM with turns under way; gives the seconds that it takes.

    Raises:
        Finding: that it took too long, or was rude.
    """
    async with watch.server.peer() as peer:
        agents = [await peer.agent("mock-slow") for _ in range(LAST_TURNS)]
        peer.say(*(m.SendMessageRequest(number, agent, "word " * 2000) for number, agent in enumerate(agents, 1)))
        await peer.hear()
        stopping = asyncio.create_task(asyncio.to_thread(watch.server.stop))
        completed = set()
        while (heard := await peer.hear()) is not None:
            if isinstance(heard, m.TurnComplete):
                completed.add(heard.request_id)
        code, seconds = await stopping
    if completed != set(range(1, LAST_TURNS + 1)):
        raise Finding(f"only the turns {completed} of {LAST_TURNS} were brought to an end")
    if code != 143 or seconds > STOP_SECONDS or watch.server.said:
        raise Finding(f"SIGTERM ended it after {seconds:.1f} s with {code}: {''.join(watch.server.said)}")
    return seconds


async def run(watch: Watch, seconds: float, seed: int) -> None:
    """All of it."""
    # What is loaded with the first turn is no growth.
    async with watch.server.peer() as peer:
        await turn(watch, peer, await peer.agent(), "warm")
    watch.begun_with = watch.server.rss()
    watch.turns.clear()
    did = await besieged(watch, seconds, seed)
    if (kept := await settled(watch)) > SETTLED_BYTES:
        await attacked_again(watch, seconds, seed, kept)
    usual = statistics.median(watch.turns)
    if usual > USUAL_SECONDS:
        raise Finding(f"half of all turns took longer than {usual:.2f} s")
    left = watch.server.rss()
    ending = await ended(watch)
    mib = [size >> 20 for size in (watch.begun_with, watch.most, left)]
    print(f"attackers: {did}")
    print(f"memory in MiB: {mib[0]} before, {mib[1]} at most, {mib[2]} afterwards; SIGTERM took {ending:.1f} s")
    print(f"turns={len(watch.turns)} usual={usual:.3f} slowest={max(watch.turns):.3f} seed={seed} findings=0")


def main(arguments: Sequence[str] | None = None, program: Sequence[str] = SERVE) -> int:
    """Attack as the command line says. `program` is what Python runs as the server."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.tryll_server", description="Attack a Tryll server.")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="how long (default: 60)")
    parser.add_argument("--seed", type=int, metavar="X", help="what the attackers' dice begin with")
    options = parser.parse_args(arguments)
    seed = time.time_ns() % 2**31 if options.seed is None else options.seed
    with tempfile.TemporaryDirectory(prefix="trunkline-fuzz-") as folder:
        with tryll_process(environ={"TRUNKLINE_CACHE": folder, **NOWHERE}, program=program) as server:
            try:
                asyncio.run(run(Watch(server), options.seconds, seed))
            except (Finding, AssertionError, OSError, TimeoutError, BaseExceptionGroup) as error:
                print(f"finding: {_words(error, server)}\nseed={seed} findings=1", flush=True)
                return EXIT_FOUND
    return 0


def _words(error: BaseException, server: TryllProcess) -> str:
    """The first of the reasons, in words."""
    while isinstance(error, BaseExceptionGroup):
        error = next((each for each in error.exceptions if isinstance(each, Finding)), error.exceptions[0])
    if isinstance(error, Finding):
        return str(error)
    with suppress(subprocess.TimeoutExpired):
        # The others may have noticed first that it is gone.
        return f"the server ended by itself, with {server.child.wait(CRASH_SECONDS)}: {''.join(server.said)}"
    return f"a good client was served badly ({type(error).__name__}: {error})"


if __name__ == "__main__":
    sys.exit(main())
