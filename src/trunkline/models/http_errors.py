"""What a provider's failures amount to: one `ProviderError` each, in words, with a true `retryable`.

A conversation that is too long is a `TooLong`, and one of which a part is not taken a `PartRefused`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base import jsontext
from trunkline.base.posting import ConnectionFailed
from trunkline.core.faults import ProviderError
from trunkline.models.endpoint import is_own_machine, without_secrets
from trunkline.models.overflow import is_too_long, too_long
from trunkline.models.refused import PartRefused, refused_part

#: How much of a provider's words is repeated; and how much is kept until the secrets are out of it.
SHOWN_CHARS = 500
KEPT_CHARS = 16 * 1024

#: Failures that may pass by themselves, besides everything from 500 on: timeout, too early, too many requests.
_PASSING = frozenset({408, 425, 429})

#: Names of failures that will not pass however often one asks, whatever their status says.
_LASTING = frozenset(
    {
        "authentication_error", "billing_error", "content_policy_violation", "context_length_exceeded",
        "insufficient_quota", "invalid_api_key", "invalid_prompt", "invalid_request_error", "model_not_found",
        "not_found_error", "permission_error", "request_too_large",
    }
)  # fmt: skip

#: Where people say the address of a provider, unless they are told otherwise.
BASE_URL = "--base-url"


class ServiceError(ProviderError):
    """A provider's refusal. `after`: seconds that it asks us to wait. `status`: of its answer, or in it, if any."""

    def __init__(
        self,
        message: str,
        *,
        retryable: bool,
        hint: str | None = None,
        after: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message, retryable=retryable, hint=hint)
        self.after = after
        self.status = status


class NobodyListens(ProviderError):
    """No server is there on this machine. It comes when somebody starts it, not by waiting."""


def status_fault(status: int, headers: Mapping[str, str], body: bytes, hints: Mapping[int, str]) -> ProviderError:
    """The fault of an answer whose status is not success. `hints` say what to do next, by status."""
    data = _parsed(body)
    text = _words(data) or _plain(body) or "no details"
    if 300 <= status < 400:
        text = f"redirected to `{without_secrets(headers.get('location', ''))}`, where a key is not sent along"
    message, names = f"API error {status}: {shown(text)}", _names(data)
    if is_too_long(text, names, status):
        return too_long(message, _tokens(data))
    if (part := refused_part(text, names, status)) is not None:
        return PartRefused(message, part)
    should = headers.get("x-should-retry")
    passing = (status in _PASSING or status >= 500) and not _LASTING & names
    retryable = passing if should not in ("true", "false") else should == "true"
    after = retry_after(headers) if retryable else None
    hint = hints.get(status)
    if hint is not None and message[-1] not in ".!?":
        message += "."
    return ServiceError(message, retryable=retryable, hint=hint, after=after, status=status)


def stream_fault(error: Any) -> ProviderError:
    """The fault of an error that came inside of an answer that had begun well, or as its only content."""
    names, text = _names({"error": error}), _words({"error": error}) or "no details"
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) else None
    if is_too_long(text, names, status):
        return too_long(f"API error: {shown(text)}", _tokens({"error": error}))
    if (part := refused_part(text, names, status)) is not None:
        return PartRefused(f"API error: {shown(text)}", part)
    lasting = bool(_LASTING & names)
    if status is not None and 400 <= status < 500:
        lasting = lasting or status not in _PASSING
    return ServiceError(f"API error: {shown(text)}", retryable=not lasting, status=status)


def broken_off(reason: str) -> ProviderError:
    """The fault of a stream that ended before its time."""
    return ProviderError(f"Connection error: {reason}", retryable=True)


def connection_fault(error: ConnectionFailed, address: str = BASE_URL) -> ProviderError:
    """The fault of a connection that was not made, or was lost.

    Args:
        address: where people say where the provider is.
    """
    place = error.place
    reason = " ".join(str(error).split())
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        hint = "If your proxy signs it, set `SSL_CERT_FILE` to the certificate of its authority."
        return ProviderError(
            f"Connection error: the certificate of `{place}` is not trusted.", retryable=False, hint=hint
        )
    match error.failure:
        case "late":
            reason = f"`{place}` did not answer in time"
        case "silent":
            reason = f"`{place}` went silent"
        case "proxy":
            reason = f"the proxy refused: {reason}"
        case "refused" if is_own_machine(f"http://{place}"):
            hint = f"Start the server there, or say where it is with `{address}`."
            return NobodyListens(f"Connection error: nothing listens at `{place}`.", retryable=True, hint=hint)
        case "insecure":
            hint = "If the server there speaks no TLS, its address begins with `http:`."
            said = reason or "no details"
            return ProviderError(
                f"Connection error: no secure connection to `{place}` ({said}).", retryable=False, hint=hint
            )
        case "refused" | "unreachable":
            reason = f"cannot reach `{place}`: {reason or 'no details'}"
        case _:
            reason = reason or f"`{place}` closed the connection"
    return ProviderError(f"Connection error: {shown(reason)}", retryable=error.failure != "unsendable")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a provider asks to be left alone for; None when it does not say, or nothing sensible."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return _sensible(float(milliseconds) / 1000)
        if (value := headers.get("retry-after")) is None:
            return None
        try:
            return _sensible(float(value))
        except ValueError:
            return _sensible(_until(value))
    except (ValueError, TypeError):
        return None


def shown(text: str) -> str:
    """Somebody else's words as part of ours: in one line. `clipped` follows, when the secrets are out."""
    return " ".join(text.split())[:KEPT_CHARS]


def clipped(message: str) -> str:
    """A message that is not too long."""
    return message if len(message) <= SHOWN_CHARS else message[:SHOWN_CHARS] + "..."


def _until(date: str) -> float:
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    then = parsedate_to_datetime(date)
    return (then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds()


def _sensible(seconds: float) -> float | None:
    # Not-a-number compares false to everything.
    return seconds if 0 < seconds < float("inf") else None


def _parsed(body: bytes) -> Any:
    try:
        data = jsontext.loads(body)
    except ValueError:
        return None
    # Google's services put one error in a list.
    return data[0] if isinstance(data, list) and data else data


def _words(data: Any) -> str:
    """What a provider says about an error, wherever it puts it."""
    if isinstance(data, str):
        return data
    if not isinstance(data, dict):
        return ""
    for member in ("error", "message", "Message", "detail", "msg", "error_description"):
        value = data.get(member)
        if isinstance(value, list) and value:
            value = value[0]
        if words := _words(value):
            return words
    return ""


def _names(data: Any) -> frozenset[str]:
    """What a provider calls an error."""
    error = data.get("error") if isinstance(data, dict) else None
    if not isinstance(error, dict):
        return frozenset()
    return frozenset(str(error[member]) for member in ("type", "code") if isinstance(error.get(member), str))


def _tokens(data: Any) -> int:
    """The tokens of a prompt that is too long, where a server counts them for us; else 0."""
    error = data.get("error") if isinstance(data, dict) else None
    told = error.get("n_prompt_tokens") if isinstance(error, dict) else None
    return told if type(told) is int and told > 0 else 0


def _plain(body: bytes) -> str:
    """A body that is no JSON, for people: the title of a page, else its text."""
    text = body.decode("utf-8", "replace").strip()
    if text.startswith("<"):
        lower = text.lower()
        start, end = lower.find("<title>"), lower.find("</title>")
        return text[start + len("<title>") : end] if 0 <= start < end else "a web page"
    return text
