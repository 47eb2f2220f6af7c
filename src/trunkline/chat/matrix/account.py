"""Who we are on a homeserver: the credentials from the configuration, logging in, and what the account may do.

    [bridge.matrix]
    homeserver = "https://matrix.example.org"
    token_env = "MATRIX_TOKEN"            # or `token`; or `user` with `password_env` or `password`

A token is better than a password: it can be taken back alone, and nothing else can be done with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from trunkline.base import paths
from trunkline.base.chat_platforms import PLATFORMS
from trunkline.base.config import USER_FILE
from trunkline.base.values import Value
from trunkline.chat.credentials import secret
from trunkline.chat.matrix.client import Homeserver, MatrixRefused
from trunkline.chat.matrix.state import StateKeeper
from trunkline.chat.plain import sentence
from trunkline.chat.platform import NotNow, SendFailed, TokenRefused, Unclear
from trunkline.core.faults import ConfigError
from trunkline.models.endpoint import without_secrets

#: Looked at when the configuration does not name others.
TOKEN_ENV = PLATFORMS["matrix"].secrets["token"]
PASSWORD_ENV = PLATFORMS["matrix"].secrets["password"]

DEVICE_NAME = "trunkline"

_HOW_TO_GET_ONE = (
    "Element shows an account's own token under All settings, Help & About, Advanced. Log in as the bot in a private "
    "window, copy it, and close the window without logging out."
)


class Credentials(Value):
    """A token, or a user and a password."""

    token: str | None = None
    user: str | None = None
    password: str | None = None

    def __repr__(self) -> str:
        return f"Credentials(user={self.user!r})"


class Account:
    """One account: its connection, its id, and what it keeps."""

    def __init__(self, address: str, credentials: Credentials, keeper: StateKeeper, environ: Mapping[str, str]) -> None:
        if not credentials.token and not (credentials.user and credentials.password):
            raise ConfigError(
                "There are no credentials for Matrix.",
                hint=f"Set `{TOKEN_ENV}` to the bot's access token, or give `user` and `{PASSWORD_ENV}`.",
            )
        self._credentials = credentials
        self.keeper = keeper
        self.server = Homeserver(_address(address), credentials.token or "", environ=environ)
        self.user = ""

    async def open(self) -> int | None:
        """Check who we are; gives the size of the largest file, if the server says so.

        Raises:
            ConfigError: nobody is there, it is no homeserver, or it does not let us in.
        """
        if not self._credentials.token:
            await self.renew()
        self.user = await self._whoami()
        if self.keeper.state.user != self.user:
            # Another account's place in the stream is not ours.
            self.keeper.keep(user=self.user, since="", told=())
        return await self._largest_file()

    async def renew(self) -> None:
        """Log in anew, as the device that we were.

        Raises:
            ConfigError: it cannot be done with what we have.
        """
        user, password = self._credentials.user, self._credentials.password
        if self._credentials.token or user is None or password is None:
            raise ConfigError(
                f"`{self.server.address}` does not accept the access token.",
                hint=f"Get a new one. {_HOW_TO_GET_ONE}",
            )
        self.server.token = ""
        request = self.server.api.login(user, password, DEVICE_NAME, self.keeper.state.device)
        try:
            answer = await self.server.call(request)
        except MatrixRefused as error:
            raise ConfigError(
                f"`{self.server.address}` rejected the login of `{user}`: {sentence(str(error))}",
                hint="Check `user` and the password.",
            ) from None
        except SendFailed as error:
            raise self._unusable(error) from None
        token, device = answer.get("access_token"), answer.get("device_id")
        if not isinstance(token, str) or not isinstance(device, str):
            raise ConfigError(f"`{self.server.address}` accepted the login but gave no token.")
        self.server.token = token
        self.keeper.keep(device=device)

    async def _whoami(self) -> str:
        try:
            answer = await self.server.call(self.server.api.whoami(""))
        except TokenRefused:
            raise ConfigError(
                f"`{self.server.address}` does not accept the access token.", hint=_HOW_TO_GET_ONE
            ) from None
        except SendFailed as error:
            raise self._unusable(error) from None
        user = answer.get("user_id")
        if not isinstance(user, str):
            raise self._no_homeserver()
        wanted = self._credentials.user
        if wanted is not None and wanted not in (user, user[1:].partition(":")[0]):
            raise ConfigError(
                f"The access token is that of `{user}`, not of `{wanted}`.", hint="Correct one, or leave `user` out."
            )
        return user

    async def _largest_file(self) -> int | None:
        try:
            answer = await self.server.call(self.server.api.content_repository_config(""))
        except SendFailed:
            return None
        size = answer.get("m.upload.size")
        return size if type(size) is int and size > 0 else None

    def _unusable(self, error: SendFailed) -> ConfigError:
        if isinstance(error, MatrixRefused) and not error.code:
            return self._no_homeserver()
        seconds = error.seconds if isinstance(error, NotNow) else None
        hint = f"Try again in {seconds:.0f} s." if seconds else "Check the address, the network and the proxy."
        # What the homeserver refuses, it refuses the next time, too.
        may_pass = isinstance(error, NotNow | Unclear) and not isinstance(error, TokenRefused)
        return ConfigError(f"Matrix cannot be used: {sentence(str(error))}", hint=hint, retryable=may_pass)

    def _no_homeserver(self) -> ConfigError:
        return ConfigError(
            f"There is no Matrix homeserver at `{self.server.address}`.",
            hint="Its address is often not that of the ids: for `@bot:example.org` look at "
            "`https://example.org/.well-known/matrix/client`.",
        )


def configured(table: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, Credentials, str]:
    """The homeserver, the credentials and the directory that a table of the configuration names.

    Raises:
        ConfigError: something is missing.
    """
    homeserver = table.get("homeserver")
    if not homeserver:
        raise ConfigError(
            "`bridge.matrix.homeserver` is missing.",
            hint='Write `homeserver = "https://matrix.example.org"` into the section `[bridge.matrix]` of '
            f"`{os.path.join(paths.config_dir(environ), USER_FILE)}`.",
        )
    password = secret("matrix", table, "password", environ)
    # A password that is written down is meant, whatever else is in the environment.
    is_asked_for = "token" in table or "token_env" in table or not (table.get("user") and password)
    token = secret("matrix", table, "token", environ) if is_asked_for else None
    state_dir = table.get("state_dir") or os.path.join(paths.state_dir(environ), "matrix")
    return homeserver, Credentials(token, table.get("user"), password), os.path.expanduser(state_dir)


def _address(given: str) -> str:
    """The server's address, without what goes behind it."""
    whole = given if "://" in given else f"https://{given}"
    parts = urlsplit(whole)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        problem = f"`{without_secrets(given)}` is not a valid homeserver address."
        raise ConfigError(problem, hint="Write one such as `https://matrix.example.org`.")
    return whole.rstrip("/")
