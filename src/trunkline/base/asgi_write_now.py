"""An extension of ASGI: an answer in chunks of HTTP/1.1, of which some are written without waiting.

    write_now = scope.get("extensions", {}).get(WRITE_NOW, never)
    if not write_now(framed):
        await send({"type": "http.response.body", "body": data, "more_body": True})

For what many clients are sent at once: the chunk is framed once for all of them, and nobody's task has to be woken.
"""

from __future__ import annotations

from collections.abc import Callable

#: Its name in the scope's `extensions`.
WRITE_NOW = "trunkline.write_now"

#: Writes a chunk with its frame, after the answer's head was sent, and says whether it did: it does not while the
#: client is behind, nor where the answer is not in chunks.
WriteNow = Callable[[bytes], bool]


def never(framed: bytes) -> bool:
    """For servers without it."""
    return False
