"""On whose behalf a request acts: the wallet of a session, or the one that signed the fixed message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.base.asgi_answers import Refused
from trunkline.network.http.auth import owner_wallet
from trunkline.network.network import Network
from trunkline.network.wallets import signer

if TYPE_CHECKING:
    from starlette.requests import Request


async def session_wallet(network: Network, request: Request, signature: str) -> str | None:
    """The wallet of the session that a request carries; None if it carries none that holds, and a signature instead.

    Raises:
        Refused: 401, it carries one that does not hold, and no signature.
    """
    if not request.headers.get("authorization"):
        return None
    try:
        return await owner_wallet(network, request)
    except Refused:
        if not signature:
            raise
        return None


async def acting_wallet(session: str | None, message: str, signature: str) -> str:
    """The wallet of the session, or else the one that signed the message.

    Raises:
        Refused: 400, there is no session, and that is no signature.
    """
    return session or await signer(message, signature)
