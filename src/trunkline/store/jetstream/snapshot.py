"""The stream of a cluster as one file, and back, by JetStream's own snapshots.

A snapshot keeps the number of every message. The numbers are the fences: a session whose messages were published again,
one by one, would have others, and no owner could write to it under the conditions of before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.store.jetstream.errors import StreamError, StreamGone, StreamRefused, translated
from trunkline.store.jetstream.stream import ANSWER_SECONDS, START_SECONDS, SessionStream

if TYPE_CHECKING:
    from nats.aio.msg import Msg

#: How much is sent at once: what servers choose by themselves, and less than they take in one message.
CHUNK_BYTES = 128 * 1024
#: How long the next piece may take, and a server's word that it has one. Longer than other answers: it is at its disk.
CHUNK_SECONDS = 15.0
#: How long servers may take to make a stream of what they were sent: they read and write all of it once more.
UNPACK_SECONDS = 600.0
_RETRY_SECONDS = 0.25
#: How often is looked which servers have it.
_LOOK_SECONDS = 0.1

_API = "$JS.API.STREAM"
#: From here on, the status at the end of a snapshot says that it has failed.
_FAILED = 400

#: Told how many bytes are done.
Done = Callable[[int], None]


class StreamSnapshot(Value):
    """What the servers say of a snapshot, in their words; they want to hear it again when it is restored."""

    config: Mapping[str, Any]
    state: Mapping[str, Any]

    @property
    def messages(self) -> int:
        """How many there are."""
        return int(self.state.get("messages") or 0)

    @property
    def last(self) -> int:
        """The number of the last message there ever was."""
        return int(self.state.get("last_seq") or 0)


async def stream_size(stream: SessionStream) -> tuple[int, int]:
    """How many messages are in the stream, and how many bytes they take.

    Raises:
        StreamGone, StreamRefused: nobody can say.
    """
    with translated():
        state = (await stream.context.stream_info(stream.name)).state
    return int(state.messages), int(state.bytes)


async def save_stream(stream: SessionStream, file: BinaryIO, done: Done = lambda count: None) -> StreamSnapshot:
    """Write a snapshot of the stream to a file. Nodes may go on writing meanwhile: what they write is in it or is not,
    and never without what was before it.

    Raises:
        StreamGone: no server answers, or a piece is missing. What was written is no snapshot.
        StreamRefused: the servers do not make one.
        OSError: the file cannot be written.
    """
    before = stream.client.stats["reconnects"]
    with translated():
        inbox = stream.client.new_inbox()
        pieces = await stream.client.subscribe(inbox)
    try:
        # Consumers are those of nodes that read now; they make their own.
        asked = {"deliver_subject": inbox, "no_consumers": True, "chunk_size": CHUNK_BYTES}
        answer = await _asked(stream, f"{_API}.SNAPSHOT.{stream.name}", asked, START_SECONDS)
        count = number = 0
        while True:
            with translated():
                piece = await pieces.next_msg(timeout=CHUNK_SECONDS)
            if not piece.data:
                break
            number += 1
            _check_number(piece, number)
            # A write this small waits for memory, not for the disk.
            file.write(piece.data)
            count += len(piece.data)
            if piece.reply:
                # The servers wait for this before they send many more.
                with translated():
                    await stream.client.publish(piece.reply)
            done(count)
    finally:
        with suppress(StreamError), translated():
            await pieces.unsubscribe()
    _check_end(piece)
    if stream.client.stats["reconnects"] != before:
        # The last piece has no number: whether it was lost with the old connection cannot be seen.
        raise _incomplete("the connection was lost")
    return StreamSnapshot(answer["config"], answer["state"])


async def restore_stream(
    stream: SessionStream, file: BinaryIO, snapshot: StreamSnapshot, done: Done = lambda count: None
) -> None:
    """Put a snapshot in the place of the stream, which is removed first; no node may run. It gets as many replicas as
    a new stream would, whatever it had before, and all of them have it when this returns.

    Raises:
        StreamGone, StreamRefused: it did not work. There is no stream then, or one that not all of its servers have.
        OSError: the file cannot be read.
    """
    replicas = stream.most_replicas
    config = {**snapshot.config, "name": stream.name, "num_replicas": replicas}
    await _removed(stream)
    try:
        subject = await _restoring(stream, {"config": config, "state": snapshot.state})
        count = 0
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            # Sent once: a server that has it already would append it again.
            with translated():
                said = await stream.client.request(subject, chunk, timeout=CHUNK_SECONDS)
            _checked(said.data)
            count += len(chunk)
            done(count)
        with translated():
            said = await stream.client.request(subject, b"", timeout=UNPACK_SECONDS)
        found = StreamSnapshot(config, _checked(said.data)["state"])
        if found.last < snapshot.last:
            raise StreamRefused(f"NATS has restored only {found.last:,} of {snapshot.last:,} messages.")
    except BaseException:
        # Servers keep what they could read of a broken snapshot, and it would look like the whole. In a task of its
        # own: this one may be cancelled.
        with suppress(StreamError):
            await asyncio.shield(_removed(stream))
        raise
    if replicas > 1 and found.messages:
        await _replicated(stream, replicas, found.messages)


async def _replicated(stream: SessionStream, replicas: int, messages: int) -> None:
    """Wait until all servers of the stream have it. At first only the one has it that it was sent to, for some seconds,
    and if that died, it would be lost: the others count themselves current meanwhile."""
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

    # A consumer of one server, which is any of them, says how many messages that one has.
    config = ConsumerConfig(
        deliver_policy=DeliverPolicy.ALL,
        ack_policy=AckPolicy.NONE,
        num_replicas=1,
        mem_storage=True,
        inactive_threshold=CHUNK_SECONDS,
    )
    have: set[str] = set()
    deadline = asyncio.get_running_loop().time() + UNPACK_SECONDS
    while len(have) < replicas:
        if asyncio.get_running_loop().time() > deadline:
            raise StreamGone(f"Only {len(have)} of {replicas} servers have the stream so far.", retryable=True)
        with suppress(StreamGone), translated():
            asked = await stream.context.add_consumer(stream.name, config)
            await stream.context.delete_consumer(stream.name, asked.name)
            if asked.cluster is not None and asked.cluster.leader and int(asked.num_pending or 0) >= messages:
                have.add(asked.cluster.leader)
        await asyncio.sleep(_LOOK_SECONDS)


async def _restoring(stream: SessionStream, request: Mapping[str, Any]) -> str:
    """Where the servers want the pieces. A stream that was just removed may still be known to some of them."""
    deadline = asyncio.get_running_loop().time() + START_SECONDS
    while True:
        try:
            return str(
                (await _asked(stream, f"{_API}.RESTORE.{stream.name}", request, CHUNK_SECONDS))["deliver_subject"]
            )
        except StreamGone:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(_RETRY_SECONDS)


async def _removed(stream: SessionStream) -> None:
    from nats.js.errors import NotFoundError

    with translated(), suppress(NotFoundError):
        await stream.context.delete_stream(stream.name)


async def _asked(stream: SessionStream, subject: str, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    with translated():
        said = await stream.client.request(subject, jsontext.dumps(dict(request)), timeout=seconds + ANSWER_SECONDS)
    return _checked(said.data)


def _checked(data: bytes) -> dict[str, Any]:
    """An answer of the servers, which may be empty.

    Raises:
        StreamGone, StreamRefused: it is an error.
    """
    from nats.js.errors import APIError

    answer: dict[str, Any] = jsontext.loads(data) if data else {}
    if "error" in answer:
        with translated():
            raise APIError.from_error(answer["error"])
    return answer


def _check_number(piece: Msg, number: int) -> None:
    """Pieces have numbers at the end of the subject at which they are acknowledged; the last one has none."""
    if piece.reply and piece.reply.rpartition(".")[2] != str(number):
        raise _incomplete("a piece is missing")


def _check_end(message: Msg) -> None:
    headers = message.headers or {}
    if int(headers.get("Status") or 0) >= _FAILED:
        raise _incomplete(headers.get("Description") or f"status {headers['Status']}")


def _incomplete(why: str) -> StreamGone:
    return StreamGone(f"The snapshot is incomplete: {why}.", retryable=True, hint="Try again.")
