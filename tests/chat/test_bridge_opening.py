"""How the bridge opens sessions: agents that cannot answer, and secrets that agents must not have."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.chat_bridge import MemorySessions
from tests.support.fake_agent import FakeAgent
from trunkline.agents.external.agentproc import AgentProcAgent
from trunkline.base.redact import Redactor
from trunkline.chat.opening import Opener, variables
from trunkline.chat.settings import BridgeSettings
from trunkline.cli import bridge_run
from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc.profile import Profile

SETTINGS = BridgeSettings(
    agent="a",
    agents={"a": "a"},
    platforms={"telegram": {"token_env": "MY_BOT"}, "matrix": {"password_env": "MY_WORD", "user": "@me:here"}},
)


class Knowing(FakeAgent):
    """An agent that knows why it cannot answer, if it cannot."""

    why: str | None = None

    def problem(self) -> str | None:
        return self.why


async def test_an_agent_that_says_why_it_cannot_answer_is_not_fine() -> None:
    agent = Knowing()
    opener = Opener(SETTINGS, make=lambda spec, options: agent, environ={})
    assert await opener.check("a") == "fake"
    agent.why = "`claude` is not installed."
    with pytest.raises(ConfigError, match="`claude` is not installed"):
        await opener.check("a")


async def test_an_agent_that_cannot_tell_is_fine_if_it_can_be_made() -> None:
    assert await Opener(SETTINGS, make=lambda spec, options: FakeAgent(), environ={}).check("a") == "fake"


class Careful(FakeAgent):
    """An agent that knows secrets of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.redactor = Redactor(["its-own-secret"])


async def test_an_agent_that_knows_secrets_learns_those_of_the_platforms(tmp_path: Path) -> None:
    settings = SETTINGS.replace(workspace=str(tmp_path))
    environ = {"MY_BOT": "bots-token", "MY_WORD": "the-word"}
    opener = Opener(settings, make=lambda spec, options: Careful(), sessions=MemorySessions(), environ=environ)
    session = await opener.open("a")
    assert session.clean("its-own-secret bots-token the-word") == "[redacted] [redacted] [redacted]"
    await session.close()


class Trusting(FakeAgent):
    """An agent whose own configuration allows a tool, and everything besides."""

    settings = SimpleNamespace(allow=("Deploy",), auto_approve=True)


async def test_an_agents_own_list_of_what_needs_no_question_counts_in_a_chat_and_its_blank_cheque_does_not(
    tmp_path: Path,
) -> None:
    settings = SETTINGS.replace(workspace=str(tmp_path))
    opener = Opener(settings, make=lambda spec, options: FakeAgent(), sessions=MemorySessions(), environ={})
    trusting, plain = opener._policy(Trusting()), opener._policy(FakeAgent())
    assert [policy.verdict("Deploy", "exec") for policy in (trusting, plain)] == ["allow", "ask"]
    assert trusting.verdict("Bash", "exec") == "ask"


async def test_secrets_that_are_written_down_in_a_profile_are_not_shown(tmp_path: Path) -> None:
    env = {"SERVICE_TOKEN": "written-down-1", "ADDRESS": "https://me:pass-word-2@host/", "COLOUR": "turquoise"}
    agent = AgentProcAgent(Profile(("sh",), env=env))
    settings = SETTINGS.replace(workspace=str(tmp_path))
    opener = Opener(settings, make=lambda spec, options: agent, sessions=MemorySessions(), environ={})
    session = await opener.open("a")
    shown = "[redacted] [redacted] turquoise"
    assert session.clean("written-down-1 pass-word-2 turquoise") == shown
    assert opener.redactor.text("written-down-1 pass-word-2 turquoise") == shown
    await session.close()


def test_only_variables_of_platforms_that_are_configured_or_served_are_taken_away() -> None:
    assert set(variables(SETTINGS, ())) == {
        "MY_BOT", "MY_WORD", "TELEGRAM_BOT_TOKEN", "MATRIX_TOKEN", "MATRIX_PASSWORD",
    }  # fmt: skip
    assert variables(BridgeSettings(), ("terminal",)) == ()
    assert variables(BridgeSettings(), ("telegram",)) == ("TELEGRAM_BOT_TOKEN",)


def test_agents_do_not_inherit_what_the_platforms_log_in_with(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MY_BOT", "MY_WORD", "TELEGRAM_BOT_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "something-secret")
    seen: list[bool] = []
    monkeypatch.setattr(bridge_run, "made", lambda *arguments: seen.append("MY_BOT" in os.environ))
    monkeypatch.setattr(bridge_run, "log_to_stderr", lambda redactor: None)
    monkeypatch.setattr(bridge_run, "_Ends", _no_further)
    with pytest.raises(_Enough):
        _sent(bridge_run.run(SETTINGS, ("telegram",)))
    assert seen == [True]
    assert [name for name in ("MY_BOT", "MY_WORD", "TELEGRAM_BOT_TOKEN") if name in os.environ] == []
    assert "OPENAI_API_KEY" in os.environ


class _Enough(Exception):
    """The test has seen what it wanted to see."""


def _no_further() -> None:
    raise _Enough


def _sent(coroutine: object) -> None:
    coroutine.send(None)  # type: ignore[attr-defined]
