"""Whatever decides is an agent in a session: tools, faults, stops and the log are the session's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.fake_agent import FakeAgent
from tests.support.loop import until
from trunkline.core.agent import Approve, Deny
from trunkline.core.events import Envelope, Failed, TextDelta, ToolRequested, TurnEnded, TurnStarted
from trunkline.core.fault_kinds import of_kind
from trunkline.core.fault_table import TABLE
from trunkline.core.faults import AgentTimeout, ConfigError, ProviderError
from trunkline.core.rules import Rules
from trunkline.runner import brain, brains
from trunkline.runner.brain import AnswerTooLong, LonelyBrain
from trunkline.runner.config import RunnerConfig, normalise
from trunkline.runner.prompting import DecisionPrompt
from trunkline.runner.state import AgentState
from trunkline.store.files import FileStore

PROMPT = DecisionPrompt("Be brief.", "What now?")
SECONDS = 60.0


def config(**given: Any) -> RunnerConfig:
    return normalise({"runnerToken": "token-of-mine", "agentId": "a", "brain": given, "timeoutSec": 5})


@pytest.fixture
def state(tmp_path: Path) -> Iterator[AgentState]:
    kept = AgentState(str(tmp_path), "a")
    yield kept
    kept.close()


@pytest.mark.parametrize(("allow", "decision"), [((), Deny), (("Read",), Approve)])
async def test_an_agent_may_use_the_tools_that_are_allowed_and_no_others(allow: tuple[str, ...], decision: Any) -> None:
    agent = FakeAgent()
    asked = asyncio.create_task(LonelyBrain(lambda _: agent, seconds=SECONDS, allow=allow).answer(PROMPT))
    await until(lambda: agent.busy)
    agent.say(ToolRequested("c1", "Read", "info", {}))
    await until(lambda: bool(agent.decisions))
    assert isinstance(agent.decisions[0][1], decision)
    agent.say(TextDelta("[]"), TurnEnded("success"))
    assert (await asked).text == "[]"
    assert agent.closed
    assert agent.request is not None
    assert agent.request.instructions == "Be brief."


async def test_what_its_own_configuration_denies_is_denied_though_the_runner_allows_it() -> None:
    agent = FakeAgent()
    rules = Rules(allow=("Bash",), deny=("Read(secret)",))
    agent.settings = SimpleNamespace(permissions=rules)  # type: ignore[attr-defined]  # what some agents have
    asked = asyncio.create_task(LonelyBrain(lambda _: agent, seconds=SECONDS, allow=("Read",)).answer(PROMPT))
    await until(lambda: agent.busy)
    agent.say(ToolRequested("c1", "Read", "info", {"file_path": "secret"}))
    agent.say(ToolRequested("c2", "Read", "info", {"file_path": "other"}))
    agent.say(ToolRequested("c3", "Bash", "exec", {"command": "true"}))
    await until(lambda: len(agent.decisions) == 3)
    assert [isinstance(decision, Approve) for _, decision in sorted(agent.decisions)] == [False, True, False]
    agent.say(TextDelta("[]"), TurnEnded("success"))
    await asked


async def test_a_failure_is_the_fault_that_the_agent_told_of() -> None:
    agent = FakeAgent()
    asked = asyncio.create_task(LonelyBrain(lambda _: agent, seconds=SECONDS).answer(PROMPT))
    await until(lambda: agent.busy)
    agent.say(Failed("provider", "Too many requests.", True), TurnEnded("error"))
    with pytest.raises(ProviderError, match="Too many requests") as raised:
        await asked
    assert raised.value.retryable


async def test_an_answer_that_is_too_long_is_stopped_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brain, "MAX_REPLY", 10)
    agent = FakeAgent()
    asked = asyncio.create_task(LonelyBrain(lambda _: agent, seconds=SECONDS).answer(PROMPT))
    await until(lambda: agent.busy)
    agent.say(TextDelta("one two three four"))
    with pytest.raises(AnswerTooLong) as raised:
        await asked
    assert raised.value.said == "one two th"
    assert agent.closed


async def test_who_stops_waiting_or_waits_too_long_leaves_no_agent_behind() -> None:
    agent = FakeAgent()
    asked = asyncio.create_task(LonelyBrain(lambda _: agent, seconds=SECONDS).answer(PROMPT))
    await until(lambda: agent.busy)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert agent.closed
    agent = FakeAgent()
    with pytest.raises(AgentTimeout, match="The agent `fake` gave no complete answer"):
        await LonelyBrain(lambda _: agent, seconds=0.01).answer(PROMPT)
    assert agent.closed


@pytest.mark.parametrize("keep", [True, False])
async def test_prompts_and_answers_are_kept_if_that_is_wanted_and_without_secrets(
    keep: bool, state: AgentState, tmp_path: Path
) -> None:
    found = config(kind="scripted", replies=["the token is token-of-mine."], keep=keep)
    await brains.make(found, {}, state, str(tmp_path)).answer(PROMPT)
    kept = FileStore(str(tmp_path / "sessions")).list()
    assert len(kept) == keep
    for info in kept:
        log = FileStore(str(tmp_path / "sessions")).open(info.id)
        events = [each.event for each in log.read() if isinstance(each, Envelope)]
        log.close()
        assert [each.message.text for each in events if isinstance(each, TurnStarted)] == [PROMPT.user]
        assert "token-of-mine" not in str(events)


@pytest.mark.parametrize(("given", "problem"), [({"allow": "Read"}, "array of names"), ({"allow": ["read"]}, "`Read`"),
                                               ({"keep": "yes"}, "true or false")])  # fmt: skip
def test_what_is_allowed_and_kept_is_checked(
    given: dict[str, Any], problem: str, state: AgentState, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=problem):
        brains.make(config(kind="agent", name="echo", **given), {}, state, str(tmp_path))


def test_every_kind_of_the_table_can_be_raised_again_from_what_an_event_says() -> None:
    for kind, form in TABLE.items():
        fault = of_kind(kind, "words")
        assert (fault.kind, fault.message, fault.retryable) == (kind, "words", form.retryable)
    assert of_kind("of another age", "words").kind == "agent"
