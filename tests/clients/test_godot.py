"""The addon for Godot 4: its syntax, its style, and that it says what a server understands. The engine is not here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from environments import INSTALL_SECONDS, NotInstalled, environment
from tests.conftest import require
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_process import SERVE
from trunkline.wires.tryll import drive
from trunkline.wires.tryll.codec import MAX_FRAME, json_form
from trunkline.wires.tryll.codec.shapes import UNIONS, shape_of
from trunkline.wires.tryll.drive.needs import EXTENSION_OF
from trunkline.wires.tryll.messages import AnswerText

CLIENT = Path(__file__).resolve().parents[2] / "clients" / "godot"
ADDON = CLIENT / "addons" / "tryll"
SCRIPTS = sorted(CLIENT.rglob("*.gd"))
#: What parses, formats and judges GDScript.
GDTOOLKIT = ("gdtoolkit==4.5.0",)
MESSAGES = {kind.__name__: {field.name for field in shape_of(kind).fields} for kind in UNIONS["MessageBody"]}

#: A message with its fields, where both stand together: `ask("Name", {"field": ...})`.
_SAID = re.compile(r'\b(?:ask|begin|tell|collect)\(\s*"(\w+)",\s*\{([^{}]*)\}')
#: The same with the fields above it.
_FIELDS = re.compile(
    r'\bfields := \{([^{}]*)\}(?:(?!^func ).)*?\b(?:ask|begin)\(\s*"(\w+)", fields\b', re.DOTALL | re.MULTILINE
)
_NAME = re.compile(r'"(\w+)":')
_HEARD = re.compile(r'^\s*"(\w+)":$', re.MULTILINE)


def said() -> list[tuple[str, set[str]]]:
    found = []
    for path in ADDON.glob("*.gd"):
        text = path.read_text(encoding="utf-8")
        found += [(name, set(_NAME.findall(fields))) for name, fields in _SAID.findall(text)]
        found += [(name, set(_NAME.findall(fields))) for fields, name in _FIELDS.findall(text)]
    return found


def test_what_it_says_is_in_the_schema() -> None:
    told = said()
    for name, fields in told:
        assert fields <= MESSAGES[name], name
    assert {"SendMessageRequest", "CreateAgentRequest", "BeginUtteranceRequest", "AudioBufferFrame"} <= dict(
        told
    ).keys()


def test_it_has_the_table_of_fields_that_not_every_server_knows() -> None:
    text = (ADDON / "tryll_client.gd").read_text(encoding="utf-8")
    table = re.search(r"^const EXTENSION_OF := \{(.*?)^\}", text, re.DOTALL | re.MULTILINE)
    assert table is not None
    assert dict(re.findall(r'"(\w+)": "(\w+)"', table[1])) == EXTENSION_OF


def test_it_looks_whether_a_server_can_do_what_not_every_one_can_as_the_client_for_python_does() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in ADDON.glob("*.gd"))
    looked = set(re.findall(r'\b(?:lacks|_unable)\("(\w+)", "([^"]+)"\)', texts))
    python = "".join(path.read_text(encoding="utf-8") for path in Path(drive.__file__).parent.glob("*.py"))
    assert looked == {("health", "say how it is"), *re.findall(r'\b_need\([\w.]+, "(\w+)", "([^"]+)"\)', python)}


def test_its_socket_holds_a_long_answer_until_the_next_frame_of_the_game_and_sends_any_message() -> None:
    """An engine drops what finds no room."""
    text = (ADDON / "tryll_client.gd").read_text(encoding="utf-8")
    numbers = re.findall(r"^const (\w+) := \(?(\d+) << (\d+)(\) - 1)?$", text, re.MULTILINE)
    sizes = {name: (int(number) << int(shift)) - bool(less) for name, number, shift, less in numbers}
    rooms = {room: sizes[name] for room, name in re.findall(r"^\t_socket\.(\w+) = ([A-Z_]+)$", text, re.MULTILINE)}
    piece = json_form.encode(AnswerText(2**32, 2**32, "word ", True))
    assert sizes["MAX_MESSAGE"] == MAX_FRAME
    assert rooms["outbound_buffer_size"] > MAX_FRAME
    # In pieces of a word each.
    assert rooms["inbound_buffer_size"] // len(piece) * len("word ") > 500_000
    assert rooms["max_queued_packets"] >= rooms["inbound_buffer_size"] // len(piece)


def test_it_hears_what_the_server_says() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in ADDON.glob("*.gd"))
    heard = set(_HEARD.findall(texts)) | set(re.findall(r'"((?:Answer|Turn|Node|Tts|Wire)\w+)"', texts))
    assert heard <= MESSAGES.keys()
    assert {
        "AnswerText",
        "TurnComplete",
        "NodeEvent",
        "TtsAudioFrame",
        "WireTranscriptUpdate",
        "ErrorResponse",
    } <= heard


@pytest.mark.process
def test_a_server_of_the_game_s_own_understands_what_it_is_told_says_where_it_is_and_ends_with_its_input() -> None:
    text = (ADDON / "tryll_managed_server.gd").read_text(encoding="utf-8")
    table = re.search(r"^const OUR_ARGUMENTS: Array\[String\] = \[(.*?)^\]", text, re.DOTALL | re.MULTILINE)
    assert table is not None
    words = [sys.executable, *SERVE, "--config", os.devnull, *re.findall(r'"(.+?)"', table[1])]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        ready = json.loads(child.stdout.readline())
        assert ready["type"] == "ready"
        assert {"host", "ws_port", "metrics_port"} == set(re.findall(r'ready_line\["(\w+)"\]', text)) <= ready.keys()
        child.stdin.close()
        assert child.wait(PATIENCE_SECONDS) == 0


def test_the_plugin_names_a_script_that_is_there() -> None:
    config = ConfigParser()
    config.read(ADDON / "plugin.cfg", encoding="utf-8")
    assert (ADDON / config["plugin"]["script"].strip('"')).exists()


@pytest.mark.long
@pytest.mark.timeout(2 * INSTALL_SECONDS)
@pytest.mark.parametrize("program", [["gdparse"], ["gdlint"], ["gdformat", "--check"]], ids=lambda words: words[0])
def test_a_reader_of_gdscript_finds_no_fault(program: list[str]) -> None:
    try:
        folder = environment(GDTOOLKIT)
    except NotInstalled as error:
        require("gdtoolkit", False, str(error))
        return
    done = subprocess.run(
        [folder / program[0], *program[1:], *SCRIPTS], capture_output=True, text=True, timeout=INSTALL_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
