"""How programs say that a session is gone. Each in its own words, on standard output or standard error.

Not all of them say it: Cursor and the older kimi-cli begin a new one instead, and aider has none.
"""

from __future__ import annotations

import re

from trunkline.base.escapes import without_escapes

#: The words, and who says them. An id stands where it stands in the program's text, so that no sentence of a model
#: about sessions in general is taken for one.
_DEAD = re.compile(
    r"""
      No\ conversation\ found\ with\ session\ ID:\ \S          # Claude Code
    | no\ rollout\ found\ for\ thread\ id\ \S                  # Codex
    | Error\ resuming\ session:\ (?:Invalid\ session\ identifier|No\ previous\ sessions\ found)   # Gemini CLI
    | ^\W*Error:\s+Session\ not\ found\b                       # opencode
    | No\ saved\ session\ found\ with\ ID\ \S                  # Qwen Code
    | failed\ to\ run\ prompt:\ Session\ "[^"\n]*"\ not\ found # Kimi Code
    | ^\W*No\ session\ found\ matching\ '                      # pi
    | Cannot\ resume\ session\ \S+\ -\ no\ such\ session       # goose, by id
    | No\ session\ found\ with\ name\ '                        # goose, by name
    | ^Session\ not\ found:\ `                                 # Trunkline's own agents
    """,
    re.VERBOSE | re.MULTILINE,
)


def is_dead_session(error: str) -> bool:
    """Whether the text says that the session does not exist (any more)."""
    return _DEAD.search(without_escapes(error)) is not None
