"""The client end: any program that speaks the Agent Client Protocol, as a client library by itself.

    async with await AcpProgram.start(["opencode", "acp"], cwd="/project") as program:
        session = await program.new_session("/project")
        prompt = session.prompt([TextBlock("Explain main.rs")])
        async for item in prompt:
            if isinstance(item, PermissionAsked) and item.is_open:
                item.answer(item.request.options[0].option_id)
            else:
                print(item)                       # a `SessionUpdate`
        print(prompt.response.stop_reason)

- There is no program before it has answered `initialize`.
- What a prompt is told and asked comes in the order in which the agent said it. An agent that floods waits for whoever
  reads; no queue grows. What it prints besides the protocol is told apart and never fatal.
- A program that ends is noticed at once: everything that waits for it fails, with its exit code and last words.
- Nothing limits how long an answer may take; everything else that is asked of an agent has a time limit.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Self, TypeVar

from trunkline.core.faults import AgentFailed, AgentTimeout, ConfigError, Fault
from trunkline.wires.acp import messages
from trunkline.wires.acp.codec import MAX_LINE, JsonRpcError
from trunkline.wires.acp.drive_prompt import AcpPrompt, PermissionAsked
from trunkline.wires.acp.drive_session import EARLY_UPDATES, REQUEST_SECONDS, AcpSession
from trunkline.wires.acp.messages_base import PROTOCOL_VERSION, AcpNotification, AcpRequest, AcpResult
from trunkline.wires.acp.messages_client import RequestPermissionRequest
from trunkline.wires.acp.messages_sessions import (
    HandedMcpServer,
    ListedSession,
    SessionConfigOption,
    SessionModeState,
)
from trunkline.wires.acp.messages_start import (
    AuthenticateRequest,
    Implementation,
    InitializeRequest,
    InitializeResponse,
)
from trunkline.wires.acp.messages_updates import SessionNotification, SessionUpdate
from trunkline.wires.acp.peer import AcpPeer
from trunkline.wires.driven_process import CLOSE_SECONDS, DrivenProcess, ProgramEnding

__all__ = ["AcpProgram", "AcpPrompt", "AcpSession", "PermissionAsked"]

logger = logging.getLogger(__name__)

#: How long a program may take to answer `initialize`. Many load hundreds of modules first.
READY_SECONDS = 60.0
#: How long one may take to begin or load a session: it reads its configuration, and starts tool servers.
OPEN_SECONDS = 60.0
#: How long a program that does not read any more may take to end, until that is not waited for.
ENDING_SECONDS = 1.0
#: Sessions that are listed at most, and pages that are asked for.
MOST_LISTED = 10_000
MOST_PAGES = 100

R = TypeVar("R", bound=AcpResult)


class AcpProgram:
    """One running program that has answered `initialize`. Made by `start`; must be closed, or used as a context
    manager."""

    def __init__(self, process: DrivenProcess, max_line: int = MAX_LINE) -> None:
        self.about = InitializeResponse(PROTOCOL_VERSION)
        """What it said of itself."""
        self.ended: asyncio.Future[ProgramEnding] = asyncio.get_running_loop().create_future()
        """How it ended, as soon as it has."""
        self.broken_lines = 0
        """Lines that were no message, so far."""
        self._process = process
        self._peer = AcpPeer(
            _Output(process, self._fail),
            self,
            requests={RequestPermissionRequest.method: RequestPermissionRequest},
            notifications=messages.CLIENT_NOTIFICATIONS,
            complains=False,
            max_line=max_line,
        )
        self._initialized = False
        self._sessions: dict[str, AcpSession] = {}
        self._early: deque[SessionNotification] = deque(maxlen=EARLY_UPDATES)
        self._reading = asyncio.create_task(self._read(), name=f"read from {process.name}")

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        name: str | None = None,
        client: Implementation | None = None,
        ready_seconds: float = READY_SECONDS,
        max_line: int = MAX_LINE,
    ) -> Self:
        """Start a program and agree on the protocol. `env` is its whole environment, ours unless given.

        Raises:
            ConfigError: there is no such program, or it speaks another version of the protocol.
            AgentFailed: it ended before it had answered, or refused.
            AgentTimeout: it did not answer in time.
        """
        program = cls(await DrivenProcess.start(argv, cwd=cwd, env=env, name=name), max_line)
        try:
            await program._initialize(client, ready_seconds)
        except BaseException:
            await program.kill()
            raise
        return program

    @property
    def name(self) -> str:
        """What the program is called."""
        return self._process.name

    @property
    def pid(self) -> int:
        """The program's process number."""
        return self._process.pid

    async def look(self) -> bool:
        """Whether it runs and reads."""
        return await self._process.look()

    async def how_it_ended(self) -> str:
        """For the end of a sentence about a program that cannot be talked to any more."""
        if not self.ended.cancelled():
            await asyncio.wait({self.ended}, timeout=ENDING_SECONDS)
        return f" ({self.ended.result().how})" if self.ended.done() and not self.ended.cancelled() else ""

    def redacted(self, text: str) -> str:
        """A text of the program without the secrets that it was given."""
        return self._process.redacted(text)

    # Sessions.

    async def new_session(self, cwd: str, servers: Sequence[HandedMcpServer] = ()) -> AcpSession:
        """Begin a session in a directory, an absolute path.

        Raises:
            JsonRpcError: the agent refuses; with `codec.AUTH_REQUIRED` it wants to be logged in.
            AgentFailed, AgentTimeout: it is gone, or does not answer.
        """
        made = await self.ask(
            messages.NewSessionRequest(cwd, tuple(servers)), messages.NewSessionResponse, OPEN_SECONDS
        )
        return self._opened(made.session_id, made.modes, made.config_options)

    async def load_session(
        self,
        session_id: str,
        cwd: str,
        servers: Sequence[HandedMcpServer] = (),
        hear: Callable[[SessionUpdate], None] | None = None,
    ) -> AcpSession:
        """Go on with a session; `hear` is told what was said in it. For programs with `load_session`.

        Raises:
            JsonRpcError: there is no such session, or the agent cannot.
            AgentFailed, AgentTimeout: it is gone, or does not answer.
        """
        session = self._opened(session_id, None, None)
        session.on_update = hear or _ignore
        request = messages.LoadSessionRequest(session_id, cwd, tuple(servers))
        return await self._go_on(session, request)

    async def resume_session(self, session_id: str, cwd: str, servers: Sequence[HandedMcpServer] = ()) -> AcpSession:
        """Go on with a session without hearing what was said in it. For programs that offer `resume`.

        Raises:
            JsonRpcError: there is no such session, or the agent cannot.
            AgentFailed, AgentTimeout: it is gone, or does not answer.
        """
        request = messages.ResumeSessionRequest(session_id, cwd, tuple(servers))
        return await self._go_on(self._opened(session_id, None, None), request)

    async def fork_session(self, session_id: str, cwd: str, servers: Sequence[HandedMcpServer] = ()) -> AcpSession:
        """A new session that begins with what was said in another one. For programs that offer `fork`.

        Raises:
            JsonRpcError: there is no such session, or the agent cannot.
            AgentFailed, AgentTimeout: it is gone, or does not answer.
        """
        request = messages.ForkSessionRequest(session_id, cwd, tuple(servers))
        made = await self.ask(request, messages.NewSessionResponse, OPEN_SECONDS)
        return self._opened(made.session_id, made.modes, made.config_options)

    async def sessions(self, cwd: str | None = None) -> AsyncIterator[ListedSession]:
        """The sessions that the program knows, page by page. For programs that offer `list`.

        Raises:
            JsonRpcError: the agent cannot.
            AgentFailed, AgentTimeout: it is gone, or does not answer.
        """
        cursor: str | None = None
        listed = 0
        for _ in range(MOST_PAGES):
            request = messages.ListSessionsRequest(cwd, cursor)
            page = await self.ask(request, messages.ListSessionsResponse, REQUEST_SECONDS)
            for session in page.sessions:
                yield session
            listed += len(page.sessions)
            cursor = page.next_cursor
            if not cursor or listed >= MOST_LISTED:
                return

    async def close_session(self, session: AcpSession) -> None:
        """Let the agent forget what it keeps in memory of a session. For programs that offer `close`.

        Raises:
            JsonRpcError: the agent cannot.
            AgentFailed, AgentTimeout: it is gone, or does not answer.
        """
        await self.ask(messages.CloseSessionRequest(session.id), AcpResult, REQUEST_SECONDS)
        self._sessions.pop(session.id, None)

    async def authenticate(self, method_id: str) -> None:
        """Log in, by one of the methods of `about`.

        Raises:
            JsonRpcError: that did not work.
            AgentFailed, AgentTimeout: it is gone, or does not answer.
        """
        await self.ask(AuthenticateRequest(method_id), AcpResult, OPEN_SECONDS)

    # For its sessions.

    async def ask(self, request: AcpRequest, kind: type[R], seconds: float) -> R:
        """Have the program do something, within a time limit; `kind` is what it answers.

        Raises:
            JsonRpcError: it refuses.
            RemoteProtocolError: it answers something else.
            AgentFailed, AgentTimeout: it is gone, or does not answer.
        """
        try:
            async with asyncio.timeout(seconds):
                answer = await self._peer.ask(request)
        except TimeoutError:
            late = f"`{self.name}` did not answer `{request.method}` within {seconds:g} s."
            raise AgentTimeout(late + self._process.last_words()) from None
        if not isinstance(answer, kind):
            raise TypeError(f"`{request.method}` is answered by another type")
        return answer

    def ask_to_answer(self, prompt: messages.PromptRequest) -> Coroutine[Any, Any, Any]:
        """Have the program answer a prompt, which may take for ever."""
        return self._peer.ask(prompt)

    def tell(self, notification: AcpNotification) -> None:
        """Tell the program something."""
        self._peer.tell(notification)

    # The end.

    async def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Close its input, give it `seconds` to leave, and kill what is left. May be called again."""
        self._stop_reading(AgentFailed(f"`{self.name}` has been closed."))
        await self._process.close(seconds)
        await self._peer.close()

    async def kill(self) -> None:
        """End it at once, with all that it started. May be called again."""
        self._stop_reading(AgentFailed(f"`{self.name}` has been killed."))
        await self._process.kill()
        await self._peer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # `peer.PeerHandler`: what the agent asks and tells.

    def asked(self, request: AcpRequest) -> Awaitable[AcpResult]:
        """A question for the user, among what its prompt is told."""
        if not isinstance(request, RequestPermissionRequest):
            raise AgentFailed("The agent asks for what it was not offered.")
        question = PermissionAsked(request)
        session = self._sessions.get(request.session_id)
        if session is None or not session.take(question):
            # Nobody has asked it to do anything.
            question.cancel()
            return question.answered()
        return session.answer_to(question)

    def told(self, notification: AcpNotification) -> None:
        """News of a session."""
        if not isinstance(notification, SessionNotification):
            return
        session = self._sessions.get(notification.session_id)
        if session is None:
            self._early.append(notification)
        else:
            session.hear(notification.update)

    def broken(self, error: JsonRpcError) -> None:
        """A line that is no message. Programs print banners and warnings where they should not."""
        self.broken_lines += 1
        logger.debug("`%s` sent something that is not a message: %s", self.name, error)

    # How it is done.

    async def _initialize(self, client: Implementation | None, seconds: float) -> None:
        from trunkline import __version__

        request = InitializeRequest(
            PROTOCOL_VERSION, client_info=client or Implementation("trunkline", __version__, "Trunkline")
        )
        try:
            self.about = await self.ask(request, InitializeResponse, seconds)
        except JsonRpcError as error:
            raise AgentFailed(f"`{self.name}` refuses to begin: {self.redacted(error.message)}") from error
        except AgentFailed as fault:
            if not self.ended.done():
                raise
            ending = self.ended.result()
            hint = None if ending.last_words else "Check that this command speaks the Agent Client Protocol."
            raise AgentFailed(f"`{self.name}` ended before it answered `initialize`: {ending}", hint=hint) from fault
        self._initialized = True
        version = self.about.protocol_version
        if version != PROTOCOL_VERSION:
            raise ConfigError(
                f"`{self.name}` speaks version {version} of the Agent Client Protocol, which is not compatible with "
                f"version {PROTOCOL_VERSION}.",
                hint=f"Use a release of it that speaks version {PROTOCOL_VERSION}.",
            )

    async def _go_on(
        self, session: AcpSession, request: messages.LoadSessionRequest | messages.ResumeSessionRequest
    ) -> AcpSession:
        try:
            opened = await self.ask(request, messages.OpenedSessionResponse, OPEN_SECONDS)
        except BaseException:
            self._sessions.pop(session.id, None)
            raise
        session.on_update = None
        session.modes = opened.modes
        session.options = opened.config_options or ()
        return session

    def _opened(
        self, session_id: str, modes: SessionModeState | None, options: tuple[SessionConfigOption, ...] | None
    ) -> AcpSession:
        session = self._sessions[session_id] = AcpSession(self, session_id, modes, options or ())
        early = [each for each in self._early if each.session_id == session_id]
        self._early = deque((each for each in self._early if each.session_id != session_id), maxlen=EARLY_UPDATES)
        for notification in early:
            session.hear(notification.update)
        return session

    async def _read(self) -> None:
        try:
            while data := await self._process.read():
                self._keep_words(data)
                self._peer.feed(data)
                for session in tuple(self._sessions.values()):
                    await session.room()
        except Exception:
            logger.exception("reading from `%s` failed", self.name)
        ending = await self._process.ending()
        self._stop_hearing(AgentFailed(f"`{self.name}` has ended: {ending}"))
        if not self.ended.done():
            self.ended.set_result(ending)

    def _keep_words(self, data: bytes) -> None:
        """Some programs say on standard output why they cannot begin."""
        if not self._initialized:
            for line in data.splitlines():
                if line.strip() and not line.lstrip().startswith(b"{"):
                    self._process.keep_noise(line.decode("utf-8", "replace"))

    def _stop_reading(self, fault: Fault) -> None:
        """Nobody wants to hear it any more."""
        self._reading.cancel()
        self.ended.cancel()
        self._stop_hearing(fault)

    def _fail(self, fault: Fault) -> None:
        """It cannot be talked to: whoever waits for it hears why."""
        self._stop_hearing(fault)

    def _stop_hearing(self, fault: Fault) -> None:
        self._peer.end(fault)
        for session in self._sessions.values():
            session.end()


class _Output:
    """Where the peer writes: the program's standard input. What is wrong with it is told once, and not raised."""

    congested = False

    def __init__(self, process: DrivenProcess, fail: Callable[[Fault], None]) -> None:
        self._process = process
        self._fail = fail
        self._held: list[bytes] = []

    def write(self, data: bytes) -> None:
        self._held.append(data)

    def flush(self) -> None:
        held, self._held = b"".join(self._held), []
        try:
            self._process.write(held)
        except AgentFailed as fault:
            # After this step: whoever asks something is told as whoever waits for an answer.
            asyncio.get_running_loop().call_soon(self._fail, fault)

    async def drain(self) -> None:
        """Nothing to wait for: the process holds what is not read, up to a limit."""


def _ignore(update: SessionUpdate) -> None:
    """What was said before is known."""
