"""How a service of ours answers: with a JSON object, or a refusal with its status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trunkline.base import jsontext

if TYPE_CHECKING:
    from starlette.responses import Response

JSON = "application/json"


class Refused(Exception):
    """A request that is not granted. It becomes an error with that status, in the form of the service.

    Work that runs behind a signature raises it before its first write: the nonce that was used stays used.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None, *, why: str = "") -> None:
        """`why`: a word for whoever counts refusals of this kind."""
        super().__init__(message)
        self.why = why
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


def answer(members: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON object as a response."""
    from starlette.responses import Response

    return Response(jsontext.dumps(members), status, headers, JSON)


def error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """A refusal as a response, where the text is all that there is to say: `{"error": text}`."""
    return answer({"error": message}, status, headers)
