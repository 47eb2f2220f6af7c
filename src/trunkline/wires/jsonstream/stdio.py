"""The agent end on a process's own standard input and output: from `ready` to the exit code."""

from __future__ import annotations

from trunkline.core.session import Session
from trunkline.wires.jsonstream import codec
from trunkline.wires.jsonstream.serve import JsonStreamServer
from trunkline.wires.stdio_host import LAST_ANSWER_SECONDS, StdioHost


class StdioServer:
    """Serves one session to the host that spawned us."""

    def __init__(
        self,
        session: Session,
        pipes: tuple[int, int],
        *,
        named: bool = True,
        max_line: int = codec.MAX_LINE,
    ) -> None:
        self._session = session
        self._host = StdioHost(pipes)
        self._server = JsonStreamServer(session, self._host.writer, named=named, max_line=max_line)

    async def run(self, *, greeted: bool = False) -> int:
        """Serve until the host closes its end (0), a signal comes (128 + its number) or nobody reads us (141).

        `greeted`: the host was told already that we are ready.
        """
        server = self._server
        code = await self._host.serve(server.feed, server.end, _nothing if greeted else server.greet)
        self._session.ending()
        if code == 0:
            await server.finish(LAST_ANSWER_SECONDS)
        await server.close()
        # Hosts end a process that they have not used yet by a signal, and start another under the same id.
        await self._session.close(keep_unused=code == 0)
        await self._host.close()
        return code


def _nothing() -> None:
    """The host was told already."""
