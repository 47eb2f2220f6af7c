"""The body of a request: JSON, or a form with a file; read within bounds."""

from __future__ import annotations

from starlette.requests import Request

from trunkline.base.asgi_answers import JSON
from trunkline.base.asgi_body import bounded_body
from trunkline.base.multipart import FormField, parse
from trunkline.wires.openai.codec import Params, decode
from trunkline.wires.openai.errors import OpenAIRefused, bad
from trunkline.wires.openai.messages import BODY_SECONDS

_FORM = "multipart/form-data"
_UNSUPPORTED = 415


async def json_params(request: Request, most: int, *, may_be_empty: bool = False) -> Params:
    """The members of a body of at most so many bytes.

    Raises:
        Refused: it is too large or too slow, or no JSON object.
    """
    kind = _kind(request)
    if kind and kind != JSON and not kind.endswith("+json"):
        raise _wrong_kind(f"The body must be JSON: say `Content-Type: {JSON}`.")
    body = await bounded_body(request, most, BODY_SECONDS)
    return Params({}) if may_be_empty and not body.strip() else decode(body)


async def form_fields(request: Request, most: int) -> dict[str, FormField]:
    """The fields of a form of at most so many bytes.

    Raises:
        Refused: it is too large or too slow, or no form.
    """
    if _kind(request) != _FORM:
        raise _wrong_kind(f"The body must be a form with a file: say `Content-Type: {_FORM}`.")
    body = await bounded_body(request, most, BODY_SECONDS)
    try:
        return parse(body, request.headers["content-type"])
    except ValueError as error:
        raise bad(None, f"The form cannot be read: {error}.", "invalid_form") from None


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _wrong_kind(told: str) -> OpenAIRefused:
    return OpenAIRefused(_UNSUPPORTED, told, headers={"connection": "close"})
