"""Programs that hosts spawn with `--attach`, at the socket in the exchange's home: each joins a session, or opens some.

`base.attach` defines how they talk; `exchange.lines` has a module for each wire. The session continues when they leave.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module

from trunkline.base import attach, local_socket, log_context
from trunkline.base.attach import AttachAnswer, AttachEnding, AttachHeader, BadAttachment
from trunkline.core.faults import ConfigError, Fault, SessionExists, SessionNotFound
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.lines import agentproc, chat, jsonstream
from trunkline.exchange.lines.connection import LocalConnection
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.people import LOCAL
from trunkline.store.database import DatabaseGone

logger = logging.getLogger(__name__)

#: How long a client may take to identify itself. It is a program on this machine, and has that ready.
HEADER_SECONDS = 10.0
#: Clients at a time: each is a process of this user and needs an open file here; its session needs two more.
MAX_CLIENTS = 2000

#: Shown instead of an unexpected exception, whose text is only for the log.
FAILED = "The exchange failed. Its log says why."

#: Instead of a session's id: the newest session.
LATEST = "latest"

Serve = Callable[[Exchange, LiveSession, AttachHeader, LocalConnection], Awaitable[AttachEnding]]

_LINES: dict[str, Serve] = {"jsonstream": jsonstream.serve, "agentproc": agentproc.serve, "chat": chat.serve}

#: Serves a client that names sessions itself.
ServeFace = Callable[[Exchange, AttachHeader, LocalConnection], Awaitable[AttachEnding]]

#: Imported when the first of them comes.
_FACES: dict[str, str] = {"acp": "trunkline.exchange.lines.acp", "mcp": "trunkline.exchange.lines.mcp"}


@asynccontextmanager
async def attach_socket(exchange: Exchange) -> AsyncIterator[None]:
    """Accept clients for the duration of the block.

    Raises:
        ConfigError: the socket cannot be created in the home.
    """
    home = exchange.settings.home
    try:
        listening = local_socket.listening(home, attach.ATTACH_SOCKET)
    except OSError as error:
        path = os.path.join(home, attach.ATTACH_SOCKET)
        raise ConfigError(f"`{path}` cannot be made: {error.strerror or error}.") from error
    clients: set[asyncio.Task[None]] = set()

    def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(
            _serve(exchange, LocalConnection(reader, writer), len(clients) >= MAX_CLIENTS), name="an attached program"
        )
        clients.add(task)
        task.add_done_callback(clients.discard)

    server = await asyncio.start_unix_server(welcome, sock=listening, limit=attach.MAX_HEADER)
    try:
        yield
    finally:
        server.close()
        for task in clients:
            task.cancel()
        if clients:
            await asyncio.wait(clients)
        local_socket.forget(home, attach.ATTACH_SOCKET)


async def _serve(exchange: Exchange, connection: LocalConnection, full: bool) -> None:
    is_in = False
    try:
        try:
            if full:
                raise ConfigError(f"The exchange has {MAX_CLIENTS} programs attached, which is the limit.")
            async with asyncio.timeout(HEADER_SECONDS):
                header = attach.decode_header(await connection.header())
            log_context.add(wire=header.wire)
            answer, serving = await _welcome(exchange, header)
        except (TimeoutError, BadAttachment) as error:
            connection.refuse(str(error) or "No header came.", retryable=False)
            return
        except Fault as fault:
            connection.refuse(str(fault), retryable=fault.retryable)
            return
        except DatabaseGone as error:
            connection.refuse(_not_written(error), retryable=True)
            return
        except (ConnectionError, asyncio.IncompleteReadError):
            raise
        except Exception:
            connection.refuse(FAILED, retryable=False)
            raise
        is_in = True
        connection.accept(answer)
        connection.end(await serving(connection))
    except Fault as fault:
        connection.end(AttachEnding(1, str(fault), fault.kind))
    except DatabaseGone as error:
        connection.end(AttachEnding(1, _not_written(error)))
    except (ConnectionError, asyncio.IncompleteReadError):
        # It has disconnected; there is nobody to tell.
        return
    except Exception:
        logger.exception("an attached program could not be served")
        if is_in:
            connection.end(AttachEnding(1, FAILED))
    finally:
        await connection.close()


async def _welcome(
    exchange: Exchange, header: AttachHeader
) -> tuple[AttachAnswer, Callable[[LocalConnection], Awaitable[AttachEnding]]]:
    """What a program is told, and what serves it then.

    Raises:
        Fault: it cannot be served.
    """
    if header.wire in _LINES:
        live = await joined(exchange, header)
        return AttachAnswer(live.id, live.agent), lambda to: _LINES[header.wire](exchange, live, header, to)
    for name in filter(None, (header.agent, *header.agents)):
        exchange.directory.find(name)
    serve: ServeFace = import_module(_FACES[header.wire]).serve
    return AttachAnswer(agent=header.agent), lambda to: serve(exchange, header, to)


def _not_written(error: DatabaseGone) -> str:
    """For whoever runs the exchange, and can do something about it."""
    logger.warning("an attached program could not be served: %s", error)
    return f"The exchange cannot use its database: {error}. Mend that, and try again."


async def joined(exchange: Exchange, header: AttachHeader) -> LiveSession:
    """The session that a program asks for, started if need be.

    Raises:
        SessionNotFound: there is none.
        SessionExists: it belongs to another agent.
        ConfigError, AgentFailed: its agent is not available.
    """
    board = exchange.switchboard
    if header.resume is None:
        agent = header.agent if header.agent is not None else _only_agent(exchange)
        return await board.open(agent, header.session_id, workspace=header.workspace, by=LOCAL.name)
    if header.resume == LATEST:
        rows = await board.rows(header.agent, 1)
        row = rows[0] if rows else None
    else:
        row = await board.row(header.resume)
    if row is None:
        raise SessionNotFound(
            f"There is no session `{header.resume[:80]}` in the exchange.", hint="Leave `--resume` out to begin one."
        )
    if header.agent is not None and row.agent != header.agent:
        raise SessionExists(f"Session `{row.id}` is with the agent `{row.agent}`.")
    return await board.find(row.id)


def _only_agent(exchange: Exchange) -> str:
    names = [entry.name for entry in exchange.directory.entries]
    if len(names) != 1:
        raise ConfigError("No agent was named.", hint=exchange.directory.names_in_words)
    return names[0]
