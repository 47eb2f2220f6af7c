"""Scenes that hold the cells of the ledger which are about no event: one for each, and it says what it found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from trunkline.wires.ledger import CONCEPTS, Fate

W = TypeVar("W")
Scene = Callable[[W], Awaitable[Fate]]

#: What is no event.
OTHERS = tuple(concept.name for concept in CONCEPTS if concept.group != "events")


class Scenes(Generic[W]):
    """The scenes of a wire, by concept."""

    def __init__(self) -> None:
        self.by_concept: dict[str, Scene[W]] = {}

    def of(self, *concepts: str) -> Callable[[Scene[W]], Scene[W]]:
        """Enter a scene."""

        def enter(scene: Scene[W]) -> Scene[W]:
            self.by_concept.update(dict.fromkeys(concepts, scene))
            return scene

        return enter


def flags_of(make_parser: Callable[[], object]) -> set[str]:
    """The long options of a command."""
    actions = getattr(make_parser(), "_actions", ())
    return {flag for action in actions for flag in action.option_strings if flag.startswith("--")}
