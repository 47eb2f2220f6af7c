"""Ways to log in to what an agent needs, such as the service of its model."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from trunkline.wires.acp.messages_start import AuthMethod


class LoginMethod:
    """A way to log in, and whether that has been done."""

    def __init__(self, told: AuthMethod, check: Callable[[], str | None]) -> None:
        """`check` gives what is still to be done; None if nothing is."""
        self.told = told
        self.check = check

    @property
    def id(self) -> str:
        """The method's name."""
        return cast("str", getattr(self.told, "id"))  # noqa: B009  # every child has one, and the family none
