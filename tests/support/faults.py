"""Faults, as they may be raised and as clients of the Tryll wire hear of them."""

from __future__ import annotations

from trunkline.core.fault_table import form_of
from trunkline.core.faults import Fault, ProtocolError


def kinds(above: type[Fault] = Fault) -> dict[str, type[Fault]]:
    """A class for each kind of the table: the first that has it."""
    found: dict[str, type[Fault]] = {}
    for child in above.__subclasses__():
        if child is not ProtocolError and child.__module__ == Fault.__module__:
            found.setdefault(child.kind, child)
        found = kinds(child) | found
    return found


def number(fault: Fault | None) -> int:
    """The number of a fault on the Tryll wire; 0 for none."""
    return 0 if fault is None else form_of(fault.kind).tryll
