"""One fault of each kind, as it may be raised."""

from __future__ import annotations

from trunkline.core.faults import Fault, ProtocolError


def kinds(above: type[Fault] = Fault) -> dict[str, type[Fault]]:
    """A class for each kind of the table: the first that has it."""
    found: dict[str, type[Fault]] = {}
    for child in above.__subclasses__():
        if child is not ProtocolError and child.__module__ == Fault.__module__:
            found.setdefault(child.kind, child)
        found = kinds(child) | found
    return found
