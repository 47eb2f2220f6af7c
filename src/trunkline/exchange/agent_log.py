"""The latest of what is said about each agent: what the exchange logs where it is at work, its failures, and what its
programs write to standard error. In memory, and bounded: the whole of it is in the log of the process.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from trunkline.base import log_context, stderr_lines
from trunkline.base.redact import Clean
from trunkline.base.stderr_lines import UnreadLines
from trunkline.base.values import Value

#: The lines that are kept of each agent, and the agents whose lines are: more than anybody reads, and than there are.
MOST_LINES, MOST_AGENTS = 500, 1000
#: The longest text of a line; of a longer one, such as a stack trace, the end counts.
LONGEST_TEXT = 4000

#: The level of what programs say themselves.
STDERR = "stderr"

#: The loggers of which all is heard.
_OURS = "trunkline"

#: Gives the name of the agent that a session is with, if the session is awake.
AgentOf = Callable[[str], str | None]


class AgentLogLine(Value):
    """One line. `at`: milliseconds since 1970; `level`: as loggers call it, or `stderr`."""

    at: int
    level: str
    text: str
    session: str


class AgentLogs:
    """The lines of all agents."""

    def __init__(self, clock: Callable[[], int], clean: Clean = str) -> None:
        """`clean` takes secrets out of a text."""
        self._clock = clock
        self._clean = clean
        self._lines: dict[str, deque[AgentLogLine | _UnreadLine]] = {}

    def note(self, agent: str, level: str, text: str, session: str = "") -> None:
        """One more line about an agent. May be called in any thread."""
        lines = self._kept_of(agent)
        if lines is not None:
            lines.append(self._line(self._clock(), level, session, lambda: text))

    def note_unread(self, agent: str, said: UnreadLines, session: str = "") -> None:
        """Lines of a program of an agent. They cost next to nothing until somebody asks for them."""
        lines = self._kept_of(agent)
        if lines is not None:
            make = partial(self._line, self._clock(), STDERR, session)
            lines.extend(_UnreadLine(partial(make, text)) for text in said.last(MOST_LINES))

    def of(self, agent: str, limit: int = MOST_LINES) -> list[AgentLogLine]:
        """The latest lines about an agent, oldest first."""
        latest = list(self._lines.get(agent, ()))[-limit:]
        return [line.read() if isinstance(line, _UnreadLine) else line for line in latest]

    def _kept_of(self, agent: str) -> deque[AgentLogLine | _UnreadLine] | None:
        lines = self._lines.get(agent)
        if lines is None and len(self._lines) < MOST_AGENTS:
            lines = self._lines.setdefault(agent, deque(maxlen=MOST_LINES))
        return lines

    def _line(self, at: int, level: str, session: str, text: Callable[[], str]) -> AgentLogLine:
        # Cleaned before it is cut: half a secret would not be known for one.
        return AgentLogLine(at, level, self._clean(text())[-LONGEST_TEXT:], session)


class _UnreadLine:
    """A line that is made when somebody first asks for it: of a program that floods, few are."""

    __slots__ = ("_line",)

    def __init__(self, make: Callable[[], AgentLogLine]) -> None:
        self._line: AgentLogLine | Callable[[], AgentLogLine] = make

    def read(self) -> AgentLogLine:
        line = self._line
        if not isinstance(line, AgentLogLine):
            self._line = line = line()
        return line


@contextmanager
def hearing(logs: AgentLogs, agent_of: AgentOf) -> Iterator[None]:
    """Keep what is said about agents for the duration of the block."""
    handler = _AgentLogHandler(logs, agent_of)
    logger = logging.getLogger(_OURS)
    logger.addHandler(handler)
    stderr_lines.listeners.append(handler.said)
    try:
        yield
    finally:
        stderr_lines.listeners.remove(handler.said)
        logger.removeHandler(handler)


class _AgentLogHandler(logging.Handler):
    """Finds out whom a line is about: the agent of the session that it was written for."""

    def __init__(self, logs: AgentLogs, agent_of: AgentOf) -> None:
        super().__init__()
        self._logs = logs
        self._agent_of = agent_of

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._note(record)
        except Exception:
            # As every handler does: who logs something has no part in what is wrong with it.
            self.handleError(record)

    def _note(self, record: logging.LogRecord) -> None:
        agent, session = self._about(str(vars(record).get("session") or ""))
        if agent is not None:
            text = record.getMessage()
            if record.exc_info:
                text = f"{text}\n{logging.Formatter().formatException(record.exc_info)}"
            self._logs.note(agent, record.levelname.lower(), text, session)

    def said(self, program: str, lines: UnreadLines) -> None:
        """A program has written to standard error."""
        agent, session = self._about("")
        if agent is not None:
            self._logs.note_unread(agent, lines, session)

    def _about(self, session: str) -> tuple[str | None, str]:
        known = log_context.known("")
        session = session or str(known.get("session") or "")
        agent = known.get("agent")
        return (str(agent) if agent else self._agent_of(session) if session else None), session
