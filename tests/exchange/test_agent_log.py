"""What is kept of what is said about agents."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from tests.support.attached import exchange
from trunkline.base import log_context, stderr_lines
from trunkline.base.stderr_lines import StderrLines, UnreadLines
from trunkline.core.faults import Fault
from trunkline.exchange.agent_log import LONGEST_TEXT, MOST_AGENTS, MOST_LINES, AgentLogs, hearing
from trunkline.exchange.settings import AgentSettings

logger = logging.getLogger("trunkline.tests")


@pytest.fixture
def logs() -> AgentLogs:
    return AgentLogs(lambda: 1, lambda text: text.replace("sk-1234", "[redacted]"))


def test_a_line_belongs_to_the_agent_of_its_session(logs: AgentLogs) -> None:
    with hearing(logs, {"s1": "a", "s2": "b"}.get):
        with log_context.about(session="s1"):
            logger.warning("a key: %s", "sk-1234")
            logger.debug("too little to tell")
        logger.error("told", extra={"session": "s2"})
        with log_context.about(session="s3"):
            logger.warning("whose?")
        with log_context.about(session="s3", agent="c"):
            logger.warning("of one that is just being opened")
        logger.warning("about nobody")
    with log_context.about(session="s1"):
        logger.warning("later")
    assert [(line.level, line.text, line.session) for line in logs.of("a")] == [("warning", "a key: [redacted]", "s1")]
    assert [(line.level, line.text, line.session) for line in logs.of("b")] == [("error", "told", "s2")]
    assert [line.text for line in logs.of("c")] == ["of one that is just being opened"]
    assert stderr_lines.listeners == []


def test_an_exception_is_told_with_where_it_came_from(logs: AgentLogs) -> None:
    with hearing(logs, lambda session: "a"), log_context.about(session="s"):
        try:
            raise ValueError("sk-1234")
        except ValueError:
            logger.exception("it failed")
    (line,) = logs.of("a")
    assert line.text.startswith("it failed\nTraceback")
    assert line.text.endswith("ValueError: [redacted]")


def test_it_is_bounded(logs: AgentLogs) -> None:
    for number in range(MOST_LINES + 1):
        logs.note("a", "info", f"{number}")
    assert [line.text for line in logs.of("a")][:1] == ["1"]
    assert len(logs.of("a")) == MOST_LINES
    assert [line.text for line in logs.of("a", 2)] == [f"{MOST_LINES - 1}", f"{MOST_LINES}"]
    logs.note("a", "info", f"{'x' * LONGEST_TEXT}end")
    assert len(logs.of("a")[-1].text) == LONGEST_TEXT
    assert logs.of("a")[-1].text.endswith("end")
    for number in range(MOST_AGENTS + 1):
        logs.note(f"agent {number}", "info", "here")
    assert logs.of(f"agent {MOST_AGENTS}") == []


@pytest.mark.parametrize("surplus", [0, 1, MOST_LINES])
def test_of_what_a_program_says_at_once_the_end_is_kept(logs: AgentLogs, surplus: int) -> None:
    said = [b"%d" % number for number in range(MOST_LINES + surplus)]
    logs.note("a", "info", "before")
    logs.note_unread("a", UnreadLines(said, str), "s1")
    logs.note("a", "error", "it failed")
    *kept, failed = logs.of("a")
    assert [line.text for line in kept] == [f"{number}" for number in range(surplus + 1, MOST_LINES + surplus)]
    assert {(line.at, line.level, line.session) for line in kept} == {(1, "stderr", "s1")}
    assert failed.text == "it failed"


def test_a_line_of_a_program_is_cleaned_once_and_only_if_it_is_asked_for(logs: AgentLogs) -> None:
    cleaned: list[str] = []

    def clean(text: str) -> str:
        cleaned.append(text)
        return text

    logs.note_unread("a", UnreadLines([b"1", b"2", b"3"], clean))
    assert cleaned == []
    assert [line.text for line in logs.of("a", 2)] == ["2", "3"]
    assert [line.text for line in logs.of("a", 2)] == cleaned == ["2", "3"]


@pytest.mark.parametrize("inside", range(1, len("sk-1234")))
def test_a_secret_that_the_longest_text_would_cut_is_masked_first(logs: AgentLogs, inside: int) -> None:
    after = "x" * (LONGEST_TEXT - inside)
    logs.note_unread("a", UnreadLines([f"sk-1234{after}".encode()], str))
    (line,) = logs.of("a")
    assert line.text == f"[redacted]{after}"[-LONGEST_TEXT:]


def test_what_programs_say_is_heard_with_the_secrets_of_both_masked(logs: AgentLogs) -> None:
    with hearing(logs, {"s1": "a"}.get):
        lines = StderrLines("tool", lambda: lambda text: text.replace("its own", "***"))
        with log_context.about(session="s1"):
            lines.feed(b"its own, sk-12")
            lines.feed(b"34\n")
        lines.feed(b"about nobody\n")
    assert [(line.level, line.text, line.session) for line in logs.of("a")] == [("stderr", "***, [redacted]", "s1")]


@pytest.mark.process
async def test_what_an_agents_program_writes_to_standard_error_is_heard(tmp_path: Path) -> None:
    program = f"{sys.executable} -c \"import sys; print('on my way', file=sys.stderr)\""
    async with exchange(tmp_path, a=AgentSettings("", f"jsonstream:{program}", str(tmp_path))) as running:
        with pytest.raises(Fault, match="on my way"):
            await running.switchboard.open("a", by="ana")
        said, failed = running.directory.logs.of("a")
        assert (said.level, said.text) == ("stderr", "on my way")
        assert failed.level == "error"
