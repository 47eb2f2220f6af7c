"""Logins to remote MCP servers by OAuth: the SDK's flow, and what it brings kept on this machine.

    store     what logins have brought: in the system's keyring, else in a file of the user's alone
    flow      how somebody logs in: discovery, registration, the browser, the tokens; how tokens are renewed and revoked
    listener  where the browser comes back to
    requests  the requests of all that: where they may go, and how long their answers may be
    bearer    tokens on the requests to a server

Nothing here imports the SDK before a server is wanted.
"""

from __future__ import annotations

import asyncio
from typing import Any

#: How long the end of a session waits for a login that is being renewed: a request or two. The old one may be of no use
#: by then, so that the user would have to log in again.
SETTLE_SECONDS = 3.0

#: The renewals in progress, of all sessions of this process.
renewing: set[asyncio.Task[Any]] = set()


async def settled() -> None:
    """Wait until none is in progress. Bounded."""
    if renewing:
        await asyncio.wait(renewing, timeout=SETTLE_SECONDS)
