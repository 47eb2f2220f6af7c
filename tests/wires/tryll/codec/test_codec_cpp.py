"""The same bytes, understood by C++: a reader built from the schema with the system's compiler and headers."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require
from tests.support.flatc import SCHEMA
from tests.wires.tryll.samples import ALL
from trunkline.wires.tryll.codec import decode, encode, frame
from trunkline.wires.tryll.codec.shapes import Field, shape_of, tag_of
from trunkline.wires.tryll.codec.writer import write
from trunkline.wires.tryll.messages import (
    AnswerText,
    Message,
    NodeEvent,
    NodeEventKeyValue,
    SendMessageRequest,
    Table,
    TurnComplete,
    TurnStatus,
)

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

SOURCE = Path(__file__).parent / "reader.cpp"

TEXTS = ("", "a", "abcdefg", "grüß dich", "\N{GRINNING FACE}" * 50)
HOT: list[Message] = [
    message
    for text in TEXTS
    for message in (
        SendMessageRequest(2**64 - 1, 1, text),
        AnswerText(1, 2, text, True, False),
        AnswerText(1, 2, text, False, True),
        TurnComplete(1, 2, TurnStatus.ERROR, text, -1, 3, 4),
        NodeEvent(1, text, "type"),
        NodeEvent(1, "node", text, (NodeEventKeyValue("key", text), NodeEventKeyValue(text, "value"))),
    )
]


def system_flatc() -> str:
    """The compiler that the system's headers belong to; another one in PATH is not it."""
    found = shutil.which("flatc", path="/usr/bin:/usr/local/bin")
    headers = any(Path(root, "flatbuffers/flatbuffers.h").exists() for root in ("/usr/include", "/usr/local/include"))
    there = found is not None and headers and shutil.which("g++") is not None
    require("a C++ reader", there, "apt-get install flatbuffers-compiler libflatbuffers-dev g++")
    assert found is not None
    return found


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program."""
    folder = tmp_path_factory.mktemp("cpp")
    subprocess.run([system_flatc(), "--cpp", "-o", str(folder), str(SCHEMA)], check=True, capture_output=True)
    program = folder / "reader"
    command = ["g++", "-std=c++17", "-O0", "-I", str(folder), "-o", str(program), str(SOURCE)]
    subprocess.run(command, check=True, capture_output=True)
    return program


def run(reader: Path, payloads: list[bytes]) -> tuple[list[str], list[bytes]]:
    """What it says of our frames, and its own."""
    stream = b"".join(map(frame, payloads))
    done = subprocess.run([reader], input=stream, capture_output=True, check=True, timeout=60)
    ours, own = done.stdout.decode().split("own\n")
    return ours.splitlines(), [bytes.fromhex(line)[4:] for line in own.splitlines()]


def told(message: Message) -> str:
    """What the program prints for a message."""
    words: list[Any] = [tag_of("MessageBody", message)]
    if isinstance(message, NodeEvent):
        words += [message.agent_id, message.node_name, message.event_type]
        words += [text for pair in message.kv_pairs for text in (pair.key, pair.value)]
    elif isinstance(message, SendMessageRequest | AnswerText | TurnComplete):
        words += [getattr(message, name) for name in message.__fields__]
    return " ".join((word.encode().hex() or "-") if isinstance(word, str) else str(int(word)) for word in words)


def test_the_frames_of_a_turn_pass_its_verifier_and_mean_the_same(reader: Path) -> None:
    for make in (encode, write):
        said, _ = run(reader, [make(message) for message in HOT])
        assert said == list(map(told, HOT))


def test_every_other_frame_passes_its_verifier_too(reader: Path) -> None:
    for make in (encode, write):
        said, _ = run(reader, [make(message) for message in ALL])
        assert said == list(map(told, ALL))


def test_it_refuses_what_we_refuse(reader: Path) -> None:
    payload = encode(SendMessageRequest(1, 2, "hello"))
    broken = [payload[:40], payload.replace(b"hello\0", b"hello!"), bytes(64), b"\xff" * 64]
    assert run(reader, broken)[0] == ["refused"] * len(broken)


def test_we_understand_what_it_writes(reader: Path) -> None:
    expected: list[Message] = []
    for text in ("", "a", "abcdefg", "grüß dich"):
        pairs = (NodeEventKeyValue("key", text), NodeEventKeyValue(text))
        expected += [
            SendMessageRequest(1, 2**64 - 1, text),
            AnswerText(1, 2, text, True, False),
            TurnComplete(1, 2, TurnStatus.CANCELLED, text, 3),
            NodeEvent(2, "node", text, pairs),
        ]
    _, own = run(reader, [])
    for _ in range(2):
        assert [decode(payload) for payload in own] == expected


def test_the_compiler_prints_every_frame_as_it_is(tmp_path: Path) -> None:
    flatc = system_flatc()
    files = []
    for number, message in enumerate(ALL):
        files.append(tmp_path / f"frame{number}.bin")
        files[-1].write_bytes(encode(message))
    command = [flatc, "--json", "--raw-binary", "--strict-json", "-o", str(tmp_path), str(SCHEMA), "--"]
    subprocess.run([*command, *map(str, files)], check=True, capture_output=True)
    for path, message in zip(files, ALL, strict=True):
        printed = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        assert printed["body_type"] == type(message).__name__
        assert_printed(printed["body"], message)


def assert_printed(printed: Any, table: Table) -> None:
    """All that a table holds was printed, and nothing else."""
    shape = shape_of(type(table))
    names = {field.name for field in shape.fields} | {f"{field.name}_type" for field in shape.fields}
    assert set(printed) <= names
    for field in shape.fields:
        assert_field(field, printed.get(field.name), getattr(table, field.name))


def assert_field(field: Field, printed: Any, value: Any) -> None:
    if value is None or value == ():
        assert printed in (None, [])
    elif field.kind == "scalar":
        # Enumerations are printed by name.
        assert isinstance(printed, str) or printed == pytest.approx(value)
    elif field.kind in ("table", "union"):
        assert_printed(printed, value)
    elif field.kind == "samples":
        assert b"".join(number.to_bytes(2, "little", signed=True) for number in printed) == value
    elif field.kind == "tables":
        for each, item in zip(printed, value, strict=True):
            assert_printed(each, item)
    else:
        assert printed == (list(value) if field.kind == "strings" else value)
