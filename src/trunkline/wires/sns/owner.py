"""The owner's end: a client that signs in with a wallet, as the pages do, and asks the API in its name.

async with http.client() as client:
    owner = Owner(client, "http://127.0.0.1:4317", Wallet(key))
    await owner.sign_in()
    answer = await owner.call("GET", "/api/agents/mine")
    await owner.sign_out()
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from trunkline.base import http, jsontext
from trunkline.base.cutting import cut_between_words
from trunkline.wires.sns import sealing
from trunkline.wires.sns.drive import MAX_ANSWER, MAX_MESSAGE, SnsError
from trunkline.wires.sns.wallet import Wallet

if TYPE_CHECKING:
    from httpx import AsyncClient, Response

#: Where one would start a network that is not there.
_OWN_MACHINE = ("http://127.0.0.1", "http://localhost", "http://[::1]")
_SUCCESS = range(200, 300)
#: An answer that takes longer, from the first byte of the question to the last of the answer, does not come: a block
#: explorer may be asked meanwhile, for a minute.
MOST_SECONDS = 120.0
#: Whoever ends a session does not wait for long: it ends by itself, too.
PARTING_SECONDS = 5.0
#: The longest that a challenge may be good for, and how wrong a clock may be.
MOST_LIFETIME = timedelta(hours=1)
#: All that a challenge to sign in says, below the network's name.
_MEMBERS = {"Scope", "Wallet", "Nonce", "ExpiresAt"}


class Owner:
    """One wallet's access to one network. Belongs to the event loop that uses it."""

    def __init__(self, client: AsyncClient, url: str, wallet: Wallet) -> None:
        self._client = client
        self._url = url.rstrip("/")
        self._wallet = wallet
        self._token: str | None = None

    @property
    def wallet(self) -> str:
        """The wallet's address, in lower case."""
        return self._wallet.address

    @property
    def url(self) -> str:
        """Where the network is, without a slash at its end."""
        return self._url

    async def sign_in(self) -> None:
        """Begin a session: from here on, everything is asked in the wallet's name.

        Raises:
            SnsError: the network does not let it, or cannot be asked.
        """
        asked = await self.call("POST", "/api/auth/owner/challenge", {"walletAddress": self.wallet})
        try:
            id, message = str(asked["challenge"]["id"]), str(asked["challenge"]["message"])
        except (KeyError, TypeError):
            raise SnsError(f"`{self._url}` gave no challenge to sign: is a network there?") from None
        # Whatever another server wants to have signed in its place, it does not get from us.
        problem = _problem(message, self.wallet, datetime.now(UTC))
        if problem is not None:
            raise SnsError(f"What the network asks to have signed {problem}. Nothing was signed.")
        signed = {"challengeId": id, "signature": self._wallet.sign(message)}
        token = (await self.call("POST", "/api/auth/owner/verify", signed)).get("token")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise SnsError("The network gave no session.")
        self._token = token

    async def sign_out(self) -> None:
        """End the session. One that cannot be ended ends by itself within a day."""
        if self._token is None:
            return
        try:
            await self.call("POST", "/api/auth/owner/logout", {}, seconds=PARTING_SECONDS)
        except SnsError:
            return
        finally:
            self._token = None

    def seal(self, secrets: Mapping[str, str], password: str) -> dict[str, Any]:
        """The secrets of an agent of this wallet's, as the network may keep them.

        Raises:
            ConfigError: the password is too short, or a library is not installed.
        """
        return sealing.seal(secrets, password, self.wallet)

    def unseal(self, kept: Mapping[str, Any], password: str) -> dict[str, str]:
        """The secrets in what the network kept.

        Raises:
            ConfigError: the password is wrong, it is another wallet's, or a library is not installed.
        """
        return sealing.unseal(kept, password, self.wallet, self._wallet.sign)

    async def call(self, method: str, path: str, body: Any = None, *, seconds: float = MOST_SECONDS) -> dict[str, Any]:
        """Ask the API, and give the members of its answer, which comes within some seconds.

        Raises:
            SnsError: it said no, or could not be asked.
        """
        import httpx

        headers = {} if body is None else {"content-type": "application/json"}
        if self._token is not None:
            headers["authorization"] = f"Bearer {self._token}"
        content = None if body is None else jsontext.dumps(body)
        try:
            async with (
                asyncio.timeout(seconds),
                self._client.stream(method, f"{self._url}{path}", headers=headers, content=content) as response,
            ):
                data = await http.whole(response.aiter_bytes(), MAX_ANSWER)
        except TimeoutError:
            raise SnsError(f"The network at `{self._url}` gave no whole answer within {seconds:g} s.") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            told = str(error) or type(error).__name__
            here = isinstance(error, httpx.ConnectError) and self._url.startswith(_OWN_MACHINE)
            hint = " `trunkline network serve` starts one." if here else ""
            raise SnsError(f"The network at `{self._url}` cannot be asked: {told}.{hint}") from None
        except http.BodyTooLong as error:
            raise SnsError(f"The network at `{self._url}` cannot be understood: {error}.") from None
        return self._read(response, data)

    def _read(self, response: Response, data: bytes) -> dict[str, Any]:
        try:
            answer = jsontext.loads(data)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise SnsError(f"`{self._url}` did not answer as a network does: is one there?", response.status_code)
        if response.status_code not in _SUCCESS:
            said = answer.get("error")
            told = said if isinstance(said, str) and said else f"It was refused ({response.status_code})"
            raise SnsError(cut_between_words(told, MAX_MESSAGE), response.status_code, answer)
        return answer


def _problem(message: str, wallet: str, now: datetime) -> str | None:
    """Why a text is no challenge to sign in with, as the end of a sentence; None if it is one."""
    said = [line.partition(": ")[::2] for line in message.split("\n")[1:]]
    members = dict(said)
    if len(members) != len(said) or members.get("Wallet") != wallet:
        return "is not a challenge for this wallet"
    if members.get("Scope") != "OWNER_LOGIN" or "Community" in members:
        return "is for something else than to sign in"
    if not members.keys() <= _MEMBERS:
        return "says more than a challenge does"
    try:
        expires_at = datetime.fromisoformat(members.get("ExpiresAt", ""))
        left = expires_at - now
    except (ValueError, TypeError, OverflowError):
        return "does not say when it expires"
    if left > MOST_LIFETIME:
        return "would be good for more than an hour"
    if left < -MOST_LIFETIME:
        return "has expired (is the clock of this machine right?)"
    return None
