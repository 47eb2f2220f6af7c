"""Our own agent against the kit: nothing of the protocol is left unexercised."""

from __future__ import annotations

import re
import sys

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents import script
from trunkline.conform.jsonstream.prompts import PROMPTS
from trunkline.conform.jsonstream.stage import Stage, Target
from trunkline.conform.jsonstream.suite import SUITE
from trunkline.conform.wording import fill

COMMAND = (
    sys.executable,
    "-m",
    "trunkline",
    "agent",
    "--json-stream",
    "--agent",
    "scripted",
    "--script",
    "conformance",
)
# The script needs no model, so no key can be missing; `trunkline agent` without `--agent` has its own test of that.
NOT_EXERCISED = ["js.start.no-key"]


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(240)
async def test_the_scripted_agent_passes_every_check() -> None:
    target = Target(COMMAND, {}, timeout=PATIENCE_SECONDS)
    results, records = await SUITE.run(SUITE.select(()), lambda name: Stage(target, name), jobs=2)
    assert [(each.check.id, each.reason) for each in results if each.verdict == "failed"] == []
    assert [each.check.id for each in results if each.verdict == "not exercised"] == NOT_EXERCISED
    assert {record.stderr for record in records if record.exit_code == 0} == {""}


#: A key that opens nothing, for an agent that would not start without one.
NOBODY = {"ANTHROPIC_API_KEY": "sk-ant-of-nobody"}


@pytest.mark.process
async def test_a_missing_key_is_told_before_ready() -> None:
    target = Target((sys.executable, "-m", "trunkline", "agent", "--json-stream"), NOBODY, timeout=PATIENCE_SECONDS)
    checks = SUITE.select(["js.start.no-key"])
    (result,), _ = await SUITE.run(checks, lambda name: Stage(target, name), jobs=1)
    assert (result.verdict, result.reason) == ("passed", "")


def test_the_script_has_a_turn_of_its_own_for_each_prompt() -> None:
    turns = [turn for turn in script.load("conformance").turns if turn.when is not None]
    taken: dict[str, list[str]] = {}
    for name, prompt in PROMPTS.items():
        text = fill({name: prompt}, name, text="a\nb", command="echo `date`; exit 3")
        first = next((turn.when.pattern for turn in turns if turn.when and re.search(turn.when, text)), "none")
        taken.setdefault(first, []).append(name)
    assert "none" not in taken
    writes = {"write", "write-again", "write-denied"}
    assert [names for names in taken.values() if len(names) > 1 and set(names) != writes] == []
