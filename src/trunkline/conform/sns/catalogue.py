"""All checks of networks, in the order in which they are reported."""

from __future__ import annotations

# Importing a module registers its checks.
from trunkline.conform.sns import (
    canonical,
    errors,
    nonces,
    permissions,
    reading,
    signatures,
    statuses,
    times,
    tokens,
    writing,
)
from trunkline.conform.sns.suite import SUITE

__all__ = ["SUITE"]

_MODULES = (canonical, errors, nonces, permissions, reading, signatures, statuses, times, tokens, writing)

#: The second part of the ids, in the order in which a runner meets them.
_GROUPS = ("read", "token", "nonce", "write", "sign", "canon", "time", "perm", "status", "error", "cors")

SUITE.arrange(lambda check: _GROUPS.index(check.id.split(".")[1]))
