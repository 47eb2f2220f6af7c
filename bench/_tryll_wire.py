"""The server of the Tryll benchmark under load, with many connections, and with many agents."""

from __future__ import annotations

import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench._measure import Goal, Row, Taken, interleaved, rate_row, spread, time_row
from bench._peers import PYTHON, Peer
from bench._tryll_load import Client, Load
from bench._tryll_server import ANSWER

from trunkline.wires.tryll.codec import encode, frame
from trunkline.wires.tryll.messages import (
    Ack,
    AnswerText,
    ConfigureSessionRequest,
    ConfigureSessionResponse,
    CreateAgentRequest,
    CreateAgentResponse,
    GenerateParams,
    GraphDescription,
    NodeDescription,
    RestoreHistoryRequest,
    SendMessageRequest,
    SessionReady,
    TurnComplete,
    TurnStatus,
)

SERVER = str(Path(__file__).with_name("_tryll_server.py"))
SOURCE = str(Path(__file__).with_name("_tryll_echo.cpp"))

#: By the processor time of the server: the client is the same, and would be the slower one for an echo.
WIRE_GOAL = Goal(">=", 0.3, by="CPU")
MOCK_GOAL = Goal(">=", 0.1, by="CPU")
IDLE_GOAL = Goal("<=", 1.0)
IDLE_KIB = 3.0

CONNECTIONS = 16
DEPTH = 32
TEXT = "Good morning!"
#: One node that lets the Mock engine answer at once.
GRAPH = GraphDescription((NodeDescription("say", GenerateParams("mock")),), "say")

#: In one session.
AGENTS = 1000
#: Agents in one measurement of their making.
WINDOW = 50

#: Descriptors for what else a process has open.
OTHER_FILES = 100


class Server(Peer):
    """One of the servers; `kind` as `_tryll_server.py` has it, or the path of a program."""

    def __init__(self, kind: str, home: str) -> None:
        super().__init__([kind] if "/" in kind else [PYTHON, SERVER, kind], home)
        self.port = int(self.line())

    @property
    def private_kib(self) -> int:
        """The memory that it shares with nobody."""
        rollup = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        return int(rollup.split("Private_Dirty:")[1].split()[0])


# Under load.


class Loaded(Load):
    """A server and its load."""

    def __init__(
        self,
        server: Server,
        clients: Sequence[Client],
        frames: Sequence[Sequence[bytes]],
        size: int,
        agents: Sequence[Sequence[int]] = (),
    ) -> None:
        super().__init__(server, [client.socket for client in clients], frames, size)
        self._clients = clients
        self._agents = agents

    @classmethod
    def echo(cls, server: Server, connections: int, depth: int) -> Loaded:
        """What is sent comes back."""
        clients = [Client(server.port) for _ in range(connections)]
        frames = [[sent(number) for number in range(depth)] for _ in clients]
        return cls(server, clients, frames, len(frames[0][0]))

    @classmethod
    def wire(cls, server: Server, connections: int, depth: int) -> Loaded:
        """What is sent is answered, whoever it is for."""
        clients = [greeted(server) for _ in range(connections)]
        frames = [[sent(number) for number in range(depth)] for _ in clients]
        return cls(server, clients, frames, turn(clients[0], 1))

    @classmethod
    def graphs(cls, server: Server, connections: int, depth: int) -> Loaded:
        """As many agents as messages are under way."""
        clients = [configured(server) for _ in range(connections)]
        agents = [[made(client) for _ in range(depth)] for client in clients]
        frames = [[sent(agent) for agent in each] for each in agents]
        return cls(server, clients, frames, turn(clients[0], agents[0][0]), agents)

    def turns_of(self, times: int) -> Taken:
        """Run, with all conversations at their beginning: else they would be longer each time."""
        for client, agents in zip(self._clients, self._agents, strict=True):
            for agent in agents:
                client.ask(RestoreHistoryRequest(1, agent), Ack)
        return self.run(times)

    def check(self) -> None:
        """See that the right thing is answered still."""
        for client, agents in zip(self._clients, self._agents or [[1]] * len(self._clients), strict=True):
            turn(client, agents[-1])

    def close(self) -> None:
        for client in self._clients:
            client.close()


def load_rows(home: str, rounds: int, times: int, mock_times: int) -> list[Row]:
    """Turns per second: without agents, against echoes; and with agents. All places of the depth, so many times."""
    with ExitStack() as stack:

        def loaded(kind: str, make: Callable[[Server, int, int], Loaded], many: int, depth: int) -> Loaded:
            made = make(stack.enter_context(Server(kind, home)), many, depth)
            stack.callback(made.close)
            return made

        wire = loaded("wire", Loaded.wire, CONNECTIONS, DEPTH)
        echo = loaded("echo", Loaded.echo, CONNECTIONS, DEPTH)
        mock = loaded("graphs", Loaded.graphs, CONNECTIONS, DEPTH)
        crowd = loaded("graphs", Loaded.graphs, 1, AGENTS)
        against_echo = interleaved(rounds, lambda: wire.run(times), lambda: echo.run(times))
        against_wire = interleaved(rounds, lambda: mock.turns_of(mock_times), lambda: wire.run(mock_times))
        against_few = interleaved(
            rounds, lambda: per(crowd.turns, crowd.turns_of(2)), lambda: per(mock.turns, mock.turns_of(2))
        )
        program = compiled(home)
        against_cpp = []
        if program is not None:
            epoll = loaded(program, Loaded.echo, CONNECTIONS, DEPTH)
            against_cpp = interleaved(rounds, lambda: wire.run(times), lambda: epoll.run(times))
        for each in (wire, mock, crowd):
            each.check()
    count = wire.turns
    size = f"{CONNECTIONS} connections, {DEPTH} turns at a time on each"
    note = size if program else f"{size}. There is no C++ compiler, so an echo in C++ is left out"
    rows = [rate_row("the wire alone", count * times, against_echo, "asyncio echo", goal=WIRE_GOAL, note=note)]
    if program is not None:
        rows.append(rate_row("the wire alone", count * times, against_cpp, "C++ epoll echo"))
    whole = f"turns of {AGENTS:,} agents in one session"
    return [
        *rows,
        rate_row("whole turns on Mock", count * mock_times, against_wire, "the wire alone", goal=MOCK_GOAL),
        rate_row(whole, 2, against_few, f"of {count} in {CONNECTIONS} sessions"),
    ]


def per(count: int, taken: Taken) -> Taken:
    """What one of so many took."""
    return Taken(taken.wall / count, taken.cpu and taken.cpu / count)


def compiled(home: str) -> str | None:
    """The echo in C++; None where there is no compiler."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        return None
    program = str(Path(home, "echo"))
    subprocess.run([compiler, "-O2", "-o", program, SOURCE], check=True)
    return program


def sent(agent: int) -> bytes:
    return frame(encode(SendMessageRequest(7, agent, TEXT)))


def greeted(server: Server) -> Client:
    client = Client(server.port)
    client.receive(SessionReady)
    return client


def configured(server: Server) -> Client:
    client = greeted(server)
    client.ask(ConfigureSessionRequest(1), ConfigureSessionResponse)
    return client


def made(client: Client) -> int:
    return client.ask(CreateAgentRequest(1, GRAPH), CreateAgentResponse).agent_id


def turn(client: Client, agent: int) -> int:
    """One turn, looked at closely; the size of its answer."""
    client.send(SendMessageRequest(7, agent, TEXT))
    answer, first = client.receive(AnswerText)
    end, second = client.receive(TurnComplete)
    if (answer.text, answer.is_final, end.status, end.agent_id) != (ANSWER, True, TurnStatus.SUCCESS, agent):
        raise AssertionError(f"the answer is not what it should be: {answer} {end}")
    return first + second


# Many at once.


def agent_row(home: str, rounds: int) -> Row:
    """What an agent costs to make when its session has many, and few."""
    pairs = []
    for _ in range(rounds):
        with Server("graphs", home) as server:
            client = configured(server)
            early = _making(server, client)
            for _ in range(AGENTS - 2 * WINDOW):
                made(client)
            pairs.append((_making(server, client), early))
            client.close()
    return time_row(f"making agent {AGENTS:,} of a session", pairs, f"agent {WINDOW}", unit="us")


def _making(server: Server, client: Client) -> Taken:
    cpu, started = server.cpu, time.perf_counter()
    for _ in range(WINDOW):
        made(client)
    return per(WINDOW, Taken(time.perf_counter() - started, server.cpu - cpu))


def idle_rows(home: str, rounds: int, connections: int) -> list[Row]:
    """Memory of the server for each connection that does nothing."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    connections = min(connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - OTHER_FILES)
    ours, ready, bare = [], [], []
    for _ in range(rounds):
        ours.append(_memory("graphs", home, connections, greeted))
        bare.append(_memory("echo", home, connections, lambda server: Client(server.port)))
        ready.append(_memory("graphs", home, connections, configured))
    promise = [IDLE_KIB] * rounds
    name = f"memory of an idle connection of {connections:,}"
    return [
        _memory_row(name, ours, f"{IDLE_KIB:g} KiB", promise, IDLE_GOAL),
        _memory_row(name, ours, "asyncio echo", bare),
        _memory_row(f"{name}, configured", ready, "asyncio echo", bare),
    ]


def _memory(kind: str, home: str, connections: int, connect: Callable[[Server], Client]) -> float:
    """KiB for one connection."""
    with Server(kind, home) as server, ExitStack() as stack:
        # The first of them makes the server import and compile what all need.
        stack.callback(connect(server).close)
        before = server.private_kib
        for _ in range(connections):
            stack.callback(connect(server).close)
        return (server.private_kib - before) / connections


def _memory_row(
    name: str, ours: Sequence[float], control: str, theirs: Sequence[float], goal: Goal | None = None
) -> Row:
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    return Row(name, "KiB", spread(ours), control, spread(theirs), spread(ratios), goal=goal)
