"""Who we are to Google: an access token, renewed before it expires, and the project it belongs to.

`google-auth` does the work, in a thread: it reads files, signs, and asks Google. It asks over our own client, so that
proxies and certificates are those of all other requests. On a machine of Google's the metadata server is asked instead.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from trunkline.base import http, jsontext
from trunkline.base.extras import adding
from trunkline.core.faults import ConfigError, ProviderError

#: What a token must be good for. Google has no narrower one for models.
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)

#: One question to Google's token service, which answers in a fraction of a second.
TOKEN_TIMEOUT_SECONDS = 20.0

#: A token with less life than this is renewed: an answer may stream for minutes, and clocks differ.
RENEW_BEFORE_SECONDS = 225.0

#: Where `gcloud auth application-default login` leaves what it got.
_LOGIN_FILE = "application_default_credentials.json"

#: The metadata server is on the same machine.
_METADATA_TIMEOUT_SECONDS = 3.0
_METADATA_HOST = "metadata.google.internal"
_METADATA_HEADERS = {"Metadata-Flavor": "Google"}

_WAYS = (
    "Set `GOOGLE_APPLICATION_CREDENTIALS` to the file of a service account, or run "
    "`gcloud auth application-default login`."
)


class _Answer:
    """An HTTP answer as `google-auth` wants it."""

    def __init__(self, status: int, headers: Mapping[str, str], data: bytes) -> None:
        self.status = status
        self.headers = headers
        self.data = data


_Transport = Callable[..., _Answer]


class _Source(Protocol):
    """Something that knows a token. Its methods block."""

    project: str | None

    def token(self, transport: _Transport) -> str:
        """One that is good for some minutes."""


class GoogleIdentity:
    """Finds credentials once: in a file of the settings, in that of `GOOGLE_APPLICATION_CREDENTIALS`, in what `gcloud`
    left, or on the machine itself if it is Google's.

    Raises:
        ConfigError: `google-auth` is not installed.
    """

    def __init__(self, credentials_file: str | None, environ: Mapping[str, str]) -> None:
        _require_google_auth()
        self._file = credentials_file
        self._environ = environ
        self._source: _Source | None = None
        self._asking = asyncio.Lock()

    async def token(self) -> str:
        """An access token with some minutes to live.

        Raises:
            ConfigError: there are no credentials, or they are not understood.
            ProviderError: Google does not give a token for them.
        """
        # One at a time: the second of two requests finds the token that the first one got.
        async with self._asking:
            transport = _through(asyncio.get_running_loop())
            return await asyncio.to_thread(lambda: self._found(transport).token(transport))

    async def project(self) -> str | None:
        """The project that the credentials belong to, if they say so.

        Raises:
            ConfigError: there are no credentials, or they are not understood.
        """
        async with self._asking:
            return (await asyncio.to_thread(self._found, _through(asyncio.get_running_loop()))).project

    def _found(self, transport: _Transport) -> _Source:
        if self._source is None:
            self._source = _find(self._file, self._environ, transport)
        return self._source


def _require_google_auth() -> None:
    from importlib.util import find_spec

    try:
        missing = find_spec("google.auth") is None
    except ModuleNotFoundError:  # there is no `google` at all
        missing = True
    if missing:
        raise ConfigError("Vertex AI needs the package `google-auth`.", hint=adding("vertex"))


def _find(file: str | None, environ: Mapping[str, str], transport: _Transport) -> _Source:
    # Not `google.auth.default`: it runs `gcloud`, and asks the network for seconds where there is nothing to find.
    named = environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    if file and file != named:
        return _from_file(Path(file).expanduser(), None)
    if named:
        return _from_file(Path(named), transport)
    login = Path(environ.get("CLOUDSDK_CONFIG") or Path.home() / ".config" / "gcloud", _LOGIN_FILE)
    if login.is_file():
        return _from_file(login, transport)
    host = _metadata_host(environ)
    if host is None:
        raise ConfigError("No credentials for Vertex AI.", hint=_WAYS)
    return _Metadata(host)


def _from_file(path: Path, transport: _Transport | None) -> _Source:
    """The credentials in a file.

    `transport` is for kinds that ask other services. Without it they are refused: a file that a configuration names
    may be somebody else's, and would say whom to ask.
    """
    import google.auth
    from google.auth.exceptions import GoogleAuthError
    from google.oauth2 import credentials, service_account

    # Its types do not say what these take.
    of_account: Any = service_account.Credentials.from_service_account_info
    of_user: Any = credentials.Credentials.from_authorized_user_info
    of_any: Any = google.auth.load_credentials_from_dict
    try:
        info = jsontext.loads(path.read_bytes())
        if not isinstance(info, dict):
            raise ValueError("it is not a JSON object")
        if info.get("type") == "service_account":
            return _Credentials(of_account(info, scopes=_SCOPES), info.get("project_id"))
        if info.get("type") == "authorized_user":
            return _Credentials(of_user(info, scopes=_SCOPES), info.get("quota_project_id"))
        if transport is not None:
            # It warns against files of others; this one is the user's.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                return _Credentials(*of_any(info, scopes=_SCOPES, request=transport))
    except (OSError, ValueError, GoogleAuthError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"The credentials in `{path}` cannot be used: {reason}", hint=_WAYS) from None
    raise ConfigError(
        f"The credentials in `{path}` are of the kind `{info.get('type')}`.",
        hint="Set `GOOGLE_APPLICATION_CREDENTIALS` to that file instead.",
    )


class _Credentials:
    """A token of `google-auth`."""

    def __init__(self, credentials: Any, project: str | None) -> None:
        self._credentials = credentials
        self.project = project

    def token(self, transport: _Transport) -> str:
        from google.auth.exceptions import GoogleAuthError

        # It calls a token invalid `RENEW_BEFORE_SECONDS` before its end.
        if not self._credentials.valid:
            try:
                self._credentials.refresh(transport)
            except GoogleAuthError as error:
                # The further arguments hold the answer, and who knows what else.
                reason = error.args[0] if error.args else type(error).__name__
                raise ProviderError(
                    f"Google did not issue a token: {reason}.",
                    retryable=error.retryable,
                    hint=f"If it stays so: {_WAYS}",
                ) from None
        return str(self._credentials.token)


class _Metadata:
    """A token of the machine's own service account."""

    def __init__(self, host: str) -> None:
        self._base = f"http://{host}/computeMetadata/v1"
        self._token = ""
        self._renew_at = 0.0
        self.project: str | None = self._get("/project/project-id").decode("utf-8", "replace") or None

    def token(self, _: _Transport) -> str:
        if time.monotonic() >= self._renew_at:
            asked_at = time.monotonic()
            try:
                answer = jsontext.loads(self._get("/instance/service-accounts/default/token"))
                self._token, seconds = str(answer["access_token"]), float(answer["expires_in"])
            except (ValueError, KeyError, TypeError):
                raise ProviderError("Google's metadata server did not issue a token.", retryable=True) from None
            self._renew_at = asked_at + seconds - RENEW_BEFORE_SECONDS
        return self._token

    def _get(self, path: str) -> bytes:
        http.load()
        import httpx

        try:
            # The environment's proxies cannot reach it.
            answer = httpx.get(
                self._base + path, headers=_METADATA_HEADERS, timeout=_METADATA_TIMEOUT_SECONDS, trust_env=False
            )
            answer.raise_for_status()
        except httpx.HTTPError as error:
            raise ProviderError(
                f"Google's metadata server does not answer: {error}", retryable=True, hint=_WAYS
            ) from None
        return answer.content


def _metadata_host(environ: Mapping[str, str]) -> str | None:
    """Where to ask, on a machine of Google's; None elsewhere, where the question would only take time."""
    named = environ.get("GCE_METADATA_HOST")
    if named or environ.get("K_SERVICE"):  # the latter: Cloud Run
        return named or _METADATA_HOST
    try:
        product = Path("/sys/class/dmi/id/product_name").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return _METADATA_HOST if product.startswith("Google") else None


def _through(loop: asyncio.AbstractEventLoop) -> _Transport:
    """What `google-auth` calls for HTTP, from its thread. (Its own ways need packages that nobody else here needs.)"""

    def ask(
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **_: Any,
    ) -> _Answer:
        question = _asked(method, url, body, dict(headers or {}), timeout or TOKEN_TIMEOUT_SECONDS)
        return asyncio.run_coroutine_threadsafe(question, loop).result()

    return ask


async def _asked(method: str, url: str, body: bytes | None, headers: dict[str, str], seconds: float) -> _Answer:
    http.load()
    import httpx
    from google.auth.exceptions import TransportError

    failed: Any = TransportError
    try:
        client = http.client()
    except ValueError as error:
        raise ConfigError(str(error)) from None
    try:
        async with asyncio.timeout(seconds), client:
            answer = await client.request(method, url, content=body, headers=headers)
    except (httpx.HTTPError, TimeoutError) as error:
        raise failed(f"{type(error).__name__}: {error}", retryable=True) from error
    return _Answer(answer.status_code, answer.headers, answer.content)
