"""Where one check plays: connections to the server under test, and the record of each."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import tempfile
from pathlib import Path
from typing import Any, Literal

from trunkline.base.process_errors import SpawnError
from trunkline.base.refusal import refusal
from trunkline.base.values import Value
from trunkline.conform import stage
from trunkline.conform.kit import Broken, NotApplicable
from trunkline.conform.record import Roles
from trunkline.conform.tryll.link import Link, shown
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.drive.address import ServerAddress

ROLES: Roles = ("client", "server")

#: How long a server may take for one answer.
TIMEOUT_SECONDS = 10.0

#: What a check may need besides a server: its documented Mock engine, any model that answers, the storage folder.
Need = Literal["mock", "model", "files"]

#: Names for the Mock engine, which takes any.
MOCK = "conform"
SLOW = "mock-slow-conform"


class Target(Value):
    """The server under test. `model`: one that it has, for turns that take a while; "" for the Mock engine's."""

    where: ServerAddress
    timeout: float = TIMEOUT_SECONDS
    token: str = ""
    model: str = ""
    engine: int = m.InferenceEngine.MOCK
    root: str | None = None
    """The server's storage folder."""
    mock: bool = True
    """Whether its Mock engine is the documented one."""
    trusts: ssl.SSLContext | None = None
    """What connections are protected with, and whose certificates are trusted; None without TLS, or with `wss` for
    what this machine trusts."""

    @property
    def address(self) -> str:
        """As people write it."""
        return str(self.where)

    @property
    def has(self) -> frozenset[Need]:
        """What there is for checks."""
        found: list[Need] = []
        if self.mock:
            found += ["mock", "model"]
        if self.model:
            found.append("model")
        if self.root is not None:
            found.append("files")
        return frozenset(found)


class Stage(stage.Stage):
    """The place of one check."""

    def __init__(self, target: Target, name: str) -> None:
        super().__init__(name, ROLES)
        self.target = target
        self._folders: list[Path] = []

    async def close(self) -> None:
        """Let go of all connections, and remove what was put into the storage folder."""
        await super().close()
        for folder in self._folders:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def connect(self) -> Link:
        """A connection on which nothing was heard yet.

        Raises:
            SpawnError: there is no server.
        """
        target = self.target
        try:
            async with asyncio.timeout(target.timeout):
                reader, writer = await _streams(target.where, target.trusts)
        except TimeoutError:
            raise self._unreachable(f"no connection within {target.timeout:g} s") from None
        except OSError as error:
            raise self._unreachable(refusal(error)) from None
        record = self.record((target.address,))
        return self.opened(record, Link(reader, writer, record, target.timeout))

    def _unreachable(self, problem: str) -> SpawnError:
        return SpawnError(
            f"`{self.target.address}` cannot be reached", f"{problem}. Is a Tryll server running there?", "other"
        )

    def needs_tcp(self, what: str) -> None:
        """What a check plays is about the bytes of TCP.

        Raises:
            NotApplicable: the server is asked over a WebSocket, which has bytes of its own.
        """
        if self.target.where.is_websocket:
            raise NotApplicable(f"{what}: the messages of a WebSocket are framed by it")

    async def greeted(self) -> Link:
        """A connection on which the server has said that it is ready."""
        link = await self.connect()
        found = await link.first("SessionReady")
        if not isinstance(found, m.SessionReady):
            raise Broken(f"the first frame is {shown(found)}, not `SessionReady`")
        link.ready = found
        return link

    async def session(self, **options: Any) -> Link:
        """A configured session."""
        link = await self.greeted()
        await link.ask(self.configure(**options), m.ConfigureSessionResponse)
        return link

    def configure(self, **options: Any) -> m.ConfigureSessionRequest:
        """The request that configures it, with the token."""
        return m.ConfigureSessionRequest(token=self.target.token).replace(**options)

    async def model_session(self, **options: Any) -> Link:
        """A session with the engine of the model that turns are played with."""
        return await self.session(inference_engine=self.target.engine, **options)

    async def slow(self, link: Link, *, stream: bool = True) -> int:
        """An agent whose turns take a while, if it hears `chatter`."""
        sampling = m.SamplingOverrides(max_tokens=160) if self.target.model else None
        params = m.GenerateParams(model_name=self.target.model or SLOW, stream=stream, sampling=sampling)
        return await link.agent(m.NodeDescription("say", params))

    def chatter(self, words: int) -> str:
        """A message that is answered for 20 ms a word by the Mock engine, and at length by any other."""
        if self.target.model:
            return "Count from one to one hundred, in words, without leaving out any."
        return " ".join(f"word{number}" for number in range(words))

    def folder(self) -> tuple[Path, str]:
        """A fresh folder inside of the server's storage folder, and its path as clients name it."""
        # Links that are put there would not know what it is relative to.
        root = Path(self.target.root or "").absolute()
        made = Path(tempfile.mkdtemp(prefix="conform-", dir=root))
        # The server may be somebody else on this machine.
        made.chmod(0o755)
        self._folders.append(made)
        return made, made.name


async def _streams(
    where: ServerAddress, trusts: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if not where.is_websocket:
        return await asyncio.open_connection(where.host, where.port, ssl=trusts)
    from trunkline.wires.tryll.drive.websocket import open_streams

    return await open_streams(where, trusts)
