"""The contracts that come with the program: each with its source, and with what the compiler made of it."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from trunkline.base import jsontext
from trunkline.base.values import Value


class Artefact(Value):
    """A compiled contract."""

    name: str
    abi: list[dict[str, Any]]
    bytecode: str
    source: str


def artefact(name: str = "Vault") -> Artefact:
    """One of the contracts in `demo/contracts`."""
    folder = files("trunkline.demo") / "contracts"
    compiled = jsontext.loads((folder / f"{name}.json").read_bytes())
    source = (folder / f"{name}.sol").read_text(encoding="utf-8")
    return Artefact(name, compiled["abi"], compiled["bytecode"], source)
