"""Placeholders: one pass, exact spelling, and nothing that was put in is looked at again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.wires.agentproc.profile.placeholders import expand, fill, from_the_chat, used, variables

VALUES = {"MESSAGE": "hi there", "SESSION_ID": "S1", "SESSION_NAME": "work", "PROFILE_DIR": "/p"}


def test_each_placeholder_becomes_its_value_wherever_it_stands() -> None:
    text = "{{MESSAGE}}|{{SESSION_ID}}|{{SESSION_NAME}}|{{PROFILE_DIR}}|a{{MESSAGE}}{{MESSAGE}}b"
    assert fill(text, VALUES) == "hi there|S1|work|/p|ahi therehi thereb"


@pytest.mark.parametrize(
    "text",
    ["{{ MESSAGE }}", "{{message}}", "{{UNKNOWN}}", "{MESSAGE}", "{{MESSAGE}", "{{}}", "$MESSAGE", "${MESSAGE}", ""],
)
def test_any_other_spelling_stays_as_it_is(text: str) -> None:
    assert fill(text, VALUES) == text


@pytest.mark.parametrize(
    "message", ["{{SESSION_ID}}", "${SECRET}", "{{MESSAGE}}", r"\1 $& $$ \g<0>", "{{PROFILE_DIR}}"]
)
def test_a_message_comes_out_as_it_went_in(message: str) -> None:
    values = {**VALUES, "MESSAGE": message}
    assert fill("<{{MESSAGE}}>", values) == f"<{message}>"
    assert expand("${X}<{{MESSAGE}}>", values, {"X": "x", "SECRET": "s3cret"}.__getitem__) == f"x<{message}>"


def test_a_variable_of_the_bridge_is_not_looked_at_for_placeholders() -> None:
    assert expand("${X}", VALUES, {"X": "{{MESSAGE}} ${Y}"}.__getitem__) == "{{MESSAGE}} ${Y}"


def test_pieces_put_side_by_side_do_not_make_a_placeholder() -> None:
    values = {**VALUES, "MESSAGE": "{{SESSION", "SESSION_NAME": "HOME}"}
    assert fill("{{MESSAGE}}_ID}}", values) == "{{SESSION_ID}}"
    assert expand("${X}${{{SESSION_NAME}}", values, {"X": ""}.__getitem__) == "${HOME}"


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("${A}", "1"),
        ("a${A}b${A_2}c", "a1b2c"),
        ("$${A}", "$1"),
        ("\\${A}", "\\1"),
        ("$A", "$A"),
        ("${A:-x}", "${A:-x}"),
        ("${2A}", "${2A}"),
        ("${}", "${}"),
        ("${Ä}", "${Ä}"),
        ("{{MESSAGE}}", "hi there"),
    ],
)
def test_only_a_name_in_braces_is_a_variable(template: str, text: str) -> None:
    assert expand(template, VALUES, {"A": "1", "A_2": "2"}.__getitem__) == text


def test_what_a_text_holds_can_be_asked_for() -> None:
    text = "{{PROFILE_DIR}} {{SESSION_ID}} ${A} ${B_1} ${C:-}"
    assert used(text) == ("PROFILE_DIR", "SESSION_ID")
    assert variables(text) == ("A", "B_1")
    assert from_the_chat(text) == "{{SESSION_ID}}"
    assert from_the_chat("{{PROFILE_DIR}}/{{message}}") is None


@given(st.text())
def test_whatever_the_message_it_is_put_in_once_and_whole(message: str) -> None:
    values = {**VALUES, "MESSAGE": message}
    assert fill("a{{MESSAGE}}b", values) == f"a{message}b"
    assert expand("a{{MESSAGE}}${N}b", values, lambda name: "n") == f"a{message}nb"
