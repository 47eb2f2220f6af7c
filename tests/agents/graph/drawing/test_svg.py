"""Pictures of graphs: what is in them, and what hostile names cannot do."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tests.agents.graph.helpers import agent, debug, graph, take
from trunkline.agents.graph.drawing import recorded, words
from trunkline.agents.graph.drawing.svg import draw
from trunkline.core.faults import ConfigError
from trunkline.wires.tryll.messages import (
    CannedResponseParams,
    CharacterDefinition,
    DirectorParams,
    DirectorStrategy,
    GenerateParams,
    GraphDescription,
    HumanMessageGuardrailParams,
    InstructionParams,
    NodeDescription,
    RememberParams,
    RetrieveParams,
    SamplingOverrides,
    ToolCallParams,
    ToolDefinition,
)

SVG = "{http://www.w3.org/2000/svg}"

NPC = graph(
    guard=HumanMessageGuardrailParams(inline_strings=("ignore",), triggered_exit="refuse", not_triggered_exit="answer"),
    refuse=CannedResponseParams(inline_strings=("No.",)),
    answer=GenerateParams(system_prompt="You are a smith.", sampling=SamplingOverrides(temperature=0.5)),
)


def elements(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)


def texts(picture: str, kind: str | None = None) -> list[str]:
    """What the picture says, marks of isolation left out."""
    found = (
        each for each in elements(picture).iter(f"{SVG}text") if kind in (None, (each.get("class") or "").split()[0])
    )
    return ["".join(each.itertext()).strip("\u2068\u2069") for each in found]


def classes(picture: str, element: str) -> list[str]:
    return [each.get("class") or "" for each in elements(picture).iter(f"{SVG}{element}")]


def test_a_picture_has_every_node_with_type_exits_and_what_matters() -> None:
    picture = draw(NPC, title="npc.yaml", about="default model: any")
    assert texts(picture, "name") == ["guard", "refuse", "answer"]
    assert texts(picture, "type") == ["HumanMessageGuardrail", "CannedResponse", "Generate"]
    assert sorted(texts(picture, "exit")) == ["default", "default", "not_triggered", "triggered"]
    assert texts(picture, "value") == [
        "inline_strings  \u2068\u201cignore\u201d",
        "inline_strings  \u2068\u201cNo.\u201d",
        "system_prompt  You are a smith.",
        "sampling  temperature 0.5",
    ]
    assert texts(picture, "pill-text") == ["message", "END", "END"]
    assert texts(picture)[:2] == ["npc.yaml", "default model: any"]
    # One line from the message, and one from each exit.
    assert classes(picture, "path").count("edge") == 5
    assert "prefers-color-scheme:dark" in picture


def test_tools_numbers_and_texts_are_told_shortly() -> None:
    found = graph(
        find=RetrieveParams("lore", filter="x" * 500, found_exit="call"),
        call=ToolCallParams(tools=(ToolDefinition("open"), ToolDefinition("close")), notify_client=True),
    )
    values = texts(draw(found), "value")
    assert "top_k 2 \u00b7 threshold 0.5" in [value.strip("\u2068") for value in values]
    assert "tools  open, close" in values
    assert any(value.startswith("filter") and "\u2026" in value for value in values)
    assert not any("notify" in value for value in values)


HOSTILE = [
    "</svg><script>alert(1)</script>",
    "\u0645\u0631\u062d\u0628\u0627 \u064a\u0627 \u0635\u062f\u064a\u0642\u064a",
    "a\u202eb\x00\x1b[31m\ufffe",
    "'\"&amp;<",
    "W" * 256,
    "\u65e5\u672c\u8a9e" * 60,
    "Z" + "\u0351" * 200,
]


def test_hostile_names_appear_and_do_nothing() -> None:
    chain = [
        NodeDescription(name, InstructionParams(name, name, HOSTILE[number + 1] if number + 1 < len(HOSTILE) else ""))
        for number, name in enumerate(HOSTILE)
    ]
    picture = draw(GraphDescription(tuple(chain), HOSTILE[0]), title=HOSTILE[0], about=HOSTILE[2])
    root = elements(picture)
    kinds = {each.tag.removeprefix(SVG) for each in root.iter()}
    assert kinds == {"svg", "title", "style", "rect", "g", "path", "text", "tspan", "clipPath"}
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e\ufffe]", picture)
    assert "<script" not in picture
    assert texts(picture, "name")[0].startswith("</svg><script>")
    assert all(set(each.attrib) <= {"class", "x", "y"} for each in root.iter(f"{SVG}text"))
    boxes = [float(each.get("width") or 0) for each in root.iter(f"{SVG}rect") if each.get("class") == "box"]
    assert max(boxes) < 320


async def test_a_turn_shows_what_ran_when_and_what_was_decided() -> None:
    found = await take(await agent(NPC, diagnostics=True), "ignore this")
    turn = recorded.read(debug(found))
    assert (turn.message, turn.answer, turn.status) == ("ignore this", "No.", "Success")
    picture = draw(NPC, turn=turn)
    groups = [kind for kind in classes(picture, "g") if kind.startswith("node")]
    assert groups == ["node ran", "node ran", "node unused"]
    assert texts(picture, "badge-text") == ["1", "2"]
    assert texts(picture, "done") == ["pattern 0"]
    assert len(texts(picture, "time")) == 2
    # From the message, by the guard's exit, and to the end.
    assert classes(picture, "path").count("edge taken") == 3
    assert any("ignore this" in text for text in texts(picture, "about"))


def test_a_node_that_ran_often_and_a_turn_that_failed_are_shown_as_such() -> None:
    again = graph(a=InstructionParams("a", "x", "a"))
    steps = [{"name": "a", "type": "Instruction", "exit": "default", "ms": 1.5}] * 64
    error = {"code": 4003, "name": "StepLimit", "message": "Too many."}
    picture = draw(again, turn=recorded.read({"nodes": steps, "status": "Error", "error": error}))
    assert texts(picture, "badge-text") == ["1, 2, 3, 4\u2026"]
    assert texts(picture, "time") == ["96 ms"]
    assert texts(picture, "bad") == ["4003 StepLimit: Too many."]
    assert "node ran failed" in classes(picture, "g")


def test_a_turn_of_another_graph_is_refused() -> None:
    with pytest.raises(ConfigError, match="`elsewhere`, which is not in this graph"):
        draw(NPC, turn=recorded.read({"nodes": [{"name": "elsewhere"}]}))


def test_a_node_that_no_turn_comes_to_has_a_dashed_box() -> None:
    found = graph(a=InstructionParams("a", "x"), b=InstructionParams("b", "x", "a"))
    assert [kind for kind in classes(draw(found), "g") if kind.startswith("node")] == ["node", "node unreached"]


@pytest.mark.parametrize("most", [10.0, 60.0, 200.0])
def test_a_text_is_shortened_to_what_fits(most: float) -> None:
    for text in ("short", "a rather long text " * 10, "W" * 100, "\u65e5" * 50):
        assert words.width(words.shortened(text, 10.0, most), 10.0) <= max(most, words.width("\u2026", 10.0))
        lines = words.wrapped(text, 10.0, most, 3)
        assert len(lines) <= 3
        assert all(words.width(line, 10.0) <= max(most, words.width("\u2026", 10.0)) for line in lines)


def test_words_are_wrapped_and_none_is_lost() -> None:
    text = "one two three four five six"
    assert " ".join(words.wrapped(text, 10.0, 60.0, 20)) == text


def test_a_picture_for_a_page_that_says_the_rest_has_neither_a_background_nor_the_words_of_the_turn() -> None:
    turn = recorded.read({"nodes": [{"name": "refuse", "exit": "default"}], "status": "Success"})
    bare, whole = draw(NPC, turn=turn, page=False), draw(NPC, turn=turn)
    assert "page" not in classes(bare, "rect")
    assert "page" in classes(whole, "rect")
    assert texts(bare, "about") == []
    assert texts(bare, "name") == texts(whole, "name")
    assert classes(bare, "g").count("node ran unreached") == classes(whole, "g").count("node ran unreached")
    assert int(elements(bare).get("height") or 0) < int(elements(whole).get("height") or 0)


def test_a_scene_is_drawn_with_its_characters_by_name() -> None:
    talk = DirectorParams(
        characters=(CharacterDefinition("Anna", "An innkeeper."), CharacterDefinition("B<ert")),
        strategy=DirectorStrategy.MODEL,
        default_exit="keep",
    )
    picture = draw(graph(talk=talk, keep=RememberParams("player", max_entries=7)))
    for shown in ("Anna, B&lt;ert", ">model<", "max_lines 6", "player", "max_entries 7"):
        assert shown in picture
