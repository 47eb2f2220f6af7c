"""How a bad habit of a host is told: a class of host, and the checks that must notice it."""

from __future__ import annotations

TYPE_CHECKING = False  # not of `typing`: it would take a tenth of the start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from tests.conform.jsonstream_host.good_host import GoodHost

    H = TypeVar("H", bound=type[GoodHost])

HABITS: dict[str, tuple[str, ...]] = {}


def habit(*fails: str) -> Callable[[H], H]:
    def register(host: H) -> H:
        HABITS[host.__name__] = fails
        return host

    return register
