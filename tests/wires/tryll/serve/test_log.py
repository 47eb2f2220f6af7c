"""What a server logs of its sessions and turns, and what never."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from tests.support.loop import until
from tests.support.tryll_served import echo, served
from trunkline.wires.tryll import messages as m

NAME = "trunkline.wires.tryll.serve.log"
SAID = "a-word-of-somebodys"


async def test_there_is_a_line_for_each_session_and_turn_and_none_says_what_was_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, NAME)
    ring = m.GraphDescription((m.NodeDescription(SAID, m.InstructionParams(default_exit=SAID)),), SAID)
    async with served(tmp_path) as server:
        async with server.peer(configured=False) as peer:
            await peer.configure(game_name=SAID)
            agent = await peer.agent(SAID)
            looping = await peer.ask(m.CreateAgentRequest(2, ring, SAID), m.CreateAgentResponse)
            for each in (agent, looping.agent_id):
                peer.say(m.SendMessageRequest(3, each, SAID))
                await peer.turn()
        await until(lambda: len(caplog.messages) == 3)
    first, second, session = caplog.messages
    assert re.fullmatch(
        r"session 1: turn of agent \d+: Success, \d+\.\d{3} s, 3 tokens, \d+\.\d tokens/s, "
        r"first word after \d+\.\d{3} s, waited 0\.000 s",
        first,
    )
    assert re.fullmatch(r"session 1: turn of agent \d+: Error 4003, \d+\.\d{3} s, 0 tokens, waited 0\.000 s", second)
    assert re.fullmatch(r"session 1: 127\.0\.0\.1:\d+, \d+\.\d s, 2 turns", session)
    assert SAID not in caplog.text


async def test_a_turn_that_outlives_its_session_is_logged_as_cancelled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, NAME)
    async with served(tmp_path) as server, server.peer() as peer:
        made = await peer.ask(m.CreateAgentRequest(2, echo(), "mock-slow"), m.CreateAgentResponse)
        peer.say(m.SendMessageRequest(3, made.agent_id, "word " * 1000))
        await peer.get(m.AnswerText)
        peer.writer.transport.abort()
        await until(lambda: len(caplog.messages) == 2)
    assert any("Cancelled" in line for line in caplog.messages)


async def test_where_nobody_reads_the_log_there_is_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, NAME)
    async with served(tmp_path) as server, server.peer() as peer:
        assert server.server.log is None
        peer.say(m.SendMessageRequest(3, await peer.agent(), "x"))
        await peer.turn()
    assert caplog.messages == []
