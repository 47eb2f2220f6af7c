"""What a conversation looks like: events become lines that stay and lines that are live."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from trunkline.base.browser import is_page
from trunkline.cli.terminal import diffs, words
from trunkline.cli.terminal.calls import clean, one_line
from trunkline.cli.terminal.calls_view import CallsView
from trunkline.cli.terminal.page import Page
from trunkline.cli.terminal.paint import ANY_WIDTH, PROMPT, Painter
from trunkline.cli.terminal.screen import Screen
from trunkline.cli.terminal.thoughts import ThoughtView
from trunkline.cli.terminal.todos import TODO_TOOL, TodoList, listed
from trunkline.cli.wrapping import commands_apart
from trunkline.core import asides, events
from trunkline.core.events import ToolFinished
from trunkline.core.graph.turns import TURN_DIAGNOSTICS

if TYPE_CHECKING:
    from trunkline.cli.terminal.answer import AnswerView, CommitLines

#: The end of the thinking that is visible while it goes on.
THINKING_LINES = 3
#: More of a block is not rewritten: a terminal that becomes smaller would be left with what it cannot reach any more.
LIVE_LINES = 12
#: Below the live block: a blank line, some tools, the spinner, what is being typed.
STATUS_ROWS = 6

_SPINNER = "⠋⠙⠹⠸"
_SPINS_PER_SECOND = 6


class View:
    """Paints one conversation. `show` takes its events, `draw` writes a frame."""

    def __init__(self, screen: Screen, painter: Painter, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.whole_thoughts = False
        """Whether thinking stays on the screen in full."""
        self.traces = False
        """Whether it is told which way a turn took through its graph."""
        self.sound_seconds = 0.0
        """How much of the turn was said aloud."""
        self.context: tuple[int, int] | None = None
        """How many tokens of its model's window an agent uses, and how many there are, where its events tell."""
        self._screen = screen
        self._page = Page(screen, painter)
        self._clock = clock
        self.calls = CallsView(self._page, clock, self._close)
        self._answer: AnswerView | None = None
        self._thoughts: ThoughtView | None = None
        self._todos = TodoList()
        self._since: float | None = None
        self._says = ""

    # Frames.

    def draw(self, asked: Sequence[str] = (), typed: Sequence[str] = ()) -> None:
        """Write what is new. `asked` is a question, during which nothing spins; `typed` is what is being typed."""
        live: list[str] = []
        if self._answer is not None:
            room = self._screen.rows - STATUS_ROWS - len(asked) - len(typed)
            self._pieces(self._answer.settle(max(3, min(LIVE_LINES, room))))
            live = self._answer.live()
            if live and not self._answer.goes_on:
                self._page.apart("text", live)
        thoughts = self._live_thoughts()
        self._page.apart("thinking", thoughts)
        status = [*self.calls.live(), *asked, *(() if asked else (*self._spinner(), *self._live_todos()))]
        self._page.apart("tool", status, always=bool(live or thoughts))
        self._screen.frame([*live, *thoughts, *status, *typed])

    def lines(self, text: Text) -> list[str]:
        """Some text, broken where the terminal ends."""
        return self._page.lines(text)

    def line(self, text: Text | str, style: str = "") -> str:
        """One line, cut to the width."""
        return self._page.line(text, style)

    # What is not an event.

    def user(self, text: str) -> None:
        """What somebody said, where it was not typed on this screen."""
        self._page.put("user", self._page.lines(Text(f"{PROMPT} {clean(text)}", "bold")))

    def steered(self, text: str) -> None:
        """What was said in the middle of the answer, which goes on below it."""
        self._close()
        self.user(text)

    def note(self, text: str, style: str = "dim") -> None:
        """Something worth knowing."""
        lines: list[str] = []
        for line in commands_apart(clean(text)).split("\n"):
            lines += self._page.painter.lines(Text(line, style), ANY_WIDTH if is_page(line) else None)
        self._page.put("note", lines)

    def failure(self, text: str) -> None:
        """Something that went wrong."""
        self._page.put("note", self._page.lines(Text(f"✗ {commands_apart(clean(text))}", "red")))

    def plain(self, what: RenderableType) -> None:
        """Anything else."""
        self._page.put("note", self._page.lines(what))

    def unbroken(self, text: Text) -> None:
        """One line to copy: a terminal that is too narrow breaks it, and still knows that it is one."""
        self._page.put("note", self._page.painter.lines(text, ANY_WIDTH))

    def typed(self) -> None:
        """Somebody typed at a prompt: what follows stands apart."""
        self._page.last = "user"

    def spaced(self) -> None:
        """There is a blank line already."""
        self._page.last = None

    def show_todos(self) -> bool:
        """Show the agent's list of things to do as it is now; whether it has one."""
        self._keep(self._todos.plan)
        return self._todos.plan is not None

    def space(self) -> None:
        """Leave one blank line."""
        self._page.space()

    # Events.

    def show(self, event: events.Event) -> None:
        """Take one more event."""
        match event:
            case events.TextDelta(text=text):
                self._said(text)
            case events.ThinkingDelta(text=text):
                self._thought(text)
            case events.TurnStarted():
                self._begin()
            case events.ToolJudged(call_id=call_id, name=name, args=args, description=description):
                self.calls.know(call_id, name, args, description)
            case events.ToolRequested(call_id=call_id, name=name, args=args, description=description):
                self.calls.know(call_id, name, args, description, is_asked=True)
            case events.ToolStarted(call_id=call_id, name=name):
                self._started(call_id, name)
            case events.ToolFinished():
                self._finished(event)
            case events.ToolCancelled(call_id=call_id, reason=reason):
                self._close()
                self.calls.cancel(call_id, reason)
            case events.Progress(message=message, call_id=call_id):
                self._progress(call_id, message)
            case events.Failed(message=message, retryable=retryable):
                self._close()
                self.failure(message + (" (worth another try)" if retryable else ""))
            case events.TurnEnded():
                self._close()
                self._keep(self._todos.close())
                self.calls.forget()
                self._since = None
            case _:
                self._remark(event)

    def ended(self, parts: list[str], *, stopped: bool) -> None:
        """The last line of a turn."""
        parts = [*(["stopped"] if stopped else []), *parts]
        if parts:
            self._page.put("end", self._page.lines(Text("  " + " · ".join(parts), "dim")))

    @property
    def elapsed(self) -> float:
        """How long the turn has taken so far."""
        return 0.0 if self._since is None else self._clock() - self._since

    def _remark(self, event: events.Event) -> None:
        match event:
            case events.Plan():
                self._plan(event)
                return
            case events.Notice(message=message) if message.startswith(diffs.HEAD):
                self._close()
                self.plain(diffs.whole(message))
                return
            case events.Notice(message=message):
                text = message
            case events.Extension(kind=kind, data=data) if kind == TURN_DIAGNOSTICS:
                if not self.traces:
                    return
                text = asides.way(data)
            case events.Extension(kind=events.CONTEXT, data=data):
                used, size = data.get("used"), data.get("size")
                self.context = (used, size) if isinstance(used, int) and isinstance(size, int) else None
                return
            case events.Extension(kind=kind) if kind in events.UNSEEN:
                return
            case events.Extension():
                text = one_line(asides.told(event))
            case events.Audio():
                # Heard or kept elsewhere; how much it was is told at the end.
                self.sound_seconds += asides.seconds(event)
                return
            case _:
                return
        self._close()
        self.note(text)

    def _begin(self) -> None:
        self._since = self._clock()
        self.sound_seconds = 0.0
        self._says = ""
        self.calls.forget()

    def _said(self, text: str) -> None:
        self._fold_thoughts()
        self._says = ""
        if self._answer is None:
            # Markdown takes a while to import: not before the first prompt, but while a model thinks.
            from trunkline.cli.terminal.answer import AnswerView

            self._answer = AnswerView(self._page.painter)
        self._answer.feed(text)

    def _thought(self, text: str) -> None:
        if self._answer is not None:
            self._close()
        if self._thoughts is None:
            self._thoughts = ThoughtView(self._clock())
        self._thoughts.feed(text)

    def _progress(self, call_id: str | None, message: str) -> None:
        said, is_of_call = self._says, self.calls.report(call_id, message)
        if not is_of_call:
            self._says = one_line(message)
        if not self._screen.moves and (is_of_call or said != self._says):
            self.note(message)

    def _plan(self, plan: events.Plan) -> None:
        before = self._todos.plan
        kept = self._todos.take(plan)
        if not self._screen.moves:
            self._todos.close()
            if told := plan.since(before):
                self.note(told)
            return
        for each in kept:
            self._keep(each)
        if self._since is None:
            # Nothing goes on that could change it.
            self._keep(self._todos.close())

    def _keep(self, plan: events.Plan | None) -> None:
        """Let a list stay on the screen."""
        if plan is not None:
            self._close()
            self._page.put("plan", [line for text in listed(plan) for line in self._page.lines(text)], apart=True)

    def _started(self, call_id: str, name: str) -> None:
        self._close()
        if name != TODO_TOOL:
            self.calls.begin(call_id, name)

    def _finished(self, event: ToolFinished) -> None:
        self._close()
        # Of a list that is shown nothing else is to be seen.
        if event.name != TODO_TOOL or event.status == "error" or not self._todos.is_known:
            self.calls.finish(event)

    # Putting lines on the screen.

    def _close(self) -> None:
        """End the stretch of text or thinking that is live."""
        self._fold_thoughts()
        if self._answer is not None:
            answer, self._answer = self._answer, None
            self._pieces(answer.close())

    def _pieces(self, pieces: list[CommitLines]) -> None:
        for piece in pieces:
            if piece.first:
                self._page.put("text", list(piece.lines), apart=True)
            else:
                self._page.add(list(piece.lines))

    def _fold_thoughts(self) -> None:
        thoughts, self._thoughts = self._thoughts, None
        if thoughts is None or thoughts.text is None:
            return
        folded = None if self.whole_thoughts else thoughts.folded(self._clock(), self._page.width)
        self._page.put("thinking", self._page.lines(thoughts.text) if folded is None else [self.line(folded)])

    def _live_thoughts(self) -> list[str]:
        text = None if self._thoughts is None else self._thoughts.end(self._page.width * THINKING_LINES)
        return [] if text is None else self._page.lines(text)[-THINKING_LINES:]

    def _live_todos(self) -> list[str]:
        return [self.line(text) for text in self._todos.live(self._screen.rows // 3)]

    def _spinner(self) -> list[str]:
        if self._since is None:
            return []
        turn = int(self._clock() * _SPINS_PER_SECOND) % len(_SPINNER)
        says = self._says or ("thinking" if self._thoughts else "working")
        line = Text.assemble((_SPINNER[turn], "cyan"), (f" {says} · {words.seconds(self.elapsed)} · Esc stops", "dim"))
        return [self.line(line)]
