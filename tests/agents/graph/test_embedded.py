"""Embedded storages: records, fields, filters and search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trunkline.agents.graph.embedded import EmbeddedStorage
from trunkline.agents.graph.fields import FieldError, columns, read_fields
from trunkline.agents.graph.filters import MAX_DEPTH, MAX_NODES, FilterError, compile_filter
from trunkline.agents.graph.host import LocalHost
from trunkline.agents.graph.shelf import Shelf
from trunkline.core.fault_table import form_of
from trunkline.core.faults import BadEmbeddedName, Fault, OutsideStorage, StorageMissing
from trunkline.core.graph.hosting import EmbeddedStorageDescription

FIELDS = [
    {"name": "level", "type": "int", "default": 1},
    {"name": "weight", "type": "float", "optional": True},
    {"name": "label", "type": "string", "default": ""},
    {"name": "secret", "type": "bool", "default": False},
    {"name": "tags", "type": "set<string>", "default": []},
    {"name": "hidden", "type": "int", "default": 0, "filterable": False},
]
RECORDS = [
    {"id": "mill", "text": "The old mill stands by the river.", "metadata": {"level": 1, "tags": ["place", "north"]}},
    {"id": "wyrm", "text": "A wyrm sleeps under the mountain.", "metadata": {"level": 9, "secret": True, "weight": 5}},
    {"id": "smith", "text": "The smith sells iron swords.", "metadata": {"level": 2, "label": "buy", "weight": 0.5}},
]


def write(root: Path, records: Any = RECORDS, fields: Any = FIELDS, **more: Any) -> None:
    described = {"version": 1, "embedding_model": "mini", "records_file": "records.json", "fields": fields, **more}
    (root / "kb").mkdir(exist_ok=True)
    (root / "kb" / "kb.json").write_text(json.dumps({key: each for key, each in described.items() if each is not None}))
    (root / "kb" / "records.json").write_text(json.dumps(records))


async def kb(root: Path) -> EmbeddedStorage:
    write(root)
    return await LocalHost(Shelf(str(root))).embedded("kb/kb.json")


async def test_the_nearest_records_come_first(tmp_path: Path) -> None:
    storage = await kb(tmp_path)
    found = await storage.search("Where is the old mill?", 2)
    assert (len(found), found[0].id) == (2, "mill")
    assert 0 < found[0].distance < found[1].distance
    (exact,) = await storage.search(str(RECORDS[2]["text"]), 1)
    assert (exact.id, exact.index) == ("smith", 2)
    assert exact.distance < 1e-5
    assert (storage.record_count, storage.dimensions) == (3, 384)
    assert len(await storage.search("nothing alike", 1000)) == 3


def know(field: str) -> dict[str, str]:
    return {"knowledge": field}


def value(literal: Any) -> dict[str, Any]:
    return {"value": literal}


def op(name: str, left: Any, right: Any) -> dict[str, Any]:
    return {"op": name, "lhs": left, "rhs": right}


def within(needle: Any, haystack: Any) -> dict[str, Any]:
    return {"op": "in", "needle": needle, "haystack": haystack}


ALL_COLUMNS = columns(read_fields(FIELDS), [record["metadata"] for record in RECORDS])  # type: ignore[misc]


def matches(tree: Any) -> list[bool]:
    predicate = compile_filter(json.dumps(tree), ALL_COLUMNS)
    assert predicate is not None
    return [bool(each) for each in predicate(3)]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (op("le", know("level"), value(2)), [1, 0, 1]),
        (op("gt", know("level"), value(1.5)), [0, 1, 1]),
        (op("eq", know("label"), value("buy")), [0, 0, 1]),
        (op("eq", know("secret"), value(True)), [0, 1, 0]),
        (op("lt", know("weight"), know("level")), [0, 1, 1]),
        (op("ne", know("weight"), value(5)), [0, 0, 1]),
        ({"op": "not", "arg": op("eq", know("weight"), value(5))}, [1, 0, 1]),
        (within(value("north"), know("tags")), [1, 0, 0]),
        (within(know("label"), value(["buy", "sell"])), [0, 0, 1]),
        (within(know("label"), know("tags")), [0, 0, 0]),
        ({"op": "and", "args": [op("ge", know("level"), value(2)), op("eq", know("secret"), value(False))]}, [0, 0, 1]),
        ({"op": "or", "args": [op("eq", know("level"), value(9)), op("eq", know("level"), value(1))]}, [1, 1, 0]),
        (op("eq", value(1), value(1.0)), [1, 1, 1]),
    ],
)
def test_a_filter_holds_for_the_records_that_fit(tree: Any, expected: list[int]) -> None:
    assert matches(tree) == [bool(each) for each in expected]


def nested(depth: int) -> Any:
    tree: Any = op("eq", value(1), value(1))
    for _ in range(depth - 1):
        tree = {"op": "not", "arg": tree}
    return tree


@pytest.mark.parametrize(
    ("tree", "told"),
    [
        (op("eq", know("label"), value(1)), "filter.type_mismatch: at rhs: cannot compare string with int"),
        (
            {"op": "and", "args": [nested(1), op("lt", know("label"), value("x"))]},
            "filter.type_mismatch: at args[1].lhs",
        ),
        (op("eq", know("secret"), value(1)), "filter.type_mismatch"),
        (op("eq", value(["a"]), know("tags")), "filter.type_mismatch: at lhs: a list can only be a haystack"),
        (op("lt", know("secret"), value(True)), "filter.type_mismatch"),
        (op("eq", know("level"), value(1 << 70)), "filter.type_mismatch: at rhs"),
        (op("eq", know("level"), value(None)), "filter.type_mismatch"),
        (within(value(1), know("tags")), "filter.type_mismatch: at needle"),
        (within(value("a"), know("label")), "filter.type_mismatch: at haystack"),
        (op("eq", {"agent": "mood"}, value(1)), "filter.unknown_namespace: at lhs"),
        (op("eq", know("nope"), value(1)), "filter.unknown_field: at lhs"),
        (op("eq", know("hidden"), value(1)), "filter.not_filterable: at lhs"),
        (op("eq", {}, value(1)), "filter.bad_operand: at lhs"),
        ({"op": "xor", "args": []}, "filter.unknown_op: at op"),
        ({"op": "and", "args": []}, "filter.bad_node: at args"),
        ({"op": "eq", "lhs": value(1)}, "filter.bad_node: at rhs: is missing"),
        ({"op": "not", "arg": nested(1), "args": []}, "filter.bad_node: at args"),
        ({"level": {"lte": 1}}, "filter.unknown_op"),
        ([], "filter.bad_node: at the top"),
        (nested(MAX_DEPTH + 1), "filter.too_deep"),
        ({"op": "or", "args": [nested(1)] * MAX_NODES}, "filter.too_large"),
    ],
)
def test_what_is_no_filter_is_refused_with_its_place(tree: Any, told: str) -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter(json.dumps(tree), ALL_COLUMNS)
    assert str(caught.value).startswith(told)


def test_filters_at_their_limits_are_fine_and_garbage_is_not() -> None:
    assert matches(nested(MAX_DEPTH)) == [False] * 3
    assert matches({"op": "or", "args": [nested(1)] * (MAX_NODES - 1)}) == [True] * 3
    assert compile_filter("  ", ALL_COLUMNS) is None
    for text in ("{", "[" * 100_000, '{"op": NaN}', "\ud800"):
        with pytest.raises(FilterError, match="bad_json"):
            compile_filter(text, ALL_COLUMNS)


async def test_a_filter_excludes_before_the_nearest_are_counted(tmp_path: Path) -> None:
    storage = await kb(tmp_path)
    predicate = storage.compile_filter(json.dumps(op("eq", know("level"), value(9))))
    assert [chunk.id for chunk in await storage.search("Where is the old mill?", 1, predicate)] == ["wyrm"]
    nothing = storage.compile_filter(json.dumps(op("gt", know("level"), value(99))))
    assert await storage.search("mill", 1, nothing) == []


@pytest.mark.parametrize(
    "fields",
    [
        {},
        [{"name": "a", "type": "int"}],
        [{"name": "a", "type": "int", "default": 1, "optional": True}],
        [{"name": "a", "type": "int", "default": "x"}],
        [{"name": "a", "type": "int", "default": None}],
        [{"name": "a", "type": "date", "optional": True}],
        [{"name": "", "type": "int", "optional": True}],
        [{"name": "a", "type": "int", "optional": True}] * 2,
        [{"name": "a", "type": "int", "optional": True, "fliterable": True}],
        [7],
    ],
)
def test_fields_that_are_none_are_refused(fields: Any) -> None:
    with pytest.raises(FieldError):
        read_fields(fields)


@pytest.mark.parametrize(
    ("records", "more"),
    [
        ([], {}),
        ({}, {}),
        ([{"id": "a"}], {}),
        ([{"id": 1, "text": "x"}], {}),
        ([{"id": "a", "text": "x", "metadata": {"level": "high"}}], {}),
        ([{"id": "a", "text": "x", "metadata": {"level": 1 << 63}}], {}),
        ([{"id": "a", "text": "x", "metadata": []}], {}),
        (RECORDS, {"version": 2}),
        (RECORDS, {"embedding_model": ""}),
        (RECORDS, {"records_file": None}),
        (RECORDS, {"fields": [{"name": "x"}]}),
    ],
)
async def test_records_that_do_not_fit_are_refused(tmp_path: Path, records: Any, more: dict[str, Any]) -> None:
    write(tmp_path, records, **more)
    with pytest.raises(Fault) as caught:
        await LocalHost(Shelf(str(tmp_path))).embedded("kb/kb.json")
    assert form_of(caught.value.kind).tryll == 8003
    assert "kb/kb.json" in caught.value.message


async def test_a_description_cannot_point_out_of_the_folder(tmp_path: Path) -> None:
    for member in ("records_file", "index_file"):
        write(tmp_path, **{member: "../../x.json"})
        with pytest.raises(OutsideStorage):
            await LocalHost(Shelf(str(tmp_path))).embedded("kb/kb.json")
    write(tmp_path, records_file="gone.json")
    with pytest.raises(StorageMissing):
        await LocalHost(Shelf(str(tmp_path))).embedded("kb/kb.json")


async def test_plain_texts_are_numbered_and_progress_is_told(tmp_path: Path) -> None:
    host = LocalHost(Shelf(str(tmp_path)))
    texts = tuple(f"text number {number}" for number in range(70))
    heard: list[tuple[int, int]] = []
    request = EmbeddedStorageDescription("lore", "", texts, "any")
    made = await host.shelf.create_embedded(request, host.embedding, lambda done, total: heard.append((done, total)))
    assert heard == [(32, 70), (64, 70), (70, 70)]
    assert made.records.ids[69] == "69"
    assert await host.embedded("lore") is made
    host.shelf.destroy_embedded("lore")
    with pytest.raises(BadEmbeddedName):
        host.shelf.destroy_embedded("lore")


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (EmbeddedStorageDescription("", "", ("a",), "m"), 8001),
        (EmbeddedStorageDescription("taken", "", ("a",), "m"), 8002),
        (EmbeddedStorageDescription("s", "", (), "m"), 8003),
        (EmbeddedStorageDescription("s", "", ("a",), ""), 8003),
        (EmbeddedStorageDescription("s", "kb/kb.json", ("a",), "m"), 8003),
        (EmbeddedStorageDescription("s", "gone.json"), 8003),
        (EmbeddedStorageDescription("kb/kb.json", "", ("a",), "m"), 7004),
    ],
)
async def test_embedded_storages_that_cannot_be_are_refused(
    tmp_path: Path, request_: EmbeddedStorageDescription, code: int
) -> None:
    write(tmp_path)
    host = LocalHost(Shelf(str(tmp_path)))
    taken = EmbeddedStorageDescription("taken", "", ("a",), "m")
    await host.shelf.create_embedded(taken, host.embedding)
    with pytest.raises(Fault) as caught:
        await host.shelf.create_embedded(request_, host.embedding)
    assert form_of(caught.value.kind).tryll == code
