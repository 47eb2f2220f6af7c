"""Ears and mouth of the terminal, without either."""

from __future__ import annotations

from typing import cast

import pytest

from trunkline.agents.external.tryll_talk_agent import TalkAgent
from trunkline.agents.external.tryll_talk_options import TalkOptions
from trunkline.cli.talk_voice import TerminalVoice
from trunkline.core.faults import AgentFailed


class Talk:
    """A conversation that only counts how often it listens."""

    options = TalkOptions()

    def __init__(self) -> None:
        self.listens = 0

    async def listen(self) -> None:
        self.listens += 1


class Agent:
    """Whoever is spoken to."""

    def __init__(self) -> None:
        self.talk = Talk()


async def test_what_was_said_in_the_last_conversation_is_not_answered_in_the_next() -> None:
    voice, agent = TerminalVoice(), Agent()
    voice.agent = cast(TalkAgent, agent)
    voice.heard("half a sen")
    voice.spoken("What I said before.")
    await voice.listen()
    assert (voice.take(), voice.hearing, agent.talk.listens) == (None, None, 1)
    voice.spoken("What I say now.")
    assert voice.take() == "What I say now."


async def test_a_key_that_is_pressed_after_the_end_is_told_so() -> None:
    voice = TerminalVoice()
    voice.agent = TalkAgent("127.0.0.1", 1, TalkOptions(), voice)
    with pytest.raises(AgentFailed, match="is over"):
        await voice.press()
