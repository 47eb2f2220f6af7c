"""Templates: what they become, and what they may not."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from trunkline.agents.graph import mustache
from trunkline.agents.graph.mustache import Template, TemplateError, read_template

CONTEXT = {
    "who": "<Anna & Bob>",
    "empty": "",
    "yes": True,
    "no": False,
    "none": [],
    "list": [{"text": "a", "in": {"deep": "1"}}, {"text": "b"}],
    "plain": ["x", "y"],
}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Hi {{who}}, {{{who}}}, {{& who }}!", "Hi <Anna & Bob>, <Anna & Bob>, <Anna & Bob>!"),
        ("[{{nobody}}{{#nobody}}x{{/nobody}}{{nobody.at.all}}{{empty}}]", "[]"),
        ("{{#list}}{{text}}{{in.deep}},{{/list}}", "a1,b,"),
        ("{{#plain}}({{.}}){{/plain}}", "(x)(y)"),
        ("{{^none}}nothing{{/none}}{{^list}}x{{/list}}{{^empty}}!{{/empty}}", "nothing!"),
        ("{{#yes}}{{who}}{{/yes}}{{#no}}x{{/no}}", "<Anna & Bob>"),
        ("a{{! not said }}b{{> partial}}c", "abc"),
        ("{{=<% %>=}}<%who%> {{who}}<%={{ }}=%> {{empty}}", "<Anna & Bob> {{who}} "),
        ("one\n  {{#list}}\n- {{text}}\n  {{/list}}\ntwo", "one\n- a\n- b\ntwo"),
        ("a\r\n{{! alone }}\r\nb", "a\r\nb"),
        ("x {{#yes}}\ny {{/yes}}\n", "x \ny \n"),
    ],
)
def test_a_template_becomes_what_the_specification_says_and_never_escapes(source: str, expected: str) -> None:
    assert Template(source).render(CONTEXT) == expected


def test_a_name_with_a_dot_in_it_is_found_as_it_is() -> None:
    assert Template("{{instruction_a.b}}").render({"instruction_a.b": "told"}) == "told"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("a\n{{#open}}", "`open` has no end"),
        ("a\n{{/open}}", "line 2: `open` ends here and is not open"),
        ("{{#a}}{{#b}}{{/a}}{{/b}}", "`b` is open"),
        ("x {{never", "line 1: a tag has no end"),
        ("{{= = =}}", "delimiters"),
        ("{{#a}}" * 40 + "{{/a}}" * 40, "sections within each other"),
        ("{{a}}" * (mustache.MAX_TAGS + 1), "tags"),
        ("\n{{" + ".".join("a" * (mustache.MAX_DOTTED + 1)) + "}}", "line 2: a name of more"),
        ("{{#" + "a" * (mustache.MAX_NAME + 1) + "}}", "line 1: a name of more"),
        ("{{/" + "a" * (mustache.MAX_NAME + 1) + "}}", "line 1: a name of more"),
    ],
)
def test_a_malformed_template_is_refused_with_a_reason(source: str, problem: str) -> None:
    with pytest.raises(TemplateError, match=problem):
        Template(source)


def test_sections_that_multiply_come_to_an_end() -> None:
    context = {"l": [{"t": "x" * 500} for _ in range(1000)]}
    with pytest.raises(TemplateError, match="characters"):
        Template("{{#l}}{{#l}}{{t}}{{/l}}{{/l}}").render(context)
    with pytest.raises(TemplateError, match="steps"):
        Template("{{#l}}{{#l}}{{#l}}{{/l}}{{/l}}{{/l}}").render(context)


def test_a_long_template_is_read_in_a_moment() -> None:
    source = "{{! c }} " * 9000 + " " * 500_000 + "{{#a}}{{/a}}"
    assert len(Template(source).render({})) == 9000 + 500_000


def test_a_comment_may_be_as_long_as_it_likes_and_a_name_of_many_parts_is_found() -> None:
    name = ".".join("abcdefghijklmnop"[: mustache.MAX_DOTTED])
    context: dict[str, Any] = {"p": "there"}
    for step in reversed("abcdefghijklmno"):
        context = {step: context}
    assert Template("{{! " + "a." * mustache.MAX_NAME + "}}{{" + name + "}}").render(context) == "there"


def test_a_name_is_looked_for_no_further_than_to_where_nothing_is() -> None:
    class Counting(dict[str, Any]):
        looks = 0

        def get(self, key: str, default: Any = None) -> Any:
            Counting.looks += 1
            return super().get(key, default)

    assert Template("{{a.b.c.d.e.f}}").render({"a": Counting(b=Counting())}) == ""
    assert Counting.looks == 2


def test_what_is_deep_inside_takes_more_steps() -> None:
    context = {"l": [{"t": "x"}] * 10}
    assert Template("{{t}}").measured(context) == ("", 1)
    # The section, and ten times a part and a repetition: each looks at two levels, or is one of them.
    assert Template("{{#l}}{{t}}{{/l}}").measured(context) == ("x" * 10, 1 + 10 * (1 + 2))


def test_a_template_is_read_once_and_gone_with_the_last_who_has_it() -> None:
    source = "{{somebody's own}}"
    one = read_template(source)
    assert read_template(source) is one
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None
    assert source not in mustache._READ
