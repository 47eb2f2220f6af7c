"""Sub-agents at work side by side: a line for each, which says what it is at, and when they are done what each found.

Their calls come like the agent's own, under ids that begin with the sub-agent's number and with its name in front of
what they do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from trunkline.cli.terminal import words
from trunkline.cli.terminal.calls import Caption, clean, one_line
from trunkline.cli.terminal.marks import joined
from trunkline.cli.terminal.running import RunningTool

#: As many as one call can have.
MOST_AGENTS = 20

#: The tool that hands tasks to them.
SPAWN_TOOL = "Spawn"
_CALL = re.compile(r"(sub\d+)\.")
_FOOT = "\n[turns: "
_HEAD = re.compile(r"^## (.*) \[(OK|ERROR)\]$", re.MULTILINE)


class SubAgent:
    """One of them."""

    def __init__(self, name: str, since: float) -> None:
        self.name = name
        self.since = since
        self.took: float | None = None
        """How long it worked, once it is done."""
        self.is_bad = False
        self._says = ""
        self._calls = 0
        self._at_work: dict[str, Caption] = {}

    def begin(self, call_id: str, about: Caption) -> None:
        """It uses a tool."""
        self._calls += 1
        self._says = ""
        self._at_work[call_id] = about

    def ask(self) -> None:
        """It waits until somebody allows it something."""
        self._says = "waits for you"

    def end(self, call_id: str) -> None:
        """It does not use it any more."""
        self._says = ""
        self._at_work.pop(call_id, None)

    def report(self, message: str, now: float) -> None:
        """What it says of itself."""
        if message.startswith(("done after ", "failed after ")):
            self.finish(now, is_bad=message.startswith("failed"))
        elif not self._at_work:
            self._says = one_line(message)

    def finish(self, now: float, *, is_bad: bool) -> None:
        """It is done, or cannot go on."""
        self.is_bad = is_bad
        if self.took is None:
            self.took = now - self.since

    def line(self, now: float, said: str = "") -> Text:
        """How it is going, or what it has come to."""
        mark, style = ("·", "yellow") if self.took is None else ("✗", "red") if self.is_bad else ("✓", "green")
        took = now - self.since if self.took is None else self.took
        calls = f"{self._calls} call{'' if self._calls == 1 else 's'}" if self._calls else ""
        at_work = [f"{about.name} {about.about}".rstrip() for about in self._at_work.values()]
        doing = "" if self.took is not None else at_work[-1] if at_work else self._says or "thinking"
        more = joined(calls, words.seconds(took), doing)
        return Text.assemble(
            "  ", (mark, style), " ", one_line(self.name), (f" · {more}", "dim"), (f" · {said}" if said else "")
        )


class RunningAgents(RunningTool):
    """The sub-agents of one call."""

    def __init__(self, about: Caption, since: float, args: Mapping[str, Any]) -> None:
        super().__init__(about, since, is_command=False)
        self._agents = [SubAgent(name, since) for name in _names(args)]
        self._by_number: dict[str, SubAgent] = {}

    def owner(self, call_id: str, description: str) -> SubAgent | None:
        """Whose call it is; None if it is nobody's here."""
        found = _CALL.match(call_id)
        if found is None:
            return None
        number = found[1]
        if number not in self._by_number:
            free = [agent for agent in self._agents if agent not in self._by_number.values()]
            named = [agent for agent in free if description.startswith(f"{agent.name}: ")]
            if not named:
                return None
            self._by_number[number] = max(named, key=lambda agent: len(agent.name))
        return self._by_number[number]

    def report(self, message: str, now: float) -> None:
        """What one of them says, behind its name."""
        named = [agent for agent in self._agents if message.startswith((f"{agent.name}: ", f"{agent.name} (agent "))]
        # Of several with one name, the first that is still at work.
        named.sort(key=lambda agent: (agent.took is not None, -len(agent.name)))
        for agent in named[:1]:
            agent.report(message[len(agent.name) :].partition(": ")[2], now)

    def lines(self, now: float, width: int, rows: int) -> list[Text]:
        return [*super().lines(now, width, 0), *(agent.line(now) for agent in self._agents)]

    def results(self, output: str, now: float) -> list[Text]:
        """What each has come to, with the beginning of its answer; nothing if that cannot be told."""
        answers = _answers(output)
        if len(answers) != len(self._agents):
            return []
        for agent, (is_bad, _) in zip(self._agents, answers, strict=True):
            agent.finish(now, is_bad=is_bad)
        return [agent.line(now, said) for agent, (_, said) in zip(self._agents, answers, strict=True)]


def _names(args: Mapping[str, Any]) -> list[str]:
    """What the tasks are called, as the agent calls them."""
    tasks = args.get("tasks")
    entries = tasks[:MOST_AGENTS] if isinstance(tasks, list) else []
    return [
        str(entry.get("name") or f"task {number}") if isinstance(entry, Mapping) else f"task {number}"
        for number, entry in enumerate(entries, 1)
    ]


def _answers(output: str) -> list[tuple[bool, str]]:
    """Of each sub-agent whether it failed, and the first line that it says."""
    heads = list(_HEAD.finditer(output))
    ends = [*(head.start() for head in heads[1:]), len(output)]
    return [
        (head[2] == "ERROR", one_line(clean(output[head.end() : end].rpartition(_FOOT)[0]).strip()))
        for head, end in zip(heads, ends, strict=True)
    ]
