"""Templates: what they become, and what they may not."""

from __future__ import annotations

import pytest

from trunkline.agents.graph import mustache
from trunkline.agents.graph.mustache import Template, TemplateError

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
    ],
)
def test_a_malformed_template_is_refused_with_a_reason(source: str, problem: str) -> None:
    with pytest.raises(TemplateError, match=problem):
        Template(source)


def test_sections_that_multiply_come_to_an_end() -> None:
    context = {"l": [{"t": "x" * 50} for _ in range(1000)]}
    with pytest.raises(TemplateError, match="characters"):
        Template("{{#l}}{{#l}}{{t}}{{/l}}{{/l}}").render(context)
    with pytest.raises(TemplateError, match="parts"):
        Template("{{#l}}{{#l}}{{#l}}{{/l}}{{/l}}{{/l}}").render(context)


def test_a_long_template_is_read_in_a_moment() -> None:
    source = "{{! c }} " * 9000 + " " * 500_000 + "{{#a}}{{/a}}"
    assert len(Template(source).render({})) == 9000 + 500_000
