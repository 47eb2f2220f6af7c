"""What an agent process is told: its turn, by environment variables (0.1) or by a line on standard input (0.4).

Nothing here needs an event loop: the turn is read before there is anything else to do.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Mapping

from trunkline.core.faults import RemoteProtocolError
from trunkline.wires.agentproc import codec
from trunkline.wires.agentproc.messages import Dialect, TurnRequest

#: One read of standard input: as much as a pipe holds.
READ_BYTES = 64 * 1024
#: How long the first byte of a message that is in no variable may take: a bridge begins to write at once.
PATIENCE_SECONDS = 2.0


class NoTurn(RemoteProtocolError):
    """Nobody said anything."""


NO_MESSAGE = "There is no message: `AGENT_MESSAGE` is not set, and nothing came on standard input."


def dialect_of(environ: Mapping[str, str]) -> Dialect:
    """The dialect that a bridge speaks: 0.1 if it has set the variables of a turn, else 0.4."""
    return "0.1" if "AGENT_PROTOCOL_VERSION" in environ or "AGENT_MESSAGE" in environ else "0.4"


def odd_version(environ: Mapping[str, str]) -> str | None:
    """What to say in the log of a bridge that names another version of the protocol than ours."""
    version = environ.get("AGENT_PROTOCOL_VERSION") or codec.PROTOCOL_VERSION
    if f"{version}.".startswith(f"{codec.PROTOCOL_VERSION}."):
        return None
    return (
        f"the bridge speaks protocol {_text(version)[: codec.SHOWN_CHARS]!r}, which is not known here; it is answered "
        f"as {codec.PROTOCOL_VERSION}"
    )


def environment_turn(environ: Mapping[str, str], read: Callable[[], bytes | None] = bytes) -> TurnRequest:
    """The turn that the variables tell. What is no UTF-8 in its texts is replaced.

    A message too long for a variable is not there; then it is what `read` gives, which is not called otherwise.

    Raises:
        RemoteProtocolError: `read` gives nothing, and nothing is attached.
    """
    turn = codec.turn_of(environ)
    texts = {name: _text(getattr(turn, name)) for name in ("message", "session_id", "session_name", "from_user")}
    if "AGENT_MESSAGE" not in environ:
        written = read()
        if written is None and not turn.attachments:
            raise RemoteProtocolError(NO_MESSAGE)
        texts["message"] = _written(written or b"")
    return turn.replace(**texts)


def _text(value: str) -> str:
    """A variable as UTF-8, whatever the locale made of its bytes."""
    try:
        return os.fsencode(value).decode("utf-8", "replace")
    except UnicodeEncodeError:
        return codec.whole(value)


def _written(data: bytes) -> str:
    """A message from standard input: as it is, or in the line of a bridge that speaks both dialects at once."""
    if data.startswith(b"{"):
        from trunkline.wires.agentproc.codec_ndjson import decode_turn

        try:
            return decode_turn(data).message
        except RemoteProtocolError:
            pass
    return data.decode("utf-8", "replace")


def whole_input(fd: int, max_bytes: int = codec.MAX_LINE) -> bytes | None:
    """What stands on standard input, to its end, however long that takes: the time limit is the bridge's.

    `None` if nothing came, and not its end either, within `PATIENCE_SECONDS`; or if there is a terminal.

    Raises:
        RemoteProtocolError: it is too long.
    """
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    if os.isatty(fd) or not poller.poll(PATIENCE_SECONDS * 1000):
        return None
    data = bytearray()
    while chunk := _read(fd):
        data += chunk
        if len(data) > max_bytes:
            raise RemoteProtocolError(f"The message is longer than {max_bytes} bytes.")
    return bytes(data)


def _read(fd: int) -> bytes:
    """Wait for some bytes, or the end, also where whoever shares the descriptor has made it one that does not wait."""
    while True:
        try:
            return os.read(fd, READ_BYTES)
        except BlockingIOError:
            select.select([fd], [], [])


def first_line(fd: int, so_far: bytes = b"", max_line: int = codec.MAX_LINE) -> tuple[bytes, bytes]:
    """The first line that is not blank, and what came behind it. Waits for it; `so_far` was read before.

    Raises:
        NoTurn: there is none.
        RemoteProtocolError: it is too long.
    """
    data = bytearray(so_far)
    searched, ended = 0, False
    while True:
        end = data.find(b"\n", searched)
        if end < 0 and not ended:
            if len(data) > max_line:
                raise RemoteProtocolError(f"A line on standard input is longer than {max_line} bytes.")
            searched = len(data)
            chunk = _read(fd)
            ended = not chunk
            data += chunk
            continue
        line = bytes(data if end < 0 else data[:end])
        del data[: len(line) + 1]
        searched = 0
        if line.strip():
            return line, bytes(data)
        if ended and not data:
            raise NoTurn("Standard input ended before a turn arrived.")


def local_path(url: str) -> str | None:
    """The file that an attachment's URL means on this machine: of a `file:` URL, or of a plain path. Else `None`."""
    if "\0" in url:
        return None
    if not url.startswith("file:"):
        return None if not url or "://" in url or url.startswith("data:") else url
    host, slash, path = url.removeprefix("file:").removeprefix("//").partition("/")
    if host not in ("", "localhost") or not slash:
        return None
    from urllib.parse import unquote_to_bytes

    decoded = unquote_to_bytes(f"/{path}")
    return None if b"\0" in decoded else os.fsdecode(decoded)
