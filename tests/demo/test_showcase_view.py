"""How the showcase looks."""

from __future__ import annotations

import io
import json

from rich.console import Console

from trunkline.demo.showcase import ShownLine
from trunkline.demo.showcase_view import JsonView, NextStep, PlainView, RichView

LINES = (
    ShownLine(0.01234, "First", False, b'{"type":"ready","version":"[bold]0.1.0"}', "is ready"),
    ShownLine(0.5, "First", True, b'{"type":"stop"}', "has heard enough"),
    ShownLine(1.0, "Second", False, b"Welcome! \xff", "says what is not in the protocol"),
)
TRIALS = (NextStep("an echo", "trunkline agent --json-stream"),)


def test_plain_text_has_a_heading_per_scene_and_each_line_as_it_is() -> None:
    out = io.StringIO()
    view = PlainView(lambda text: print(text, end="", file=out))
    for line in LINES:
        view(line)
    view.finish(TRIALS)
    assert out.getvalue() == (
        "\n== First ==\n"
        "agent -> host   is ready\n"
        '    {"type":"ready","version":"[bold]0.1.0"}\n'
        "host  -> agent  has heard enough\n"
        '    {"type":"stop"}\n'
        "\n== Second ==\n"
        "agent -> host   says what is not in the protocol\n"
        "    Welcome! \ufffd\n"
        "\nThat was the JSON stream. Try next:\n"
        "\n  an echo\n    trunkline agent --json-stream\n"
    )


def test_json_has_one_object_per_line_and_no_advice() -> None:
    out: list[str] = []
    view = JsonView(out.append)
    for line in LINES:
        view(line)
    view.finish(TRIALS)
    assert [json.loads(text) for text in out] == [
        {"at": 0.012, "scene": "First", "from": "agent", "caption": "is ready", "line": json.loads(LINES[0].data)},
        {"at": 0.5, "scene": "First", "from": "host", "caption": "has heard enough", "line": {"type": "stop"}},
        {
            "at": 1.0,
            "scene": "Second",
            "from": "agent",
            "caption": "says what is not in the protocol",
            "line": "Welcome! \ufffd",
        },
    ]


def console(**options: object) -> Console:
    return Console(file=io.StringIO(), width=40, **options)  # type: ignore[arg-type]  # options of the test


def shown(on: Console) -> str:
    view = RichView(on)
    for line in LINES:
        view(line)
    view.finish(TRIALS)
    assert isinstance(on.file, io.StringIO)
    return on.file.getvalue()


def test_a_terminal_gets_arrows_colours_and_wrapped_json_and_no_markup_is_obeyed() -> None:
    text = shown(console(force_terminal=True, color_system="standard", highlight=False))
    assert "\x1b[" in text
    assert "──▶" in text
    assert "".join(text.split("\x1b[0m")).count("bold") == 1
    bare = shown(console(color_system=None, force_terminal=True, highlight=False))
    assert all(len(line.rstrip()) <= 40 for line in bare.splitlines())
    assert '{"type":"ready","version":"[bold]0.1.0"}' in "".join(line.strip() for line in bare.splitlines())
    assert "    trunkline agent --json-stream\n" in bare
