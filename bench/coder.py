"""The figures of the coding agent, each against a control in the same run.

    python bench/coder.py [--quick | --long] [--json]

The model is a server on loopback that answers at once: what is measured is everything else. Exit codes: 0 when every
goal is met by the median, 1 when one is missed, 2 for wrong usage. Needs Linux. See bench/README.md.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench._coder_furnished import HOOKS, SKILLS, furnish, working
from bench._command import Progress, run
from bench._measure import Goal, Row, Taken, interleaved, rate_row, spread, time_row
from bench._peers import PYTHON, TRUNKLINE, Peer
from bench._provider import Format, Provider, providing
from bench._start import NOTHING, memory, run_nothing

READY_GOAL = Goal("<=", 6)
FIRST_WORD_GOAL = Goal("<=", 12)
FLAT_GOAL = Goal("<=", 1.1, "CPU")
#: What the log of some short turns may be long.
LOG_KIB = 250
LOG_GOAL = Goal("<=", 1)

#: Between two words: far longer than one takes, far shorter than anybody would wait.
PAUSE_SECONDS = 0.004
#: The early turn that later ones are compared with.
EARLY = 5
#: Turns in one measurement: one alone is shorter than the machine's noise.
WINDOW = 6


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    starts: int
    paced: int
    """Words that come one by one."""
    words: int
    """Words that come all at once."""
    rounds: int
    turns: int
    """How long a long session is."""
    late: int
    """Rounds of late turns and early ones: they differ by a few per cent, and a busy machine by more."""
    short_turns: int = 300
    judged: bool = True


SIZES = {
    "normal": Sizes(25, 400, 20_000, 9, 500, 25),
    "quick": Sizes(9, 200, 5_000, 5, 500, 15),
    "long": Sizes(51, 1000, 50_000, 25, 2000, 51),
    "tiny": Sizes(1, 5, 50, 1, 12, 1, short_turns=3, judged=False),
}


#: What the other provider, or a proxy, would make of a start.
_UNSET = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


class DefaultAgent(Peer):
    """What a host starts: `trunkline agent --json-stream`, a key in its environment, and nothing else anywhere."""

    def __init__(self, home: str, provider: Provider) -> None:
        name = provider.form.upper()
        unset = {each: "" for variable in _UNSET for each in (variable, variable.lower())}
        own = {f"{name}_API_KEY": "sk-bench", f"{name}_BASE_URL": provider.url, "HOME": home}
        super().__init__([TRUNKLINE, "agent", "--json-stream"], home, **(unset | own))


class CodingAgent(Peer):
    """`trunkline agent` with the server as its model."""

    def __init__(self, home: str, provider: Provider, *more: str) -> None:
        flags = ("--provider", provider.form, "--base-url", provider.url, "--model", "bench", *more)
        super().__init__([TRUNKLINE, "agent", "--json-stream", *flags], home, HOME=home)

    def line(self) -> bytes:
        line = super().line()
        if line.startswith(b'{"type":"error"'):
            raise AssertionError(f"the agent failed in the middle of a measurement: {line.decode()}")
        return line

    def turn(self) -> Taken:
        """One message, from its line to its end."""
        cpu, started = self.cpu, time.perf_counter()
        self.send(b'{"type":"message","msg_id":"m","input":"Say a word or two about the weather, please."}')
        self.line_of("stream_end")
        return Taken(time.perf_counter() - started, self.cpu - cpu)

    def turns(self, count: int) -> Taken:
        """Some turns; what all of them took."""
        taken = [self.turn() for _ in range(count)]
        return Taken(sum(each.wall for each in taken), sum(each.cpu or 0 for each in taken))


class Reader(Peer):
    """The control: a program that reads the same answer with `http.client` and `json`, and prints each word at once."""

    def __init__(self, home: str, provider: Provider) -> None:
        super().__init__([PYTHON, str(Path(__file__).with_name("_reader.py")), provider.url], home)

    def turn(self) -> Taken:
        cpu, started = self.cpu, time.perf_counter()
        self.send(b"go")
        self.line_of("stream_end")
        return Taken(time.perf_counter() - started, self.cpu - cpu)


def measure(sizes: Sizes, progress: Progress) -> list[Row]:
    """All rows."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as home:
        forms: tuple[Format, ...] = ("openai", "anthropic")
        for form in forms:
            with providing(form) as provider:
                progress(f"starts, {form}")
                rows += start_rows(home, provider, sizes.starts)
                progress(f"words, {form}")
                rows.append(latency_row(home, provider, sizes.rounds, sizes.paced))
                rows.append(words_row(home, provider, sizes.rounds, sizes.words))
                progress(f"logs, {form}")
                rows.append(log_row(home, provider, sizes.short_turns))
                progress(f"long sessions, {form}")
                rows += length_rows(home, provider, sizes.late, sizes.turns)
    return rows


def start_rows(home: str, provider: Provider, rounds: int) -> list[Row]:
    """From the spawn to `ready`, and to the first word of the model. Each has a home of its own, an empty one."""

    def ready() -> Taken:
        with tempfile.TemporaryDirectory(dir=home) as empty, DefaultAgent(empty, provider) as agent:
            agent.line_of("ready")
            return Taken(time.perf_counter() - agent.started, agent.cpu)

    def first_word(*, eager: bool) -> Taken:
        with tempfile.TemporaryDirectory(dir=home) as empty, DefaultAgent(empty, provider) as agent:
            message = b'{"type":"message","msg_id":"m","input":"Hello"}'
            if eager:
                agent.send(message)
            agent.line_of("ready")
            if not eager:
                agent.send(message)
            agent.line_of("text_delta")
            return Taken(time.perf_counter() - agent.started, agent.cpu)

    def furnished() -> Taken:
        with tempfile.TemporaryDirectory(dir=home) as full:
            furnish(full)
            with DefaultAgent(full, provider) as agent:
                agent.line_of("ready")
                return Taken(time.perf_counter() - agent.started, agent.cpu)

    def row(name: str, ours: Callable[[], Taken], goal: Goal) -> Row:
        pairs = interleaved(rounds, ours, lambda: run_nothing(home))
        return time_row(f"{provider.form}: spawn to {name}", pairs, NOTHING, goal=goal)

    return [
        row("`ready`", ready, READY_GOAL),
        row(f"`ready`, {SKILLS} skills and {HOOKS} hooks", furnished, READY_GOAL),
        row("first word, message sent at spawn", lambda: first_word(eager=True), FIRST_WORD_GOAL),
        row("first word, message sent at `ready`", lambda: first_word(eager=False), FIRST_WORD_GOAL),
    ]


def latency_row(home: str, provider: Provider, rounds: int, words: int) -> Row:
    """From the moment a word is sent by the model to its line at the host."""
    with paced(provider, words, PAUSE_SECONDS), CodingAgent(home, provider) as agent, Reader(home, provider) as reader:
        agent.line_of("ready")

        def late(peer: CodingAgent | Reader) -> Taken:
            message = b'{"type":"message","msg_id":"m","input":"Go"}'
            peer.send(message if isinstance(peer, CodingAgent) else b"go")
            seen = []
            for _ in range(words):
                peer.line_of("text_delta")
                seen.append(time.perf_counter())
            peer.line_of("stream_end")
            lags = sorted(at - sent for at, sent in zip(seen, provider.sent, strict=True))
            return Taken(lags[len(lags) // 2])

        pairs = interleaved(rounds, lambda: late(agent), lambda: late(reader))
    added = spread([(ours.wall - theirs.wall) * 1e6 for ours, theirs in pairs])
    note = f"the median word of an answer; ours adds {added.median:.0f} us ({added.low:.0f}..{added.high:.0f})"
    return time_row(f"{provider.form}: a word's way, paced", pairs, "http.client + json + print", unit="us", note=note)


def words_row(home: str, provider: Provider, rounds: int, words: int) -> Row:
    """How many words a second pass when they come all at once."""
    with paced(provider, words, 0.0), CodingAgent(home, provider) as agent, Reader(home, provider) as reader:
        agent.line_of("ready")
        pairs = interleaved(rounds, agent.turn, reader.turn)
    return rate_row(f"{provider.form}: words at full speed", words, pairs, "http.client + json + print")


def log_row(home: str, provider: Provider, turns: int) -> Row:
    """How long the log of some short turns is: `is it N?`, `No, it is N.` in six words."""
    provider.said = lambda number: ("No", ",", " it", " is", f" {number}", ".")
    with tempfile.TemporaryDirectory(dir=home) as empty:
        with CodingAgent(empty, provider) as agent:
            agent.line_of("ready")
            for number in range(1, turns + 1):
                # Hosts name messages as they like; most take a UUID.
                msg_id = str(uuid.UUID(int=number))
                agent.send(json.dumps({"type": "message", "msg_id": msg_id, "input": f"is it {number}?"}).encode())
                agent.line_of("stream_end")
        kib = sum(path.stat().st_size for path in Path(empty).rglob("sessions/*")) / 1024
    provider.said = None
    ours, promise = spread([kib]), spread([float(LOG_KIB)])
    name = f"{provider.form}: log of {turns} short turns"
    return Row(name, "KiB", ours, f"{LOG_KIB} KiB", promise, spread([kib / LOG_KIB]), goal=LOG_GOAL)


def length_rows(home: str, provider: Provider, rounds: int, turns: int) -> list[Row]:
    """Whether a turn late in a session costs more than an early one, and what the session takes by then."""
    early_memory: list[float] = []
    with tempfile.TemporaryDirectory(dir=home) as empty:
        pairs, late_memory = _late_and_early(empty, provider, rounds, turns, early_memory)
    count = len(early_memory)
    with tempfile.TemporaryDirectory(dir=home) as full, working(provider):
        furnish(full)
        full_pairs, _ = _late_and_early(full, provider, rounds, turns, [], "--auto-approve")
    note = f"{WINDOW} turns each"
    return [
        time_row(f"{provider.form}: turn {turns:,}", pairs, f"turn {EARLY}", goal=FLAT_GOAL, note=note),
        time_row(
            f"{provider.form}: turn {turns:,} with hooks, to-dos and an edit",
            full_pairs,
            f"turn {EARLY}",
            goal=FLAT_GOAL,
            note=f"{note}; the hooks run a program before each message and each call",
        ),
        Row(
            name=f"{provider.form}: memory at turn {turns:,}, resident",
            unit="MiB",
            subject=spread([late_memory] * count),
            control_name=f"turn {EARLY}",
            control=spread(early_memory),
            ratio=spread([late_memory / each for each in early_memory]),
        ),
    ]


def _late_and_early(
    home: str, provider: Provider, rounds: int, turns: int, early_memory: list[float], *flags: str
) -> tuple[list[tuple[Taken, Taken]], float]:
    """Some turns of a long session and of new ones, by turns, and the memory of the long one; adds that of the new."""

    def early() -> Taken:
        with CodingAgent(home, provider, *flags) as agent:
            agent.line_of("ready")
            agent.turns(EARLY - 1)
            taken = agent.turns(WINDOW)
            early_memory.append(memory(agent.pid)["Rss"])
            return taken

    with CodingAgent(home, provider, *flags) as agent:
        agent.line_of("ready")
        # So that turn `turns` is in the middle of what is measured.
        agent.turns(max(turns - 1 - rounds * WINDOW // 2, 0))
        pairs = interleaved(rounds, lambda: agent.turns(WINDOW), early)
        return pairs, memory(agent.pid)["Rss"]


@contextmanager
def paced(provider: Provider, words: int, pause: float) -> Iterator[None]:
    """Longer answers, for the time of a block."""
    before = provider.words, provider.pause
    provider.words, provider.pause = words, pause
    try:
        yield
    finally:
        provider.words, provider.pause = before


def main(arguments: list[str] | None = None) -> int:
    """Measure, tell, judge."""
    return run("The figures of the coding agent, each against its control.", SIZES, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
