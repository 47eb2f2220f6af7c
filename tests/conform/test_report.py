from __future__ import annotations

import json

from trunkline.base.redact import Redactor
from trunkline.conform.kit import Check, CheckResult, Tier, Verdict
from trunkline.conform.record import Record
from trunkline.conform.report import Report

SECRET = "sk-live-0123456789abcdef"


def result(id: str, tier: Tier, verdict: Verdict, reason: str = "") -> CheckResult:
    return CheckResult(Check(id, tier, "1.1", "It is | so."), verdict, reason, 0.5, (id,))


def report(*results: CheckResult) -> Report:
    record = Record("t.bad", ("my-agent", "--key", SECRET))
    record.add("host", b'{"type":"stop"}')
    record.add("agent", f'{{"type":"info","message":"{SECRET}"}}'.encode())
    record.remark("standard input closed")
    record.stderr = f"using {SECRET}"
    record.exit_code = 3
    return Report(
        wire="jsonstream",
        protocol="0.1.0",
        argv=("my-agent", "--key", SECRET),
        started="2026-01-01T00:00:00+00:00",
        seconds=1.25,
        results=results,
        records=(record,),
        redactor=Redactor([SECRET]),
    )


GOOD = result("t.good", "MUST", "passed")
BAD = result("t.bad", "MUST", "failed", f"it said {SECRET} | and more")
UNSEEN = result("t.unseen", "MUST", "not exercised", "it did not happen")
WEAK = result("t.weak", "SHOULD", "failed", "no")
MOOT = result("t.moot", "MUST", "not applicable", "it offers none")
EXTRA = result("t.extra", "MAY", "failed", "no")


def test_a_target_conforms_when_every_must_passed() -> None:
    assert report(GOOD, WEAK, EXTRA).conforms
    assert not report(GOOD, BAD).conforms
    assert not report(GOOD, UNSEEN).conforms


def test_what_does_not_apply_to_a_target_keeps_it_from_nothing_and_is_counted_apart() -> None:
    assert report(GOOD, MOOT).conforms
    assert report(GOOD, MOOT).is_flawless
    assert report(GOOD, MOOT).summary() == "MUST 1/2 (1 not applicable) · conforms · 1.2 s"


def test_a_target_is_flawless_when_every_should_passed_as_well() -> None:
    assert report(GOOD, EXTRA).is_flawless
    assert not report(GOOD, WEAK).is_flawless


def test_the_summary_counts_each_tier() -> None:
    assert report(GOOD, BAD, UNSEEN, WEAK).summary() == (
        "MUST 1/3 (1 failed, 1 not exercised) · SHOULD 0/1 (1 failed) · does not conform · 1.2 s"
    )
    assert report(GOOD).summary() == "MUST 1/1 · conforms · 1.2 s"


def test_the_json_report_holds_results_and_conversations() -> None:
    data = json.loads(report(GOOD, BAD).as_json())
    assert [(each["id"], each["result"]) for each in data["results"]] == [("t.good", "passed"), ("t.bad", "failed")]
    (conversation,) = data["conversations"]
    assert [line["from"] for line in conversation["lines"]] == ["host", "agent", "kit"]
    assert conversation["roles"] == ["host", "agent"]
    assert (conversation["exit_code"], data["conforms"]) == (3, False)


def test_the_markdown_report_shows_every_line_with_its_time() -> None:
    text = report(GOOD, BAD).as_markdown()
    assert "| `t.bad` | MUST | 1.1 | failed | it said [redacted] \\| and more |" in text
    assert ' > {"type":"stop"}\n' in text
    assert " # standard input closed\n" in text
    assert "exit status 3" in text


def test_a_report_calls_both_sides_what_they_are() -> None:
    record = Record("br.run", ("my-bridge",), ("user", "bridge"))
    record.add("host", b"asked")
    record.add("agent", b"said")
    made = report(GOOD).replace(records=(record,))
    assert [line["from"] for line in made.as_data()["conversations"][0]["lines"]] == ["user", "bridge"]
    text = made.as_markdown()
    assert "`>` is the user, `<` the bridge, `#` the kit." in text
    assert " > asked\n" in text
    assert " < said\n" in text


def test_no_form_of_a_report_tells_a_secret() -> None:
    made = report(GOOD, BAD)
    assert SECRET not in made.as_json()
    assert SECRET not in made.as_markdown()


def test_a_part_of_the_kit_is_not_called_the_whole() -> None:
    assert " · conforms · " in report(GOOD).summary()
    assert " · conforms, as far as checked (7 checks left out) · " in report(GOOD).replace(left_out=7).summary()
    assert " · does not conform · " in report(BAD).replace(left_out=7).summary()
