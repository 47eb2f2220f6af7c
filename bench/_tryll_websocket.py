"""The Tryll server under the same load over WebSockets, as FlatBuffers and as JSON, against TCP."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from bench._measure import Goal, Row, Taken, interleaved, rate_row
from bench._tryll_load import READ_BYTES, Client, M
from bench._tryll_wire import CONNECTIONS, DEPTH, GRAPH, TEXT, Loaded, Server, turn

from trunkline.wires.tryll.codec import decode, encode, json_form
from trunkline.wires.tryll.messages import (
    ConfigureSessionRequest,
    ConfigureSessionResponse,
    CreateAgentRequest,
    CreateAgentResponse,
    Message,
    SendMessageRequest,
    SessionReady,
)

#: Sessions before the first that counts: behind them, the ids of agents have as many digits each, and so have answers.
BEFORE = 6

#: By the processor time of the server, as for TCP.
BINARY_GOAL = Goal(">=", 0.6, by="CPU")
JSON_GOAL = Goal(">=", 0.4, by="CPU")

_OPENING = (
    "GET /?format={} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
#: Any would do. That it is always the same saves the client's time, and not the server's.
_MASK = b"\x12\x34\x56\x78"


class WebSocketClient(Client):
    """The same over a WebSocket; `form` as its address has it."""

    def __init__(self, port: int, form: str) -> None:
        super().__init__(port)
        self._is_json = form == "json"
        self._bytes = bytearray()
        self.socket.sendall(_OPENING.format(form).encode())
        while b"\r\n\r\n" not in self._bytes:
            self._bytes += self.socket.recv(READ_BYTES)
        del self._bytes[: self._bytes.index(b"\r\n\r\n") + 4]
        self.receive(SessionReady)

    def sent(self, message: Message) -> bytes:
        """What a message is on the wire."""
        payload = json_form.encode(message) if self._is_json else encode(message)
        size = len(payload)
        length = bytes((0x80 | size,)) if size < 126 else b"\xfe" + size.to_bytes(2)
        repeated = (_MASK * (size // 4 + 1))[:size]
        hidden = (int.from_bytes(payload) ^ int.from_bytes(repeated)).to_bytes(size)
        return bytes((0x81 if self._is_json else 0x82,)) + length + _MASK + hidden

    def send(self, message: Message) -> None:
        self.socket.sendall(self.sent(message))

    def receive(self, kind: type[M]) -> tuple[M, int]:
        while True:
            short = self._bytes[1] if len(self._bytes) >= 4 else 0
            head, size = (4, int.from_bytes(self._bytes[2:4])) if short == 126 else (2, short)
            if short and len(self._bytes) >= head + size:
                break
            self._bytes += self.socket.recv(READ_BYTES)
        payload = bytes(self._bytes[head : head + size])
        del self._bytes[: head + size]
        message = json_form.decode(payload) if self._is_json else decode(payload)
        if not isinstance(message, kind):
            raise AssertionError(f"a `{kind.__name__}` was expected: {message}")
        return message, head + size


def over_websocket(server: Server, form: str) -> Loaded:
    """As many agents as messages are under way."""
    before = [WebSocketClient(server.port, form) for _ in range(BEFORE)]
    clients = [WebSocketClient(server.port, form) for _ in range(CONNECTIONS)]
    agents: list[list[int]] = []
    for client in clients:
        client.ask(ConfigureSessionRequest(1), ConfigureSessionResponse)
        agents.append([client.ask(CreateAgentRequest(1, GRAPH), CreateAgentResponse).agent_id for _ in range(DEPTH)])
    frames: Sequence[Sequence[bytes]] = [
        [client.sent(SendMessageRequest(7, agent, TEXT)) for agent in each]
        for client, each in zip(clients, agents, strict=True)
    ]
    for client in before:
        client.close()
    return Loaded(server, clients, frames, turn(clients[0], agents[0][0]), agents)


def first_turns(loaded: Loaded, times: int) -> Taken:
    """So many times the first turn of all conversations: the numbers of later ones have more digits in JSON."""
    taken = [loaded.turns_of(1) for _ in range(times)]
    return Taken(sum(each.wall for each in taken), sum(each.cpu or 0.0 for each in taken))


def websocket_rows(home: str, rounds: int, times: int) -> list[Row]:
    """Whole turns in both forms, against the same turns over TCP."""
    with ExitStack() as stack:
        tcp = Loaded.graphs(stack.enter_context(Server("graphs", home)), CONNECTIONS, DEPTH)
        server = stack.enter_context(Server("websocket", home))
        binary, text = over_websocket(server, "binary"), over_websocket(server, "json")
        for each in (tcp, binary, text):
            stack.callback(each.close)
        found = [
            (name, goal, interleaved(rounds, partial(first_turns, loaded, times), partial(first_turns, tcp, times)))
            for name, goal, loaded in (
                ("over a WebSocket", BINARY_GOAL, binary),
                ("over a WebSocket, in JSON", JSON_GOAL, text),
            )
        ]
        for each in (tcp, binary, text):
            each.check()
    return [
        rate_row(f"whole turns on Mock {name}", tcp.turns * times, pairs, "over TCP", goal=goal)
        for name, goal, pairs in found
    ]
