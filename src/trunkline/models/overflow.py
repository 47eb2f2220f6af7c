"""Whether a failure means that the conversation is too long, which is mended by shortening it and by nothing else.

Few providers give that failure a name of its own, so their wordings count, too: those of failures that no other remedy
fits. A limit on the tokens of a minute is never meant: that one passes by itself.
"""

from __future__ import annotations

import re
from collections.abc import Set

from trunkline.core.faults import TooLong

#: What to do next, for people.
HINT = "Use `/compact`, begin another session, or choose a model with a larger window."

#: The status for a request that is too large.
_TOO_LARGE = 413

#: What providers call it.
_NAMES = frozenset(
    {"context_length_exceeded", "context_window_exceeded", "exceed_context_size_error", "prompt_too_long",
     "request_too_large"}
)  # fmt: skip

#: Failures with a remedy of their own, whatever they say about tokens: keys, money, names, time and load.
_OTHER_STATUSES = frozenset({401, 402, 403, 404, 407, 408, 425, 429, 529})
_OTHER_NAMES = frozenset(
    {"authentication_error", "insufficient_quota", "overloaded_error", "rate_limit_error", "rate_limit_exceeded",
     "servicequotaexceededexception", "throttlingexception"}
)  # fmt: skip
_OTHER_WORDS = re.compile(r"per (?:minute|hour|day|min\b)|rate limit|quota|please wait")

#: The window is named in many ways, and so is that it is not large enough.
_WINDOW = re.compile(r"context[ _-]?(?:size|window|length|limit)")
_NOT_ENOUGH = re.compile(r"exceed|too (?:long|large|many|big)|larger|greater|longer|maximum|overflow|reduce")

_WORDINGS = re.compile(
    r"(?:prompt|input|conversation|request|messages) (?:is |are )?too long"
    r"|invalid 'messages\S*: (?:string|array) too long"
    r"|exceeds? the maximum number of (?:input )?tokens"
    r"|too many (?:input |prompt )?tokens"
    r"|maximum prompt length"
    r"|exceeded model token limit"
    r"|prompt token count of \d+ exceeds"
    r"|reduce the length of the (?:messages|prompt|input)"
    r"|`inputs` tokens \+ `max_new_tokens` must be"
)


def is_too_long(words: str, names: Set[str] = frozenset(), status: int | None = None) -> bool:
    """Whether the conversation is too long for the model, or for one request to its service.

    Args:
        words: what the provider says.
        names: what it calls the failure.
        status: of the answer, if that is what tells of the failure.
    """
    names = {name.lower() for name in names}
    if status == _TOO_LARGE or names & _NAMES:
        return True
    words = " ".join(words.lower().split())
    if status in _OTHER_STATUSES or names & _OTHER_NAMES or _OTHER_WORDS.search(words):
        return False
    if _WINDOW.search(words) and _NOT_ENOUGH.search(words):
        return True
    return _WORDINGS.search(words) is not None


class PromptTooLong(TooLong):
    """It is the prompt that does not fit: with less in it, it may. `tokens`: what it has; 0 if nobody says."""

    def __init__(self, message: str, tokens: int = 0, *, hint: str | None = None) -> None:
        super().__init__(message, retryable=False, hint=hint)
        self.tokens = tokens


def too_long(message: str, tokens: int = 0) -> PromptTooLong:
    """The fault of a conversation, with what to do next."""
    return PromptTooLong(message if message[-1:] in (".", "!", "?") else message + ".", tokens, hint=HINT)
