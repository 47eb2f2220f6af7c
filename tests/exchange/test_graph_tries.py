"""Messages tried on graphs that nobody has saved."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.exchange_world import NOON
from tests.support.graph_texts import SMITH
from tests.support.loop import until
from trunkline.agents.graph import yaml_graph
from trunkline.base.redact import Redactor
from trunkline.exchange.budgets import Budgets
from trunkline.exchange.graph_files import AgentGraph
from trunkline.exchange.graph_tries import GraphTries, TriedTurn
from trunkline.exchange.schema import FORM
from trunkline.exchange.settings import AgentBudget, AgentSettings
from trunkline.store.database.opening import open_database

Try = Callable[..., Coroutine[Any, Any, TriedTurn]]


def trying(folder: Path, text: str, tries: GraphTries, **options: Any) -> Try:
    """Tries messages on a graph of the agent `smith`."""
    spec = str(folder / "smith.yaml")
    graph = AgentGraph("smith", spec, (AgentSettings("smith", f"graph:{spec}", str(folder), options=options),))
    file = yaml_graph.parse(text.encode(), "smith.yaml")
    return partial(tries.run, graph=graph, file=file, secrets=Redactor(["hunter22"]))


def waiting_graph(folder: Path) -> str:
    """One whose agent begins to answer, and then waits."""
    (folder / "slow.json").write_text(json.dumps({"turns": [{"steps": [{"text": "I begin "}, {"hang": True}]}]}))
    model = f"agent:scripted:{folder / 'slow.json'}"
    return f"start: answer\ndefault_model: '{model}'\nnodes: {{answer: {{type: Generate, stream: true}}}}\n"


async def test_a_turn_has_its_answer_its_way_and_its_tools_without_secrets(tmp_path: Path) -> None:
    run = trying(tmp_path, SMITH, GraphTries())
    turn = await run("ana", message="My password is hunter22", engine="mock")
    assert (turn.outcome, turn.answer) == ("success", "You said: My password is [redacted]")
    assert [step.node for step in turn.path] == ["guard", "tools", "answer"]
    assert "hunter22" not in turn.svg
    assert turn.tokens > 0


async def test_the_options_of_the_agent_choose_the_models(tmp_path: Path) -> None:
    text = SMITH.replace("default_model: mock", "default_model: nobody-has-this")
    turn = await trying(tmp_path, text, GraphTries())("ana", message="Hello", engine="models")
    assert (turn.outcome, "nobody-has-this" in turn.error) == ("error", True)
    turn = await trying(tmp_path, text, GraphTries(), model="mock")("ana", message="Hello", engine="models")
    assert (turn.outcome, turn.answer) == ("success", "You said: Hello")


async def test_each_has_one_try_at_a_time_and_can_stop_it(tmp_path: Path) -> None:
    tries = GraphTries()
    run = trying(tmp_path, waiting_graph(tmp_path), tries)
    first, other = (asyncio.create_task(run(who, message="Hello", engine="models")) for who in ("ana", "ben"))
    await until(lambda: tries.running == 2)
    second = asyncio.create_task(run("ana", message="Hello", engine="models"))
    assert (await first).outcome == "cancelled"
    await until(lambda: tries.running == 2)
    assert not other.done()
    assert tries.stop("ana")
    assert tries.stop("ben")
    assert (await second).outcome == (await other).outcome == "cancelled"
    assert not tries.stop("ana")
    assert tries.running == 0


async def test_a_turn_takes_only_so_long(tmp_path: Path) -> None:
    run = trying(tmp_path, waiting_graph(tmp_path), tries := GraphTries(seconds=0.3))
    turn = await run("ana", message="Hello", engine="models")
    assert (turn.outcome, turn.svg) == ("error", "")
    assert turn.error == "The turn took longer than 0.3 s and was stopped."
    assert tries.running == 0


async def test_who_gives_up_waiting_leaves_nothing_behind(tmp_path: Path) -> None:
    tries = GraphTries()
    task = asyncio.create_task(trying(tmp_path, waiting_graph(tmp_path), tries)("ana", message="Hi", engine="models"))
    await until(lambda: tries.running == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tries.running == 0


@asynccontextmanager
async def budgets(folder: Path, **limits: Any) -> AsyncIterator[Budgets]:
    """Of an exchange with the agent `smith`."""
    database = await open_database(f"sqlite:///{folder / 'rows.db'}", FORM)
    found = Budgets(database, lambda: NOON, lambda model, usage, price: 0.001)
    await found.open({"smith": AgentBudget(**limits)})
    yield found
    await database.close()


async def test_what_is_tried_on_models_is_in_the_budget_of_the_agent(tmp_path: Path) -> None:
    async with budgets(tmp_path, turns_per_hour=2) as found:
        run = partial(trying(tmp_path, SMITH, GraphTries()), message="Hello", engine="models", person="ana")
        for _ in range(2):
            assert (await run("ana", meter=found.meter("smith", ""))).outcome == "success"
        refused = await run("ana", meter=found.meter("smith", ""))
        assert refused.error.startswith("The agent's budget of 2 turns an hour is spent.")
        assert refused.path == ()
        (used,) = await found.usage("agent")
        assert (used["agent"], used["turns"], used["budget"]["turns_per_hour"]["used"]) == ("smith", 3, 2)
        assert used["input_tokens"] + used["output_tokens"] > 0
        assert [row["person"] for row in await found.usage("person")] == ["ana"]
        # As it is in the rows, for the next process.
        again = Budgets(found._database, lambda: NOON, found._cost)
        await again.open({"smith": AgentBudget(turns_per_hour=2)})
        assert again.standing()["smith"]["turns_per_hour"]["used"] == 2


async def test_a_try_takes_no_longer_than_a_turn_of_the_agent_may(tmp_path: Path) -> None:
    async with budgets(tmp_path, seconds_per_turn=0.2) as found:
        run = trying(tmp_path, waiting_graph(tmp_path), GraphTries())
        turn = await run("ana", message="Hello", engine="models", meter=found.meter("smith", ""), person="ana")
        assert turn.error == "The turn took longer than 0.2 s and was stopped."
        assert [row["turns"] for row in await found.usage("agent")] == [1]


async def test_all_of_them_are_stopped_at_the_end(tmp_path: Path) -> None:
    tries = GraphTries()
    run = trying(tmp_path, waiting_graph(tmp_path), tries)
    both = [asyncio.create_task(run(who, message="Hello", engine="models")) for who in ("ana", "ben")]
    await until(lambda: tries.running == 2)
    tries.close()
    assert [(await each).outcome for each in both] == ["cancelled", "cancelled"]
