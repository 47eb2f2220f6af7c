"""Scripts: what is understood, and how what is not is complained about."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from trunkline.agents import script
from trunkline.agents.script import Crash, Hang, Say, Script, ScriptCall, ScriptTurn, UseTools, Vanish, Wait
from trunkline.base import document
from trunkline.core.agent import Capabilities
from trunkline.core.events import (
    Extension,
    Failed,
    Notice,
    Plan,
    PlanEntry,
    Progress,
    SessionIdentified,
    TextDelta,
    ThinkingDelta,
)
from trunkline.core.faults import ConfigError
from trunkline.core.usage import Usage

EVERYTHING = """
name: everything
description: one of each
capabilities: {mcp: true}
turns:
  - when: "create (?P<name>\\\\S+)"
    steps:
      - text: "I'll create {{name}}."
      - thinking: ["Hm. ", "Well."]
      - wait: 0.05
      - tool:
          name: Write
          args: {file_path: "{{name}}", lines: [1, 2.5, null, true]}
          description: Write to {{name}}
          id: t1
          output: Created
          output_type: diff
          status: error
          metadata: {file_path: "{{name}}"}
          takes: 1
          run: [echo, "{{name}}"]
          approved: [{text: "It said {{output}}"}]
          denied: [{text: "Fine: {{reason}}"}]
      - tools: [{name: Read}, {name: mcp__files__list, category: mcp}]
      - notice: n
      - progress: p
      - plan: [one, {content: two, priority: high, status: in_progress}]
      - extension: {kind: k, data: {day: 2024-01-01}}
      - fail: {kind: provider, message: Rate limit exceeded, retryable: true}
      - raise: boom
      - vanish: true
      - hang: true
      - hang: deaf
      - identify: own-id
    usage: {input_tokens: 12, output_tokens: 3}
    outcome: unknown
"""


def parsed(text: str, name: str = "test.yaml") -> Script:
    return script.parse(text.encode(), name)


def turn_of(steps: str) -> ScriptTurn:
    return parsed(f"turns: [{{steps: {steps}}}]").turns[0]


def complaint(text: str, name: str = "test.yaml") -> str:
    with pytest.raises(ConfigError) as caught:
        parsed(text, name)
    return str(caught.value)


def test_every_key_is_understood() -> None:
    found = parsed(EVERYTHING)
    (turn,) = found.turns
    assert (found.name, found.capabilities) == (
        "everything",
        Capabilities(approval=True, thinking=True, mcp=True, resume=True),
    )
    assert turn.when is not None
    assert turn.when.search("please CREATE a.txt")
    assert (turn.usage, turn.outcome) == (Usage(12, 3), "unknown")
    write = ScriptCall(
        name="Write",
        category="edit",
        args={"file_path": "{{name}}", "lines": [1, 2.5, None, True]},
        description="Write to {{name}}",
        id="t1",
        takes=1.0,
        run=("echo", "{{name}}"),
        output="Created",
        output_type="diff",
        status="error",
        metadata={"file_path": "{{name}}"},
        approved=(Say(TextDelta("It said {{output}}")),),
        denied=(Say(TextDelta("Fine: {{reason}}")),),
    )
    read = ScriptCall(name="Read", category="info", args={}, description="Read")
    mcp = ScriptCall(name="mcp__files__list", category="mcp", args={}, description="mcp__files__list")
    assert turn.steps == (
        Say(TextDelta("I'll create {{name}}.")),
        Say(ThinkingDelta("Hm. ")),
        Say(ThinkingDelta("Well.")),
        Wait(0.05),
        UseTools((write,)),
        UseTools((read, mcp)),
        Say(Notice("n")),
        Say(Progress("p")),
        Say(Plan((PlanEntry("one"), PlanEntry("two", "high", "in_progress")))),
        Say(Extension("k", {"day": "2024-01-01"})),
        Say(Failed("provider", "Rate limit exceeded", retryable=True)),
        Crash("boom"),
        Vanish(),
        Hang(),
        Hang(deaf=True),
        Say(SessionIdentified("own-id")),
    )


def test_json_and_yaml_say_the_same() -> None:
    import yaml

    as_json = json.dumps(yaml.safe_load(EVERYTHING), default=str)
    from_json, from_yaml = parsed(as_json, "test.json"), parsed(EVERYTHING)
    assert from_json == from_yaml


def test_a_json_script_needs_no_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    path = tmp_path / "a.json"
    path.write_text('{"turns": [{"steps": [{"text": "hi"}]}]}')
    assert script.load(str(path)).turns[0].steps == (Say(TextDelta("hi")),)


def test_thinking_is_announced_only_by_a_script_that_thinks() -> None:
    assert not parsed("turns: [{steps: [{text: a}]}]").capabilities.thinking
    nested = "turns: [{steps: [{tool: {name: Read, denied: [{thinking: why}]}}]}]"
    assert parsed(nested).capabilities.thinking
    assert not parsed("capabilities: {thinking: false}\n" + nested).capabilities.thinking


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        ("[{text: a}]", "success"),
        ("[]", "success"),
        ("[{text: a}, {fail: {kind: provider, message: m}}]", "error"),
        ("[{fail: {kind: provider, message: m}}, {text: a}]", "success"),
    ],
)
def test_a_turn_that_fails_last_is_an_error_unless_the_script_says_otherwise(steps: str, outcome: str) -> None:
    assert turn_of(steps).outcome == outcome


def test_a_failure_is_as_retryable_as_its_kind_unless_the_script_says_otherwise() -> None:
    assert turn_of("[{fail: {kind: timeout, message: m}}]").steps == (Say(Failed("timeout", "m", retryable=True)),)
    assert turn_of("[{fail: {kind: timeout, message: m, retryable: false}}]").steps == (Say(Failed("timeout", "m")),)


@pytest.mark.docs
@pytest.mark.parametrize("page", ["how-to/script-an-agent.md", "reference/script.md"])
def test_the_scripts_in_the_documentation_are_good_ones(page: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    examples = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        assert parsed(example).turns


@pytest.mark.docs
def test_the_reference_names_every_key() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "script.md").read_text(encoding="utf-8")
    keys = {*script._STEPS, *ScriptCall.__fields__, *ScriptTurn.__fields__, *Script.__fields__, *script.WORDS}
    assert {key for key in keys if f"| `{key}` |" not in text and f"| `{{{{{key}}}}}` |" not in text} == set()


PROBLEMS: dict[str, tuple[str, str]] = {
    "unknown key with a suggestion": (
        "turns:\n  - steps:\n      - tool:\n          name: Write\n          categry: edit\n",
        "test.yaml:5:11: unknown key `categry` in `turns[0].steps[0].tool`. Did you mean `category`?",
    ),
    "unknown step": (
        "turns:\n- steps:\n  - txet: a",
        "test.yaml:3:5: unknown key `txet` in `turns[0].steps[0]`. Did you mean `text`?",
    ),
    "unknown key without a suggestion": (
        "zzz: 1\nturns: []",
        "unknown key `zzz` in the script. The keys are `name`, `description`, `capabilities`, `verbatim`, `turns`.",
    ),
    "missing key": ("name: x", "test.yaml:1:1: the script needs the key `turns`."),
    "no steps": ("turns:\n - when: a", "test.yaml:2:4: `turns[0]` needs the key `steps`."),
    "no turns": ("turns: []", "test.yaml:1:1: `turns` must contain at least one turn."),
    "nothing at all": ("", "test.yaml: the script must be a mapping, not null."),
    "not a list": ("turns: {steps: []}", "test.yaml:1:1: `turns` must be a list, not a mapping."),
    "a step of two kinds": (
        "turns: [{steps: [{text: a, wait: 1}]}]",
        "`turns[0].steps[0]` must have exactly one key, of `text`, `thinking`, `wait`,",
    ),
    "an unquoted yes": (
        "turns: [{steps: [{text: yes}]}]",
        "`turns[0].steps[0].text` must be a string, not a boolean. Put it in quotes.",
    ),
    "an item of a list of deltas": (
        "turns: [{steps: [{text: [a, 1]}]}]",
        "`turns[0].steps[0].text[1]` must be a string, not a number. Put it in quotes.",
    ),
    "a negative wait": ("turns: [{steps: [{wait: -1}]}]", "must be a number of seconds, 0 or more, not `-1`."),
    "an endless wait": ("turns: [{steps: [{wait: .inf}]}]", "`turns[0].steps[0].wait` must be a finite number."),
    "a text for a wait": ("turns: [{steps: [{wait: soon}]}]", "must be a number of seconds, 0 or more, not `soon`."),
    "a wrong pattern": ("turns: [{when: '(', steps: []}]", "`turns[0].when` is not a regular expression: missing )"),
    "a group that hides a placeholder": (
        "turns: [{when: '(?P<input>a)', steps: []}]",
        "`turns[0].when` has a group `input`, which is the name of a placeholder. Rename the group.",
    ),
    "an unknown placeholder": (
        "turns: [{steps: [{text: '{{imput}}'}]}]",
        "`turns[0].steps[0].text` has the placeholder `{{imput}}`, which has no meaning here. Did you mean `input`?",
    ),
    "a placeholder out of its place": (
        "turns: [{steps: [{text: '{{reason}}'}]}]",
        "has the placeholder `{{reason}}`, which has no meaning here.",
    ),
    "an unknown placeholder in arguments": (
        "turns: [{steps: [{tool: {name: Read, args: {a: ['{{x}}']}}}]}]",
        "`turns[0].steps[0].tool.args` has the placeholder `{{x}}`",
    ),
    "an unknown category": (
        "turns: [{steps: [{tool: {name: Read, category: inof}}]}]",
        "must be one of `info`, `edit`, `exec`, `mcp`, not `inof`. Did you mean `info`?",
    ),
    "a tool of unknown category": (
        "turns: [{steps: [{tool: {name: Fetch}}]}]",
        "`turns[0].steps[0].tool` needs a `category` for the tool `Fetch`: one of `info`, `edit`, `exec`, `mcp`.",
    ),
    "a description of two lines": (
        'turns: [{steps: [{tool: {name: Read, description: "a\\nb"}}]}]',
        "`turns[0].steps[0].tool.description` must be one line.",
    ),
    "a program without a name": (
        "turns: [{steps: [{tool: {name: Bash, run: []}}]}]",
        "`turns[0].steps[0].tool.run` must name a program.",
    ),
    "an unknown fault": (
        "turns: [{steps: [{fail: {kind: providr, message: m}}]}]",
        "Did you mean `provider`?",
    ),
    "an unknown outcome": ("turns: [{steps: [], outcome: good}]", "must be one of `success`, `error`,"),
    "an unknown capability": (
        "capabilities: {fly: true}\nturns: [{steps: []}]",
        ":1:16: unknown key `fly` in `capabilities`. The keys are `approval`, `thinking`, `mcp`,",
    ),
    "a capability that is not a flag": (
        "capabilities: {mcp: 1}\nturns: [{steps: []}]",
        "`capabilities.mcp` must be `true` or `false`, not a number.",
    ),
    "usage below zero": (
        "turns: [{steps: [], usage: {input_tokens: -1}}]",
        "must be a whole number, 0 or more, not `-1`.",
    ),
    "a vanish that does not": ("turns: [{steps: [{vanish: false}]}]", "must be `true`; leave the step out otherwise."),
    "a hang of an unknown kind": ("turns: [{steps: [{hang: blind}]}]", "must be `true`, or `deaf`"),
    "a key twice": ("turns:\n- steps: []\n  steps: []", ":3:3: `turns[0]` has the key `steps` twice."),
    "merged keys": ("a: &a {steps: []}\nturns: [{<<: *a}]", "merges another mapping (`<<`)"),
    "a key that is not a text": ("? [a]\n: b", ":1:3: the script has a key that is not a string."),
    "a foreign tag": ("turns: !!python/name:os.system", "has a value or a tag that is not known here"),
    "a set": ("turns: !!set {a}", "has a value or a tag that is not known here"),
    "broken YAML": ("turns:\n  - steps: [\n", "test.yaml:2:13: not YAML: "),
    "two documents": ("a: 1\n---\nb: 2", "test.yaml:2:1: another document begins here."),
    "an endless loop of aliases": ("turns: &a [*a]", "`turns[0]` is the alias `*a`, which is not known here."),
    "brackets without end": ("[" * 1000, "is nested deeper than 200 levels."),
    "a bomb of aliases": (
        "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40)) + "turns: []",
        "holds more than 100000 values, aliases included.",
    ),
}


@pytest.mark.parametrize(("text", "problem"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_a_wrong_script_is_refused_with_place_and_reason(text: str, problem: str) -> None:
    assert problem in complaint(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"turns": [}', "test.json: not JSON: Expecting value: line 1 column 12"),
        ('{"turns": NaN}', "`NaN` is not JSON"),
        ('{"turns": [{"stepps": []}]}', "test.json:1:13: unknown key `stepps` in `turns[0]`. Did you mean `steps`?"),
    ],
)
def test_a_wrong_json_script_is_refused_with_key_or_line(text: str, problem: str) -> None:
    assert problem in complaint(text, "test.json")


@pytest.mark.parametrize("name", ["test.yaml", "test.json"])
def test_a_script_that_is_not_utf_8_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"test\.(yaml:1:8: not UTF-8|json: not JSON: )"):
        script.parse(b"turns: \xff\xff", name)


def test_a_script_is_found_by_path_or_by_bundled_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.yml").write_text("turns: [{steps: [{text: mine}]}]")
    (tmp_path / "bare").write_text("turns: [{steps: [{text: bare}]}]")
    monkeypatch.chdir(tmp_path)
    assert script.load("tour").name == "tour"
    assert script.load("mine.yml").name == "mine.yml"
    assert script.load(str(tmp_path / "mine.yml")).turns == script.load("mine.yml").turns
    assert script.load("bare").turns[0].steps == (Say(TextDelta("bare")),)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("tuor", "There is no script `tuor`. Did you mean `tour`?"),
        ("nosuch", "There is no script `nosuch`. Those that come with Trunkline are "),
        ("nosuch.yaml", "The script `nosuch.yaml` cannot be read: No such file or directory."),
        (".", "There is no script `.`."),
        ("a\0b.yaml", "cannot be read: No such file or directory."),
    ],
)
def test_a_script_that_is_not_there_is_explained(spec: str, problem: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        script.load(spec)
    assert problem in str(caught.value)


def test_a_script_over_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(b"#" * (document.MAX_BYTES + 1))
    with pytest.raises(ConfigError, match="larger than"):
        script.load(str(path))


@pytest.mark.parametrize("name", script.bundled())
def test_every_bundled_script_is_a_good_one(name: str) -> None:
    assert script.load(name).turns
