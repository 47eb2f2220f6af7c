"""Tool calls on the screen: what is asked about, what runs, what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from trunkline.base.vocabulary import EXIT_PLAN
from trunkline.cli.terminal import diffs, words
from trunkline.cli.terminal.calls import Caption, caption, clean, glance
from trunkline.cli.terminal.marks import ASKED, BAD, CANCELLED, DONE, Mark, captioned, joined, named
from trunkline.cli.terminal.page import INDENT, Page
from trunkline.cli.terminal.running import OUTPUT_LINES, RunningTool
from trunkline.cli.terminal.subagents import SPAWN_TOOL, RunningAgents, SubAgent
from trunkline.core.events import ToolFinished, ToolRequested
from trunkline.core.preview import Preview, plain

#: A diff is shown up to here; `git diff` shows the rest.
DIFF_LINES = 40
#: More than that is shown without colours, and broken by the terminal: painting it takes longer than anybody waits.
PAINTED_CHARS = 50_000


class CallsView:
    """The calls of one conversation. Those of a sub-agent are told by its line, but for changes and what was asked."""

    def __init__(self, page: Page, clock: Callable[[], float], close: Callable[[], None]) -> None:
        """`close` ends what is live above them."""
        self._page = page
        self._clock = clock
        self._close = close
        self._captions: dict[str, Caption] = {}
        self._args: dict[str, Mapping[str, Any]] = {}
        """Of calls that have not begun."""
        self._running: dict[str, RunningTool] = {}
        self._owners: dict[str, SubAgent] = {}
        """Whose calls they are which are not the agent's own."""
        self._seen: set[str] = set()
        """Calls whose change was shown before it was allowed."""
        self._answered: set[str] = set()
        """Calls that a person has decided on."""

    @property
    def are_any(self) -> bool:
        """Whether something runs."""
        return bool(self._running)

    def know(
        self, call_id: str, name: str, args: Mapping[str, Any], description: str, *, is_asked: bool = False
    ) -> None:
        """What a call is about of which only the start will be shown. `is_asked`: somebody decides about it."""
        self._captions[call_id] = caption(name, args, description)
        self._args[call_id] = args
        for tool in self._running.values():
            owner = tool.owner(call_id, description) if isinstance(tool, RunningAgents) else None
            if owner is not None:
                self._owners[call_id] = owner
                if is_asked:
                    owner.ask()

    def forget(self) -> None:
        """The turn is over, or another begins: nothing runs any more."""
        self._running.clear()
        self._owners.clear()
        self._args.clear()
        self._captions.clear()
        # Ids may come again.
        self._seen.clear()
        self._answered.clear()

    # What somebody decides about.

    def asked(self, shown: Preview) -> list[str]:
        """What is to be allowed, in full, and what it would do."""
        if sum(len(part.text) for part in shown.parts) > PAINTED_CHARS:
            head, *below = plain(shown).expandtabs(4).split("\n")
            return [f"{ASKED[0]} {head}", *(f"  {line}" for line in below)]
        # As heavy as Markdown, and not needed before a question.
        from trunkline.cli.terminal.preview import painted

        # Folded, not cut: nobody should allow what they cannot see.
        head_line = diffs.marked(named(Caption(shown.name, shown.about.text), Text()))
        parts = painted(shown)
        head_lines = self._page.lines(diffs.Folded(head_line, Text(f"{ASKED[0]} ", ASKED[1])))
        return [*head_lines, *(() if parts is None else self._page.indented(parts))]

    def fitted(self, lines: Sequence[str], rows: int, left_out: Sequence[str] = ()) -> list[str]:
        """Lines about which somebody decides, in so many rows: without their middle, where it says how much is missing.
        `left_out` is what the lines did not have to begin with.

        The first ones and the last ones stay in sight, however small the screen is.
        """
        if len(lines) <= rows:
            return list(lines)
        tail = (rows - 1) // 3
        head = max(1, rows - 1 - tail)
        # The rows that go may be those that said so.
        missing = " and ".join([f"{len(lines) - head - tail:,} rows", *left_out])
        mark = self._page.line(diffs.marked(Text(f"{INDENT}[... {missing} are not shown ...]")))
        return [*lines[:head], mark, *lines[len(lines) - tail :]]

    def put_asked(self, request: ToolRequested, lines: Sequence[str], *, is_change: bool) -> None:
        """Let it stay."""
        self._close()
        self._page.put("tool", list(lines))
        self._page.about = request.call_id
        if is_change:
            self._seen.add(request.call_id)

    def answered(self, request: ToolRequested, text: str, style: str) -> None:
        """What became of it. The result is shown when it comes."""
        self._answered.add(request.call_id)
        self._page.add(self._page.lines(Text(f"  {clean(text)}", style)))

    # What runs.

    def begin(self, call_id: str, name: str) -> None:
        """A tool runs."""
        about = self._captions.setdefault(call_id, caption(name))
        args, now = self._args.pop(call_id, {}), self._clock()
        if call_id in self._owners:
            self._owners[call_id].begin(call_id, about)
        elif name == SPAWN_TOOL:
            self._running[call_id] = RunningAgents(about, now, args)
        else:
            self._running[call_id] = RunningTool(about, now, is_command=isinstance(args.get("command"), str))

    def report(self, call_id: str | None, message: str) -> bool:
        """What a tool is at; whether there is such a tool."""
        tool = self._running.get(call_id or "")
        if tool is not None:
            tool.report(message, self._clock())
        return tool is not None or call_id in self._owners

    def live(self) -> list[str]:
        """The lines of what runs."""
        if not self._running:
            return []
        now, width = self._clock(), self._page.width
        # Half of a small screen is for what they print.
        rows = min(OUTPUT_LINES, self._page.screen.rows // 2 // len(self._running))
        return [self._page.line(text) for tool in self._running.values() for text in tool.lines(now, width, rows)]

    # What came of it.

    def finish(self, event: ToolFinished) -> None:
        """A tool has ended."""
        tool = self._running.pop(event.call_id, None)
        about = self._captions.get(event.call_id) or caption(event.name)
        owner = self._owners.pop(event.call_id, None)
        if owner is not None:
            owner.end(event.call_id)
            if not self._is_told(event):
                return
            about = about.replace(name=f"{owner.name}: {about.name}")
        if event.name == EXIT_PLAN and event.status == "success" and event.call_id in self._answered:
            # What the model is told of it is what the person has just said.
            return
        took = 0.0 if tool is None else self._clock() - tool.since
        mark = DONE if event.status == "success" else BAD
        if event.output_type == "diff":
            added, removed = diffs.counts(event.output)
            self._head(event.call_id, about, mark, f"+{added} -{removed}")
            if event.call_id not in self._seen:
                self._diff(event.output)
            return
        self._head(event.call_id, about, mark, words.rounded(took) if took >= 1 else "")
        told = tool.results(event.output, self._clock()) if isinstance(tool, RunningAgents) else []
        self._page.add([self._page.line(text) for text in told or _excerpt(event)])

    def cancel(self, call_id: str, reason: str) -> None:
        """A tool was denied, or stopped before it ended. What it had printed by then stays."""
        tool = self._running.pop(call_id, None)
        owner = self._owners.pop(call_id, None)
        if owner is not None:
            owner.end(call_id)
            return
        about = self._captions.get(call_id) or caption("tool")
        if tool is not None:
            took = words.rounded(self._clock() - tool.since)
            self._head(call_id, about, CANCELLED, joined(took, clean(reason)))
            self._page.add([self._page.line(text) for text in tool.printed()])
        # That it was refused has just been said.
        elif call_id not in self._answered and self._page.about != call_id:
            self._head(call_id, about, CANCELLED)
            self._page.add([self._page.line(Text(f"  {clean(reason)}", "red"))])

    def _is_told(self, event: ToolFinished) -> bool:
        """Whether a call of a sub-agent has lines of its own."""
        return event.output_type == "diff" or event.call_id in self._answered or not self._page.screen.moves

    def _diff(self, diff: str) -> None:
        lines = diffs.painted(diffs.rows(diff))
        shown: list[RenderableType] = list(lines[:DIFF_LINES])
        if len(lines) > DIFF_LINES:
            shown.append(Text(f"… {len(lines) - DIFF_LINES} more lines", "dim"))
        self._page.add(self._page.indented(Group(*shown)))

    def _head(self, call_id: str, about: Caption, mark: Mark, more: str = "") -> None:
        if self._page.about == call_id and not more:
            return
        self._page.put("tool", [self._page.line(captioned(about, mark, more, self._page.width))])
        self._page.about = call_id


def _excerpt(event: ToolFinished) -> list[Text]:
    """A look at a result."""
    look = glance(event)
    style = "red" if event.status == "error" else "dim"
    more = [f"… {look.hidden} more line{'' if look.hidden == 1 else 's'}"] if look.hidden else []
    # Of what failed the end is shown: what is hidden comes before it.
    lines = [*more, *look.lines] if event.status == "error" else [*look.lines, *more]
    return [Text(f"  {'└' if number == 0 else ' '} {line}", style) for number, line in enumerate(lines)]
