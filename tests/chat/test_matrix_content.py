"""What is sent to a room."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.chat.matrix.content import (
    BUTTONS,
    CONTENT_BYTES,
    TEXT_BYTES,
    change,
    clean,
    file,
    html,
    meanings,
    measure,
    message,
    notice,
    reaction,
    same_sign,
)
from trunkline.chat.platform import Button

ME = "@bot:here"
YES = Button("Approve", "a:1")


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("**a** *b* `c<d`", "<p><strong>a</strong> <em>b</em> <code>c&lt;d</code></p>"),
        ("```py\nx < 1\n```", '<pre><code class="language-py">x &lt; 1\n</code></pre>'),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("[a](https://b.c/?d&e)", '<p><a href="https://b.c/?d&amp;e">a</a></p>'),
        ("a\nb", "<p>a<br />\nb</p>"),
        ("~~a~~", "<p><s>a</s></p>"),
    ],
)
def test_markdown_becomes_html(markdown: str, expected: str) -> None:
    assert html(markdown) == expected


@pytest.mark.parametrize(
    "markdown",
    [
        "<script>alert(1)</script>",
        "[a](javascript:alert(1))",
        "![a](https://tracker/x.png)",
        "<img src=x onerror=alert(1)>",
        "[a](data:text/html,<script>)",
        '```" onload="x\ncode\n```',
    ],
)
def test_nothing_that_an_agent_writes_becomes_a_script_or_a_foreign_picture(markdown: str) -> None:
    made = html(markdown).lower()
    assert "<script" not in made
    assert "<img" not in made
    assert 'href="javascript:' not in made
    assert 'href="data:' not in made
    assert 'onload="' not in made


def test_a_plain_text_has_no_second_form() -> None:
    assert message("hello") == {"msgtype": "m.text", "body": "hello", "m.mentions": {}}


def test_a_formatted_text_has_both_forms() -> None:
    content = message("**hello**")
    assert content["body"] == "**hello**"
    assert content["formatted_body"] == "<p><strong>hello</strong></p>"


def test_a_reply_names_what_it_answers() -> None:
    assert message("x", reply_to="$1")["m.relates_to"] == {"m.in_reply_to": {"event_id": "$1"}}


def test_a_reply_in_a_thread_stays_in_it() -> None:
    relation = message("x", reply_to="$2", thread="$1")["m.relates_to"]
    assert relation["rel_type"] == "m.thread"
    assert relation["event_id"] == "$1"
    assert relation["m.in_reply_to"] == {"event_id": "$2"}


def test_a_change_holds_the_new_text_for_those_who_know_changes_and_for_others() -> None:
    content = change("$1", "*new*")
    assert content["body"] == "* *new*"
    assert content["m.new_content"]["formatted_body"] == "<p><em>new</em></p>"
    assert content["m.relates_to"] == {"rel_type": "m.replace", "event_id": "$1"}


def test_what_no_server_takes_is_replaced() -> None:
    assert clean("a\0b\ud800c\r\nd\te") == "a\ufffdb\ufffdc\nd\te"


@given(st.text(min_size=1))
def test_a_text_takes_as_many_bytes_as_it_is_said_to(text: str) -> None:
    body = message(text)["body"]
    assert measure(text) == len(json.dumps(body, ensure_ascii=False).encode()) - 2


@pytest.mark.parametrize("unit", ["a", "ü", "🙂", '"', "&", "<", "*a* ", "\n", "- `&`\n", "\0"])
def test_the_longest_text_fits_into_an_event_also_as_a_change(unit: str) -> None:
    text = unit * (TEXT_BYTES // measure(unit))
    for content in (message(text), change("$1", text)):
        assert len(json.dumps(content, ensure_ascii=False).encode()) <= CONTENT_BYTES
        assert clean(text) in str(content.get("m.new_content", content)["body"])


def test_the_formatted_form_of_a_long_text_goes_along_where_it_fits() -> None:
    assert "formatted_body" in message("**a** " * 2000)
    assert "formatted_body" not in change("$1", "&" * TEXT_BYTES)["m.new_content"]


def test_a_file_has_its_kind_its_address_and_a_name() -> None:
    content = file("image", "mxc://here/1", "a.png", "image/png", 3)
    assert (content["msgtype"], content["url"], content["filename"]) == ("m.image", "mxc://here/1", "a.png")
    assert content["info"] == {"mimetype": "image/png", "size": 3}
    assert file("file", "mxc://here/1", "", "x/y", 0)["body"] == "file"


def test_a_notice_is_one() -> None:
    assert notice("x")["msgtype"] == "m.notice"


def test_a_sign_is_put_under_a_message() -> None:
    assert reaction("$1", "👍")["m.relates_to"] == {"rel_type": "m.annotation", "event_id": "$1", "key": "👍"}


def test_a_message_of_ours_holds_what_its_buttons_mean() -> None:
    event = {"sender": ME, "content": message("ok?", buttons=[YES])}
    assert meanings(event, ME) == {"Approve": "a:1"}
    assert meanings({**event, "sender": "@eve:here"}, ME) == {}


def test_the_newest_form_of_a_message_decides_about_its_buttons() -> None:
    def changed(sender: str) -> dict[str, Any]:
        replaced = {"sender": sender, "content": change("$1", "approved")}
        content = message("ok?", buttons=[YES])
        return {"sender": ME, "content": content, "unsigned": {"m.relations": {"m.replace": replaced}}}

    assert meanings(changed(ME), ME) == {}
    assert meanings(changed("@eve:here"), ME) == {"Approve": "a:1"}


@pytest.mark.parametrize("content", [None, {}, {BUTTONS: 3}, {BUTTONS: {"a": 3}}])
def test_buttons_of_another_form_are_none(content: Any) -> None:
    assert meanings({"sender": ME, "content": content}, ME) == {}


def test_two_pictures_of_one_sign_are_the_same() -> None:
    assert same_sign("✔\ufe0f") == same_sign("✔")
