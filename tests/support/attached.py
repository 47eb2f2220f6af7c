"""An exchange in this process with its socket for attached programs, and such a program without a process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import attach
from trunkline.base.attach import AttachAnswer, AttachEnding, AttachHeader, FrameReader
from trunkline.cli.record import as_file
from trunkline.core.events import (
    Audio,
    Envelope,
    Event,
    Steered,
    TextDelta,
    ToolFinished,
    ToolRequested,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.exchange import recording
from trunkline.exchange.attach import attach_socket
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.settings import AgentSettings, ExchangeSettings

#: Says something, asks for a tool, and says what became of it.
ASKING = """\
turns:
  - steps:
      - text: "before"
      - tool:
          name: Bash
          args: {command: "make"}
          description: "make it"
          output: "made"
      - text: "after"
"""


def settings(home: Path, **agents: AgentSettings) -> ExchangeSettings:
    """Those of an exchange with these agents; each one's name is put in."""
    named = {name: agent.replace(name=name) for name, agent in agents.items()}
    return ExchangeSettings(str(home / "trunkline.toml"), str(home / "exchange"), agents=named)


@asynccontextmanager
async def exchange(home: Path, **agents: AgentSettings) -> AsyncIterator[Exchange]:
    """Run one in that directory."""
    (home / "exchange").mkdir(parents=True, exist_ok=True)
    async with Exchange.opened(settings(home, **agents)) as running, attach_socket(running):
        yield running


def echo(home: Path) -> AgentSettings:
    """An agent that says what it hears."""
    return AgentSettings("", "echo", str(home))


def asking(home: Path) -> AgentSettings:
    """An agent that asks before it uses a tool."""
    script = home / "asking.yaml"
    script.write_text(ASKING)
    return AgentSettings("", f"scripted:{script}", str(home))


def recorded(home: Path) -> AgentSettings:
    """An agent that plays a session that was recorded: with a tool, a message in the middle, and sound."""
    found: list[Event] = [
        TurnStarted(UserMessage("Go")), TextDelta("before "), ToolRequested("c1", "Bash", "exec", {"command": "make"}),
        Steered(UserMessage("And quickly")), ToolFinished("c1", "Bash", "success", "made"), Audio(b"\0\0", 16000),
        TextDelta("after {{it}}"), TurnEnded("success"),
    ]  # fmt: skip
    envelopes = [Envelope("s", number, 1, 0.0, event) for number, event in enumerate(found, 1)]
    script = home / "recorded.yaml"
    script.write_bytes(as_file(dict(recording.recorded(envelopes, "recorded").script)))
    return AgentSettings("", f"scripted:{script}", str(home), allow=("Bash",))


class Client:
    """An attached program."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: AttachAnswer) -> None:
        self.answer = answer
        self.writer = writer
        self.lines: list[dict[str, Any]] = []
        self.raw = b""
        self.ending: AttachEnding | None = None
        self._reader = reader
        self._frames = FrameReader()

    def send(self, **command: Any) -> None:
        self.writer.write(json.dumps(command).encode() + b"\n")

    async def more(self) -> bool:
        """Hear something; False at the end."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            data = await self._reader.read(65536)
        if not data:
            self.ending = self._frames.finish()
            return False
        self.raw += self._frames.feed(data)
        return True

    async def until(self, kind: str) -> list[dict[str, Any]]:
        """The lines up to the next one of a type."""
        seen: list[dict[str, Any]] = []
        while True:
            while b"\n" in self.raw:
                line, _, self.raw = self.raw.partition(b"\n")
                seen.append(json.loads(line))
                self.lines.append(seen[-1])
                if seen[-1]["type"] == kind:
                    return seen
            assert await self.more(), f"it ended before `{kind}`: {self.lines}, {self.answer}"

    async def end(self) -> AttachEnding | None:
        """Close our end, and hear the rest."""
        self.writer.write_eof()
        while await self.more():
            pass
        return self.ending


@asynccontextmanager
async def client(running: Exchange, header: AttachHeader | bytes) -> AsyncIterator[Client]:
    """Attach."""
    path = str(Path(running.settings.home) / attach.ATTACH_SOCKET)
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(attach.encode(header) if isinstance(header, AttachHeader) else header)
        async with asyncio.timeout(PATIENCE_SECONDS):
            answer = attach.decode_answer(await reader.readline())
        yield Client(reader, writer, answer)
    finally:
        writer.close()
        try:
            await writer.wait_closed()
        except ConnectionError:
            pass
