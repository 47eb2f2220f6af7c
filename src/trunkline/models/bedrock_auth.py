"""Who we are to Amazon: credentials and region, found the way its own programs find them, and signatures.

`botocore` does the work, in a thread: it reads files and may ask other services, such as single sign-on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trunkline.base.extras import adding
from trunkline.core.faults import ConfigError

if TYPE_CHECKING:
    from trunkline.models.providers import ModelSettings

#: Where Bedrock is when nobody says where.
DEFAULT_REGION = "us-east-1"

#: What the signature is for. (The host says `bedrock-runtime`, the signature does not.)
_SERVICE = "bedrock"

_WAYS = (
    "Set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or `AWS_PROFILE`, or `AWS_BEARER_TOKEN_BEDROCK`, "
    "or run `aws configure`."
)


class AwsIdentity:
    """Finds credentials once and signs with them; those that expire are renewed by `botocore`.

    In this order: keys of the configuration; a profile of the configuration; a Bedrock API key in
    `AWS_BEARER_TOKEN_BEDROCK`, which needs no signature; keys and profile of the environment; an API key of the
    configuration; whatever else `botocore` finds, down to the machine's role.

    Raises:
        ConfigError: `botocore` is not installed, or a key came without its secret.
    """

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        _require_botocore()
        if bool(settings.access_key_id) != bool(settings.secret_access_key):
            raise ConfigError("Bedrock needs both, `access_key_id` and `secret_access_key`.", hint="Set the other one.")
        self._settings = settings
        self._environ = environ
        self._api_key = _api_key(settings, environ)
        self._session: Any = None
        self._credentials: Any = None
        self._finding = asyncio.Lock()

    async def region(self) -> str:
        """Of the settings, of `AWS_REGION`, of `AWS_DEFAULT_REGION`, of the profile; else `us-east-1`."""
        named = (
            self._settings.region or self._environ.get("AWS_REGION") or self._environ.get("AWS_DEFAULT_REGION") or None
        )
        if named is not None or self._api_key is not None:
            return named or DEFAULT_REGION
        await self.find()
        of_profile = await asyncio.to_thread(self._session.get_config_variable, "region")
        return str(of_profile or DEFAULT_REGION)

    async def find(self) -> None:
        """Find the credentials now. Idempotent.

        Raises:
            ConfigError: there are none, or they cannot be had.
        """
        async with self._finding:
            if self._credentials is None and self._api_key is None:
                self._session, self._credentials = await asyncio.to_thread(_find, self._settings)

    async def headers(self, url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers of a POST, and those that prove who sends it.

        Raises:
            ConfigError: as `find` does, and when credentials that expired cannot be renewed.
        """
        if self._api_key is not None:
            return {**headers, "Authorization": f"Bearer {self._api_key}"}
        await self.find()
        region = await self.region()
        return await asyncio.to_thread(_signed, self._credentials, region, url, body, dict(headers))


def _require_botocore() -> None:
    from importlib.util import find_spec

    if find_spec("botocore") is None:
        raise ConfigError("Bedrock needs the package `botocore`.", hint=adding("bedrock"))


def _api_key(settings: ModelSettings, environ: Mapping[str, str]) -> str | None:
    """The key to send instead of a signature, if that is what to do."""
    # Settings are filled up from the environment before they come here.
    configured = (settings.access_key_id or None) not in (None, environ.get("AWS_ACCESS_KEY_ID")) or (
        settings.profile or None
    ) not in (None, environ.get("AWS_PROFILE"))
    if not configured and (key := environ.get("AWS_BEARER_TOKEN_BEDROCK")):
        return key
    if settings.access_key_id or settings.profile:
        return None
    return settings.api_key or None


def _find(settings: ModelSettings) -> tuple[Any, Any]:
    from botocore.credentials import Credentials  # type: ignore[import-untyped]  # it has no types
    from botocore.exceptions import BotoCoreError, ProfileNotFound  # type: ignore[import-untyped]
    from botocore.session import Session  # type: ignore[import-untyped]

    try:
        if settings.access_key_id:
            session = Session()
            return session, Credentials(settings.access_key_id, settings.secret_access_key, settings.session_token)
        session = Session(profile=settings.profile)
        credentials = session.get_credentials()
    except ProfileNotFound as error:
        raise ConfigError(f"{error}.", hint="See `aws configure list-profiles` for those that exist.") from None
    except BotoCoreError as error:
        raise ConfigError(f"No credentials for Bedrock: {error}", hint=_WAYS) from None
    if credentials is None:
        raise ConfigError("No credentials for Bedrock.", hint=_WAYS)
    return session, credentials


def _signed(credentials: Any, region: str, url: str, body: bytes, headers: dict[str, str]) -> dict[str, str]:
    from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
    from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
    from botocore.exceptions import BotoCoreError

    request = AWSRequest("POST", url, headers=headers, data=body)
    try:
        # All parts of one moment: they may be renewed while they are read one by one.
        SigV4Auth(credentials.get_frozen_credentials(), _SERVICE, region).add_auth(request)
    except BotoCoreError as error:
        raise ConfigError(f"The credentials for Bedrock cannot be used: {error}", hint=_WAYS) from None
    return {name: str(value) for name, value in request.headers.items()}
