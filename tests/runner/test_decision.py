"""What is read out of a model's output, and what is not."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from trunkline.runner import decision
from trunkline.runner.decision import MAX_OUTPUT, NoDecision

ACTION: dict[str, Any] = {"action": "comment", "communitySlug": "s", "threadId": "t", "body": "b"}
TEXT = json.dumps(ACTION)
OTHER = {**ACTION, "body": "c"}
MORE = json.dumps(OTHER)


@pytest.mark.parametrize(
    "output",
    [
        TEXT,
        f"[{TEXT}]",
        f"  \n{TEXT}\n",
        f"```json\n{TEXT}\n```",
        f"```\n[{TEXT}]\n```",
        f"I will comment [1] on {{this}}:\n```json\n{TEXT}\n```\nDone.",
        f"Words before:\n{TEXT}\nand after.",
        f"[1] See {{maybe}}:\n[{TEXT}].\n(end)",
        f"The answer is\n\n`{TEXT}`\n",
        f"```json {TEXT}```",
        f"Words:\n~~~json title\n{TEXT}\n~~~",
        f"and ```json\n{TEXT}```\nend",
        f"<thinking>{MORE}</thinking>{TEXT}",
        f"<think>a</think>\n<THINK>{MORE}</THINK> {TEXT}",
        f"Some servers leave the tag out.\n{MORE}\n</think>\n{TEXT}",
        f"Some servers leave the tag out.\n{MORE}\nSo.</think>\n{TEXT}",
        f"<think>He says '</think>\n{MORE}\n'. No.\n</think>{TEXT}",
        f"<think>Perhaps {{}} or [{TEXT}, {TEXT}]</think>\n{TEXT}",
        f"{TEXT}\n{TEXT}",
    ],
)
def test_json_is_found_where_it_stands(output: str) -> None:
    assert decision.read(output) == decision.DecisionElements((ACTION,))


LAX = '{action: "comment", communitySlug: "s", threadId: "t", body: "b"}'


@pytest.mark.parametrize(
    "output",
    [
        f"{TEXT}\n{MORE}",
        f"{TEXT}{MORE}",
        f"Two lines:\n\n{TEXT}\r\n{MORE}\n\nThat is all.",
        f"1. {TEXT}\n2. {MORE}\n",
        f"1) `{TEXT}`\n(2) `{MORE}`",
        f"* {TEXT},\n\N{BULLET} {MORE};",
        f"- [{TEXT}]\n- [{MORE}]",
        f"```json\n{TEXT}\n```\nand\n```json\n{MORE}\n```",
        f"1. Comment:\n   ```json\n   {TEXT}\n   ```\n2. Again:\n   ```JSON\n   [{MORE}]\n   ```\n",
        f"```jsonl\n{TEXT}\n{MORE}\n```",
        f"Perhaps {json.dumps({**ACTION, 'body': 'a draft'})}? No:\n```json\n{TEXT}\n{MORE}\n```",
        f"```json\n{TEXT}\n{MORE}\n```\nSo, as I said: {TEXT}",
        f'Given {{"a": 1}} I decide:\n{TEXT}\n{MORE}',
        f"{TEXT.replace('}', ',}')}\n{MORE}",
        f"{TEXT}\n{MORE.replace('}', ',}')}",
        f"1. {LAX}\n2. {LAX.replace('b', 'c', 99).replace('cody', 'body')}",
        f"[{TEXT},]\n[{MORE},]",
        f"{TEXT}\n{MORE}\n{TEXT}",
    ],
)
def test_every_action_counts_wherever_it_stands(output: str) -> None:
    assert decision.read(output) == decision.DecisionElements((ACTION, OTHER))


def test_what_is_repeated_within_an_array_is_meant_each_time() -> None:
    assert decision.read(f"Twice:\n[{TEXT}, {TEXT}]") == decision.DecisionElements((ACTION, ACTION))


QUOTED = json.dumps({"action": "tx", "communitySlug": "s", "functionName": "drain"})


@pytest.mark.parametrize(
    "output",
    [
        json.dumps({**ACTION, "body": f"He wrote: </think>{QUOTED}"}),
        json.dumps([{**ACTION, "body": "He wrote: </think>{'action': 'tx'}"}])[:-1] + ",]",
        json.dumps({**ACTION, "body": f"see\n```json\n{QUOTED}\n```\nend"}),
        f"> {QUOTED}\n{TEXT}",
        f"He wrote:\n> ```json\n> {QUOTED}\n> ```\n```json\n{TEXT}\n```",
        f"```json\n> {QUOTED}\n{TEXT}\n```",
        f"1. I will not do {QUOTED}\n2. {TEXT}",
        f"1. {QUOTED} is what he wants.\n2. {TEXT}",
        f"He wants {QUOTED},\nwhich I refuse.\n{TEXT}",
        f"He wants [\n{QUOTED}\n] and I refuse.\n{TEXT}",
        f"He wrote {json.dumps(json.loads(QUOTED), indent=2)}, and I refuse.\n{TEXT}",
        f"```text\n{QUOTED}\n```\n{TEXT}",
        f"{QUOTED}\n```json\n{TEXT}\n```",
        f"It is written so, e.g.:\n```\n{QUOTED}\n```\nI decide:\n```json\n{TEXT}\n```",
        f"He wants\n{QUOTED}\n[]\nand I:\n{TEXT}",
        f"He wrote:\n<blockquote>\n{QUOTED}\n</blockquote>\n{TEXT}",
        f"Hidden: <!--\n{QUOTED}\n-->\n{TEXT}",
        f"I think.\n<reasoning>\n{QUOTED}\n</reasoning>\n{TEXT}",
        f"{TEXT}\n<think>\n{QUOTED}\n",
        f"He wrote:\n> please do\n{QUOTED}\n\n{TEXT}",
        f"```json example\n{QUOTED}\n```\n```json\n{TEXT}\n```",
        f"````text\n```\na\n```\n```json\n{QUOTED}\n```\n````\n{TEXT}",
        TEXT.replace('"b"', f'"see\n```\n```json\n{QUOTED}\n```\nend"').join(("```json\n", "\n```")),
    ],
)
def test_what_a_model_quotes_is_not_what_it_decides(output: str) -> None:
    (element,) = decision.read(output).elements
    assert (element["action"], element["body"][0]) in (("comment", "b"), ("comment", "H"), ("comment", "s"))


@pytest.mark.parametrize(
    "output",
    [
        f"He asks me to do {QUOTED}, but I will not.\n[]",
        f"He asks me to do\n{QUOTED}\nbut I will not.\n[]",
        f"He asks me to do\n{QUOTED}\nbut I will not.\n```json\n[]\n```",
        f"```json\n[]\n```\nHe asked me to do this:\n{QUOTED}",
        f"```json\n{QUOTED}\n```\nNo:\n```json\n[]\n```",
        f"```json\n{QUOTED}\n```\nOn second thought, nothing.\n[]",
    ],
)
def test_an_empty_array_is_the_decision_to_do_nothing(output: str) -> None:
    assert decision.read(output).elements == ()


@pytest.mark.parametrize(
    "output",
    [
        f"<think>{TEXT}",
        f"<think>{TEXT}</think>",
        f"<thinking>\n{TEXT}\n",
        f"He wrote:\n> {TEXT}\nI decline.",
        f"<details>\n{TEXT}\n</details>",
        f"<!-- {TEXT}",
        f"He wrote:\n> do\n{TEXT}\nI decline.",
    ],
)
def test_thoughts_and_quotes_alone_are_no_decision(output: str) -> None:
    with pytest.raises(NoDecision):
        decision.read(output)


@pytest.mark.parametrize("output", [f"I decide on {TEXT} now.", f"1. First: {TEXT}", f"I decide: {TEXT}"])
def test_a_decision_within_a_sentence_is_refused_with_what_to_do(output: str) -> None:
    with pytest.raises(NoDecision, match="on a line of its own"):
        decision.read(output)


def test_it_is_told_how_many_actions_stand_where_they_do_not_count() -> None:
    assert decision.read(f"```\n{MORE}\n```\n```json\n{TEXT}\n```\n{TEXT}") == decision.DecisionElements(
        (ACTION,), left_out=1
    )


def test_what_was_cut_off_behind_whole_actions_is_told() -> None:
    assert decision.read(f'{TEXT}\n{MORE}\n{{"action": "tx", "args": [100') == decision.DecisionElements(
        (ACTION, OTHER), cut=True
    )


@pytest.mark.parametrize(
    "output",
    [
        f"[{TEXT},]",
        TEXT.replace("}", ",}"),
        TEXT.replace('"', "'"),
        TEXT.replace('{"', '{ // a note\n"'),
        TEXT.replace(', "body"', ', /* a note */ "body"'),
        TEXT.replace('"b"}', '"b" // a note\n}'),
        '{action: "comment", communitySlug: "s", threadId: "t", body: "b"}',
        "{“action”: “comment”, “communitySlug”: “s”, “threadId”: “t”, “body”: “b”}",
        TEXT[:-1],
        f"[{TEXT}",
        f"```json\n[{TEXT},]",
    ],
)
def test_what_is_almost_json_is_mended(output: str) -> None:
    assert decision.read(output) == decision.DecisionElements((ACTION,))


def test_texts_are_kept_as_they_were_while_the_rest_is_mended() -> None:
    body = "see https://h/x // not a note, ] } and /* that */ \N{LEFT DOUBLE QUOTATION MARK}"
    read = decision.read(f"[{json.dumps({**ACTION, 'body': body}, ensure_ascii=False)},]")
    assert read.elements[0]["body"] == body
    assert decision.read(TEXT.replace('"b"', '"two\nlines\tand a tab"')).elements[0]["body"] == "two\nlines\tand a tab"


@pytest.mark.parametrize("cut", ['{"action": "tx", "args": [100', '{"action": "comment", "body": "half of', '"comm'])
def test_an_action_that_was_cut_off_is_dropped_and_those_before_it_stay(cut: str) -> None:
    assert decision.read(f"[{TEXT}, {cut}") == decision.DecisionElements((ACTION,), cut=True)
    with pytest.raises(NoDecision):
        decision.read(cut)


@pytest.mark.parametrize(
    "output",
    [
        "",
        "   \n",
        "```json\n```",
        "I will take this action: none.",
        "Sure! {comment} on [that] thread, action: later",
        "42",
        "null",
        '"comment"',
        "[NaN]",
        "[1e999]",
        "{" * 5000,
        "[" * 100_000,
        '{"a":' * 5000,
    ],
)
def test_prose_is_no_decision(output: str) -> None:
    with pytest.raises(NoDecision):
        decision.read(output)


def test_an_empty_array_and_an_object_without_an_action_are_read_as_they_are() -> None:
    assert decision.read("[]").elements == ()
    assert decision.read('Nothing:\n{"a": 1}').elements == ({"a": 1},)


def test_the_names_of_actions_are_told_once_each() -> None:
    named = [{"action": name} for name in ("comment", "tx", " comment ", "")]
    assert decision.action_types(decision.read(json.dumps([*named, 7, {}]))) == ["comment", "tx"]


@pytest.mark.parametrize(
    "piece",
    [
        "`",
        "`!",
        "> {",
        "- [",
        "</think>",
        "<think>",
        "~~~\n",
        "<q>\n",
        "<q></q> <q",
        "<!--\n-->\n",
        "> a\n{",
        '```json\n{"a\n```\n',
        '```json\n{"a\n```\n"}\n```\n',
        "````\n```\n",
        "[] x",
        "\n{",
        '\n{"',
        '\nx {"',
        '{"a":1},',
        "```json\n",
        'x"',
        '\\"',
        "{",
        "[",
        '{"action":',
        '{"action": "x"',
        "```\n{",
        "[]",
        '"',
        "{'action':",
        "}",
        '{"a":1}',
    ],
)
@pytest.mark.slow
@pytest.mark.no_cover  # the time is the product's, and not the tracer's
def test_no_output_keeps_the_runner_busy_for_long(piece: str) -> None:
    began = time.process_time()
    for beginning in ("", '[{"action":', '[{"action":"'):
        try:
            decision.read(f"{beginning}{piece * (100_000 // len(piece))}"[:MAX_OUTPUT])
        except NoDecision:
            continue
    assert time.process_time() - began < 5


def test_a_text_with_brackets_in_it_is_not_deep() -> None:
    body = "[{" * 500
    assert decision.read(json.dumps([{**ACTION, "body": body}])).elements[0]["body"] == body


def test_more_than_any_decision_is_not_looked_at() -> None:
    with pytest.raises(NoDecision, match="more than"):
        decision.read(TEXT + " " * MAX_OUTPUT)
