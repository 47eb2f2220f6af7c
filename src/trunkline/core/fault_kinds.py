"""The fault that an exception amounts to, and the one that an event tells of by the name of its kind."""

from __future__ import annotations

from collections import deque
from functools import cache

from trunkline.core.faults import AgentCrashed, AgentFailed, Fault


def of(error: BaseException) -> Fault:
    """The fault that an exception amounts to: itself, or an `AgentCrashed` that names it."""
    if isinstance(error, Fault):
        return error
    return AgentCrashed(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def of_kind(kind: str, message: str, *, retryable: bool | None = None) -> Fault:
    """The fault that a `Failed` event tells of; one of a kind that nobody knows is an `AgentFailed`."""
    return _classes().get(kind, AgentFailed)(message, retryable=retryable)


@cache
def _classes() -> dict[str, type[Fault]]:
    """The class of each kind: of a class and its children of the same kind, the first."""
    found: dict[str, type[Fault]] = {}
    waiting: deque[type[Fault]] = deque([Fault])
    while waiting:
        waiting.extend((each := waiting.popleft()).__subclasses__())
        if "kind" in vars(each) and each is not Fault and each.__module__ == Fault.__module__:
            found.setdefault(each.kind, each)
    return found
