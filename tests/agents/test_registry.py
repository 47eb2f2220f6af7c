"""Agents by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.agents.helpers import play, request, text_of
from trunkline.agents import registry
from trunkline.core.faults import ConfigError


@pytest.mark.parametrize(
    ("name", "options"), [("echo", {}), ("echo", {"script": None, "model": "any"}), ("scripted", {"script": "tour"})]
)
async def test_every_agent_can_be_made_by_name_and_answers(name: str, options: dict[str, object]) -> None:
    agent = registry.make(name, options)
    assert agent.name == name
    assert name in registry.names()
    conversation = await agent.open(request())
    assert "hello" in text_of(await play(conversation, "well, hello"))
    await conversation.close()


def test_an_unknown_agent_is_refused_with_a_suggestion_and_the_list() -> None:
    with pytest.raises(ConfigError) as caught:
        registry.make("ecco", {})
    assert str(caught.value) == "There is no agent `ecco`. Did you mean `echo`? The agents are `echo`, `scripted`."


def test_the_scripted_agent_asks_for_its_script() -> None:
    with pytest.raises(ConfigError, match=r"Add `--script FILE`, or `--script NAME` with one of .*`tour`"):
        registry.make("scripted", {})


def test_the_echo_agent_costs_no_import_of_the_scripted_one() -> None:
    program = (
        "import sys; from trunkline.agents import registry; registry.make('echo', {});"
        "print([m for m in sys.modules if m.startswith('trunkline.agents.') or m in ('yaml', 'difflib')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert eval(done.stdout) == ["trunkline.agents.registry", "trunkline.agents.attachments", "trunkline.agents.echo"]
