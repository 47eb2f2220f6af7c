"""The figures of the faces to the world, each against a control in the same run.

    python bench/faces.py [--quick | --long] [--json]

The model is a server on loopback in a thread of this process, and the exchange a process of its own. Exit codes: 0 when
every goal is met by the median, 1 when one is missed, 2 for wrong usage. Needs Linux. See bench/README.md.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from bench._command import Progress, run
from bench._faces_server import WORD
from bench._measure import Goal, Row, Taken, clean_environment, cpu_seconds, interleaved, rate_row, spread, time_row
from bench._peers import PATIENCE_SECONDS, PYTHON, TRUNKLINE, Peer
from bench._provider import Provider, providing
from bench._start import NOTHING, run_nothing

FIRST_WORD_GOAL = Goal("<=", 1.15)
#: What an exchange may take besides.
SPARE_SECONDS = 0.003
RATE_GOAL = Goal(">=", 0.6, "CPU")
ACP_GOAL = Goal("<=", 9)

#: What a model takes to its first word: a quick one on a good machine.
THINKING_SECONDS = 0.05
#: Rounds with a model that answers at once, for each with one that thinks.
AT_ONCE = 5
#: The official SDK, whose import is measured beside our start.
ACP_SDK = ("agent-client-protocol==0.12.1",)
TOKEN = "a token for the benchmark, long enough"
PATH = "/v1/chat/completions"
DIRECTLY = "the model's server directly"
SERVER = str(Path(__file__).with_name("_faces_server.py"))
INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}'


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    answers: int
    words: int
    rounds: int
    starts: int
    judged: bool = True


SIZES = {
    "normal": Sizes(40, 5000, 8, 20),
    "quick": Sizes(20, 5000, 4, 10),
    "long": Sizes(150, 20000, 15, 60),
    "tiny": Sizes(1, 20, 1, 1, judged=False),
}


class Client:
    """One connection to a server that speaks OpenAI's Chat Completions: sends a request, and looks for words."""

    def __init__(self, port: int, path: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._path = path

    def close(self) -> None:
        self._socket.close()

    def ask(self, model: str, **headers: str) -> tuple[float, int]:
        """Ask, and read to the end. Gives the seconds to the first word, and how many words there were.

        Raises:
            RuntimeError: there was no answer.
        """
        body = json.dumps({"model": model, "stream": True, "messages": [{"role": "user", "content": "Go."}]}).encode()
        heads = {
            "Host": "127.0.0.1",
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **headers,
        }
        lines = [f"POST {self._path} HTTP/1.1", *(f"{name}: {value}" for name, value in heads.items()), "", ""]
        sent = time.perf_counter()
        self._socket.sendall("\r\n".join(lines).encode() + body)
        said = bytearray()
        first = 0.0
        while not said.endswith(b"0\r\n\r\n"):
            data = self._socket.recv(1 << 20)
            if not data:
                raise RuntimeError(f"the server left: {bytes(said[:500])!r}")
            said += data
            if not first and re.search(rb'"content": ?"[^"]', said):
                first = time.perf_counter() - sent
            if not said.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"the server refused: {bytes(said[:500])!r}")
        return first, said.count(b'"content":"w') + said.count(b'"content": "w')


@contextmanager
def exchange(home: str, provider: str, words: int) -> Iterator[tuple[int, int]]:
    """An exchange with the coder on that provider, and an agent that says so many words; its process and its port."""
    script = Path(home) / "words.yaml"
    script.write_text(f"turns:\n- steps:\n  - text: {json.dumps([WORD] * words)}\n")
    config = Path(home) / "exchange.toml"
    config.write_text(
        f"""
[exchange]
listen = "127.0.0.1:0"
home = {json.dumps(str(Path(home) / "exchange"))}

[agents.coder]
agent = "coder"
workspace = {json.dumps(home)}

[agents.a]
agent = {json.dumps(f"scripted:{script}")}

[people.ana]
role = "admin"
token_env = "BENCH_TOKEN"
"""
    )
    environ = {"TRUNKLINE_HOME": home, "BENCH_TOKEN": TOKEN, "OPENAI_API_KEY": "x", "OPENAI_BASE_URL": provider}
    command = [TRUNKLINE, "up", "--config", str(config)]
    with _server(command, r"http://127\.0\.0\.1:(\d+)", home, **environ) as found:
        yield found


@contextmanager
def bare(home: str, words: int) -> Iterator[tuple[int, int]]:
    """The bare handler; its process and its port."""
    with _server([PYTHON, SERVER, str(words)], r"(\d+)", home) as found:
        yield found


@contextmanager
def _server(command: list[str], ready: str, home: str, **environ: str) -> Iterator[tuple[int, int]]:
    process = subprocess.Popen(
        command,
        env=clean_environment(**environ),
        cwd=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(ready, line):
                yield process.pid, int(found[1])
                return
        raise RuntimeError(f"`{' '.join(command)}` did not start")
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_SECONDS)


# Rows


def first_word_rows(port: int, provider: Provider, rounds: int) -> list[Row]:
    """From a request to its first word, through the exchange and without it."""
    provider.words, provider.pause = 1, THINKING_SECONDS
    model, ours = Client(int(provider.url.rpartition(":")[2]), PATH), Client(port, PATH)

    def direct() -> Taken:
        return Taken(model.ask("bench")[0])

    def through(**headers: str) -> Callable[[], Taken]:
        return lambda: Taken(ours.ask("coder", **headers)[0] - SPARE_SECONDS)

    note = f"the model takes {1000 * THINKING_SECONDS:g} ms to its first word; 3 ms are allowed besides, and left out"
    in_session = interleaved(rounds, through(**{"X-Trunkline-Session": "bench"}), direct)
    alone = interleaved(rounds, through(), direct)
    model.close()
    ours.close()
    return [
        time_row("request to first word, in a session", in_session, DIRECTLY, goal=FIRST_WORD_GOAL, note=note),
        time_row("request to first word, without a session", alone, DIRECTLY, goal=FIRST_WORD_GOAL),
    ]


def at_once_rows(port: int, provider: Provider, rounds: int) -> list[Row]:
    """The same with a model that answers at once: what is left is ours. Many short rounds, since each is about a few
    milliseconds, and the quickest ones are those that nobody has disturbed."""
    provider.words, provider.pause = 1, 0.0
    model_port = int(provider.url.rpartition(":")[2])
    model, ours = Client(model_port, PATH), Client(port, PATH)

    def anew(port: int, name: str) -> Taken:
        started = time.perf_counter()
        client = Client(port, PATH)
        connected = time.perf_counter() - started
        try:
            return Taken(connected + client.ask(name)[0])
        finally:
            client.close()

    ways: dict[str, tuple[Callable[[], Taken], Callable[[], Taken]]] = {
        "in a session": (
            lambda: Taken(ours.ask("coder", **{"X-Trunkline-Session": "bench"})[0]),
            lambda: Taken(model.ask("bench")[0]),
        ),
        "without a session": (lambda: Taken(ours.ask("coder")[0]), lambda: Taken(model.ask("bench")[0])),
        "over a new connection": (lambda: anew(port, "coder"), lambda: anew(model_port, "bench")),
    }
    rows = []
    for way, (subject, control) in ways.items():
        pairs = interleaved(rounds, subject, control)
        added = spread([1000 * (mine.wall - theirs.wall) for mine, theirs in pairs])
        # Not the least difference: that is one whose control was disturbed.
        least = 1000 * (min(mine.wall for mine, _ in pairs) - min(theirs.wall for _, theirs in pairs))
        note = f"we add {least:.2f} ms at best, {added.median:.2f} in the middle, {added.high:.2f} in nine of ten"
        rows.append(time_row(f"model that answers at once, {way}", pairs, DIRECTLY, note=note))
    model.close()
    ours.close()
    return rows


def rate(exchange: tuple[int, int], home: str, words: int, rounds: int) -> Row:
    """Words per second of the processor, of a quick agent."""
    with bare(home, words) as handler:
        subject, control = _saying(*exchange, words), _saying(*handler, words)
        pairs = interleaved(rounds, subject, control)
    return rate_row("words of a stream", words, pairs, "a bare starlette handler", goal=RATE_GOAL)


def _saying(pid: int, port: int, words: int) -> Callable[[], Taken]:
    client = Client(port, PATH)

    def say() -> Taken:
        wall, cpu = time.perf_counter(), cpu_seconds(pid)
        _, count = client.ask("a")
        taken = Taken(time.perf_counter() - wall, cpu_seconds(pid) - cpu)
        if count != words:
            raise RuntimeError(f"{count} words were said, and not {words}")
        return taken

    return say


def acp_rows(home: str, rounds: int) -> list[Row]:
    """From the spawn to the answer to `initialize`, and what the official SDK takes to be imported."""
    import environments

    def start() -> Taken:
        with Peer((TRUNKLINE, "acp", "echo"), home) as agent:
            agent.send(INITIALIZE)
            agent.line()
            return Taken(time.perf_counter() - agent.started, agent.cpu)

    sdk = str(environments.environment(ACP_SDK) / "python")

    def imported() -> Taken:
        started = time.perf_counter()
        subprocess.run([sdk, "-c", "import acp"], env=clean_environment(), cwd=home, check=True)
        return Taken(time.perf_counter() - started)

    return [
        time_row(
            "ACP: spawn to `initialize` answered",
            interleaved(rounds, start, lambda: run_nothing(home)),
            NOTHING,
            goal=ACP_GOAL,
        ),
        time_row("ACP: the official SDK's import", interleaved(rounds, imported, lambda: run_nothing(home)), NOTHING),
    ]


def measure(sizes: Sizes, progress: Progress) -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory() as home, providing("openai") as provider:
        with exchange(home, f"{provider.url}/v1", sizes.words) as served:
            progress("the first word")
            rows = first_word_rows(served[1], provider, sizes.answers)
            rows += at_once_rows(served[1], provider, AT_ONCE * sizes.answers)
            progress("words")
            rows.append(rate(served, home, sizes.words, sizes.rounds))
        progress("starts")
        return [*rows, *acp_rows(home, sizes.starts)]


def main(arguments: list[str] | None = None) -> int:
    """Measure, tell, judge."""
    return run(__doc__ or "", SIZES, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
