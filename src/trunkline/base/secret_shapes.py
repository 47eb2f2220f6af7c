"""Secrets that nobody has told us, by how they look: keys of known services, private keys, passwords in addresses and
behind their names.

`base.redact` masks by value, and is never wrong. This may take an ordinary word for a password: it is for texts that
are kept for long and sent often, such as an agent's memory.
"""

from __future__ import annotations

import re

from trunkline.base.redact import MASK

#: Keys that can be told by their beginning.
_KEYS = (
    r"\bsk-[A-Za-z0-9_-]{20,}",
    r"\b[sr]k_live_[A-Za-z0-9]{10,}",
    r"\b(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    r"\bxox[a-z]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{35}",
    r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}",
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
)
#: What stands before a password: in an address, or its name. The password itself has letters and digits; a variable,
#: as `$TOKEN` or `{token}`, is none.
_NAMES = r"(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key)"
_PLACES = (
    r"(://[^\s/:@]{1,100}:)[^\s/@]{1,200}(?=@)",
    rf"(?i:({_NAMES}[\"'`]?\s{{0,5}}[:=]\s{{0,5}}[\"'`]?))(?=\S*\d)(?=\S*[A-Za-z])[^\s\"'`$<{{\[][^\s\"'`]{{7,200}}",
)
_SHAPES = re.compile("|".join((*_KEYS, *_PLACES)))


def masked(text: str) -> str:
    """The text without what looks like a secret."""
    return _SHAPES.sub(lambda found: f"{found[1] or found[2] or ''}{MASK}", text)
