"""Whether a failure means that a provider cannot take a part of the conversation: a picture, or reasoning sent back.

Everything is sent with every request, so what is refused once is refused ever after: without that part, the
conversation goes on. Few providers give that failure a name of its own, so their wordings count, too.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Literal

from trunkline.core.faults import ProviderError

#: What can be left out.
Part = Literal["pictures", "reasoning"]

#: Failures with a remedy of their own, whatever they say: keys, money, time and load.
_OTHER_STATUSES = frozenset({401, 402, 403, 407, 408, 425, 429, 529})

_REASONING_NAMES = frozenset({"invalid_encrypted_content"})
_REASONING = re.compile(
    r"encrypted content .*could not be"
    r"|item with id 'rs_.*not found"
    r"|of type 'reasoning' was provided without"
    r"|invalid `?signature`? in `?thinking`?"
    r"|thought[ _]signature.*(?:invalid|not valid|missing)"
)
_PICTURE_NAMES = frozenset(
    {"image_content_policy_violation", "image_file_too_large", "image_parse_error", "image_too_large", "invalid_image",
     "invalid_image_format", "invalid_base64_image", "unsupported_image_media_type"}
)  # fmt: skip
_PICTURE = re.compile(r"\bimages?\b|\bimage_url\b|\bimage input\b|\bvision\b")
_NOT_TAKEN = re.compile(
    r"not (?:support|process|enabled|valid|decode|accept|a multimodal)|unsupported|invalid|unable|cannot|corrupt|exceed"
    r"|too (?:large|many|big|small)|no endpoints|unknown variant|\bonly\b"
)


class PartRefused(ProviderError):
    """A part of the conversation is not taken: without it, the rest may be."""

    def __init__(self, message: str, what: Part) -> None:
        super().__init__(message if message[-1:] in (".", "!", "?") else f"{message}.", retryable=False)
        self.what: Part = what


def refused_part(words: str, names: Set[str] = frozenset(), status: int | None = None) -> Part | None:
    """What is not taken; None if that is not what is wrong.

    Args:
        words: what the provider says.
        names: what it calls the failure.
        status: of the answer, if that is what tells of the failure.
    """
    if status in _OTHER_STATUSES:
        return None
    words = " ".join(words.lower().split())
    if names & _REASONING_NAMES or _REASONING.search(words):
        return "reasoning"
    if names & _PICTURE_NAMES or (_PICTURE.search(words) and _NOT_TAKEN.search(words)):
        return "pictures"
    return None
