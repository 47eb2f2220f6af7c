"""What a conversation looks like: events become lines that stay and lines that are live."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Group, RenderableType
from rich.text import Text

from trunkline.cli import trace
from trunkline.cli.terminal import diffs, words
from trunkline.cli.terminal.calls import Caption, caption, clean, clean_delta, glance, one_line
from trunkline.cli.terminal.paint import ANY_WIDTH, PROMPT, Painter
from trunkline.cli.terminal.screen import Screen
from trunkline.cli.wrapping import commands_apart
from trunkline.core import events
from trunkline.core.events import ToolFinished
from trunkline.core.graph.turns import TURN_DIAGNOSTICS
from trunkline.core.preview import Preview, plain

if TYPE_CHECKING:
    from trunkline.cli.terminal.answer import AnswerView, CommitLines

#: A diff is shown up to here; `git diff` shows the rest.
DIFF_LINES = 40
#: The end of the thinking that is visible while it goes on.
THINKING_LINES = 3
#: More of a block is not rewritten: a terminal that becomes smaller would be left with what it cannot reach any more.
LIVE_LINES = 12
#: Below the live block: a blank line, some tools, the spinner, what is being typed.
STATUS_ROWS = 6

_INDENT = "    "
_SPINNER = "⠋⠙⠹⠸"
_SPINS_PER_SECOND = 6

_Kind = Literal["text", "thinking", "tool", "note", "end", "user"]
_Mark = tuple[str, str]
_DONE: _Mark = ("●", "green")
_BAD: _Mark = ("●", "red")
_RUNNING: _Mark = ("●", "yellow")
_ASKED: _Mark = ("?", "bold yellow")
_CANCELLED: _Mark = ("✗", "red")


#: More than that is shown without colours, and broken by the terminal: painting it takes longer than anybody waits.
PAINTED_CHARS = 50_000


class _Running:
    """A tool at work."""

    def __init__(self, about: Caption, since: float) -> None:
        self.about = about
        self.since = since
        self.says = ""


class View:
    """Paints one conversation. `show` takes its events, `draw` writes a frame."""

    def __init__(self, screen: Screen, painter: Painter, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.whole_thoughts = False
        """Whether thinking stays on the screen in full."""
        self.traces = False
        """Whether it is told which way a turn took through its graph."""
        self.sound_seconds = 0.0
        """How much of the turn was said aloud."""
        self._screen = screen
        self._painter = painter
        self._clock = clock
        self._last: _Kind | None = None
        self._captions: dict[str, Caption] = {}
        self._seen: set[str] = set()
        """Calls whose change was shown before it was allowed."""
        self._answered: set[str] = set()
        """Calls that a person has decided on."""
        self._head: str | None = None
        """The call that the last committed lines are about."""
        self._answer: AnswerView | None = None
        self._thoughts: list[str] = []
        self._thinking_since = 0.0
        self._running: dict[str, _Running] = {}
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
                self._apart("text", live)
        thoughts = self._live_thoughts()
        self._apart("thinking", thoughts)
        status = [*self._live_tools(), *asked, *(() if asked else self._spinner())]
        self._apart("tool", status, always=bool(live or thoughts))
        self._screen.frame([*live, *thoughts, *status, *typed])

    def _apart(self, kind: _Kind, lines: list[str], *, always: bool = False) -> None:
        """Put a blank line before live lines, as there will be one when they stay."""
        if lines and (always or (self._last is not None and (kind != self._last or kind == "text"))):
            lines.insert(0, "")

    def lines(self, text: Text) -> list[str]:
        """Some text, broken where the terminal ends."""
        return self._lines(text)

    def line(self, text: Text | str, style: str = "") -> str:
        """One line, cut to the width."""
        line = Text(text, style) if isinstance(text, str) else text
        line.truncate(max(1, min(self._painter.width, self._screen.columns) - 1), overflow="ellipsis")
        return self._painter.lines(line)[0]

    # What is not an event.

    def user(self, text: str) -> None:
        """What somebody said, where it was not typed on this screen."""
        self._put("user", self._lines(Text(f"{PROMPT} {clean(text)}", "bold")))

    def note(self, text: str, style: str = "dim") -> None:
        """Something worth knowing."""
        self._put("note", self._lines(Text(commands_apart(clean(text)), style)))

    def failure(self, text: str) -> None:
        """Something that went wrong."""
        self._put("note", self._lines(Text(f"✗ {commands_apart(clean(text))}", "red")))

    def plain(self, what: RenderableType) -> None:
        """Anything else."""
        self._put("note", self._lines(what))

    def unbroken(self, text: Text) -> None:
        """One line to copy: a terminal that is too narrow breaks it, and still knows that it is one."""
        self._put("note", self._painter.lines(text, ANY_WIDTH))

    def typed(self) -> None:
        """Somebody typed at a prompt: what follows stands apart."""
        self._last = "user"

    def spaced(self) -> None:
        """There is a blank line already."""
        self._last = None

    def space(self) -> None:
        """Leave one blank line."""
        if self._last is not None:
            self._screen.commit([""])
            self._last = None

    def know(self, call_id: str, name: str, args: Mapping[str, Any], description: str) -> None:
        """What a call is about of which only the start will be shown."""
        self._captions[call_id] = caption(name, args, description)

    # Approvals.

    def asked(self, shown: Preview) -> list[str]:
        """What is to be allowed, in full, and what it would do."""
        if sum(len(part.text) for part in shown.parts) > PAINTED_CHARS:
            head, *below = plain(shown).expandtabs(4).split("\n")
            return [f"{_ASKED[0]} {head}", *(f"  {line}" for line in below)]
        # As heavy as Markdown, and not needed before a question.
        from trunkline.cli.terminal.preview import painted

        # Folded, not cut: nobody should allow what they cannot see.
        head_line = diffs.marked(_named(Caption(shown.name, shown.about.text), Text()))
        parts = painted(shown)
        head_lines = self._lines(diffs.Folded(head_line, Text(f"{_ASKED[0]} ", _ASKED[1])))
        return [*head_lines, *(() if parts is None else self._indented(parts))]

    def fitted(self, lines: Sequence[str], rows: int) -> list[str]:
        """Lines about which somebody decides, in so many rows: without their middle, where it says how much is missing.

        The first ones and the last ones stay in sight, however small the screen is.
        """
        if len(lines) <= rows:
            return list(lines)
        tail = (rows - 1) // 3
        head = max(1, rows - 1 - tail)
        missing = len(lines) - head - tail
        mark = self.line(diffs.marked(Text(f"[... {missing:,} rows are not shown ...]")))
        return [*lines[:head], _INDENT + mark, *lines[len(lines) - tail :]]

    def _indented(self, what: RenderableType) -> list[str]:
        lines = self._painter.lines(what, max(1, self._painter.width - len(_INDENT)))
        return [_INDENT + line for line in lines]

    def put_asked(self, request: events.ToolRequested, lines: Sequence[str], *, is_change: bool) -> None:
        """Let it stay."""
        self._close()
        self._put("tool", list(lines))
        self._head = request.call_id
        if is_change:
            self._seen.add(request.call_id)

    def answered(self, request: events.ToolRequested, text: str, style: str) -> None:
        """What became of it. The result is shown when it comes."""
        self._answered.add(request.call_id)
        self._add(self._lines(Text(f"  {clean(text)}", style)))

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
                self.know(call_id, name, args, description)
            case events.ToolRequested(call_id=call_id, name=name, args=args, description=description):
                self.know(call_id, name, args, description)
            case events.ToolStarted(call_id=call_id, name=name):
                self._close()
                about = self._captions.setdefault(call_id, caption(name))
                self._running[call_id] = _Running(about, self._clock())
            case events.ToolFinished():
                self._finished(event)
            case events.ToolCancelled(call_id=call_id, reason=reason):
                self._cancelled(call_id, reason)
            case events.Progress(message=message, call_id=call_id):
                self._progress(call_id, message)
            case events.Failed(message=message, retryable=retryable):
                self._close()
                self.failure(message + (" (worth another try)" if retryable else ""))
            case events.TurnEnded():
                self._close()
                self._running.clear()
                self._since = None
            case _:
                self._remark(event)

    def ended(self, parts: list[str], *, stopped: bool) -> None:
        """The last line of a turn."""
        parts = [*(["stopped"] if stopped else []), *parts]
        if parts:
            self._put("end", self._lines(Text("  " + " · ".join(parts), "dim")))

    @property
    def elapsed(self) -> float:
        """How long the turn has taken so far."""
        return 0.0 if self._since is None else self._clock() - self._since

    def _remark(self, event: events.Event) -> None:
        match event:
            case events.Notice(message=message):
                text = message
            case events.Plan():
                text = event.words
            case events.Extension(kind=kind, data=data) if kind == TURN_DIAGNOSTICS:
                if not self.traces:
                    return
                text = trace.way(data)
            case events.Extension(kind=kind) if kind in events.UNSEEN:
                return
            case events.Extension():
                text = one_line(trace.told(event))
            case events.Audio():
                # Heard or kept elsewhere; how much it was is told at the end.
                self.sound_seconds += trace.seconds(event)
                return
            case _:
                return
        self._close()
        self.note(text)

    def _begin(self) -> None:
        self._since = self._clock()
        self.sound_seconds = 0.0
        self._says = ""
        self._running.clear()

    def _said(self, text: str) -> None:
        self._fold_thoughts()
        self._says = ""
        if self._answer is None:
            # Markdown takes a while to import: not before the first prompt, but while a model thinks.
            from trunkline.cli.terminal.answer import AnswerView

            self._answer = AnswerView(self._painter)
        self._answer.feed(text)

    def _thought(self, text: str) -> None:
        if self._answer is not None:
            self._close()
        if not self._thoughts:
            self._thinking_since = self._clock()
        self._thoughts.append(clean_delta(text))

    def _progress(self, call_id: str | None, message: str) -> None:
        tool = self._running.get(call_id or "")
        if tool is not None:
            tool.says = one_line(message)
        else:
            self._says = one_line(message)
        if not self._screen.moves:
            self.note(message)

    def _finished(self, event: ToolFinished) -> None:
        self._close()
        tool = self._running.pop(event.call_id, None)
        about = self._captions.get(event.call_id) or caption(event.name)
        took = 0.0 if tool is None else self._clock() - tool.since
        mark = _DONE if event.status == "success" else _BAD
        if event.output_type == "diff":
            added, removed = diffs.counts(event.output)
            self._head_line(event.call_id, about, mark, f"+{added} -{removed}")
            if event.call_id not in self._seen:
                self._diff(event.output)
            return
        self._head_line(event.call_id, about, mark, words.seconds(took) if took >= 1 else "")
        look = glance(event)
        style = "red" if event.status == "error" else "dim"
        lines = [f"  {'└' if number == 0 else ' '} {line}" for number, line in enumerate(look.lines)]
        more = [f"    … {look.hidden} more line{'' if look.hidden == 1 else 's'}"] if look.hidden else []
        if event.status == "error":
            # The end is shown: what is hidden comes before it.
            lines = [*more, *lines]
        else:
            lines += more
        self._add([self.line(Text(line, style)) for line in lines])

    def _cancelled(self, call_id: str, reason: str) -> None:
        self._close()
        self._running.pop(call_id, None)
        about = self._captions.get(call_id) or caption("tool")
        # That it was refused, or that the turn was stopped, has just been said.
        if call_id not in self._answered and self._head != call_id:
            self._head_line(call_id, about, _CANCELLED)
            self._add([self.line(Text(f"  {clean(reason)}", "red"))])

    def _diff(self, diff: str) -> None:
        lines = diffs.painted(diffs.rows(diff))
        shown: list[RenderableType] = list(lines[:DIFF_LINES])
        if len(lines) > DIFF_LINES:
            shown.append(Text(f"… {len(lines) - DIFF_LINES} more lines", "dim"))
        self._add(self._indented(Group(*shown)))

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
                self._put("text", list(piece.lines), apart=True)
            else:
                self._add(list(piece.lines))

    def _fold_thoughts(self) -> None:
        if not self._thoughts:
            return
        thought = "".join(self._thoughts).strip()
        self._thoughts.clear()
        if not thought:
            return
        took = self._clock() - self._thinking_since
        if self.whole_thoughts or ("\n" not in thought and len(thought) < self._painter.width - 4):
            self._put("thinking", self._lines(Text(f"∴ {thought}", "dim italic")))
            return
        long = f"thought for {words.seconds(took)}: " if took >= 1 else ""
        self._put("thinking", [self.line(Text(f"∴ {long}{one_line(thought)}", "dim italic"))])

    def _live_thoughts(self) -> list[str]:
        if not self._thoughts:
            return []
        text = Text(f"∴ {''.join(self._thoughts).strip()}", "dim italic")
        return self._lines(text)[-THINKING_LINES:]

    def _live_tools(self) -> list[str]:
        now = self._clock()
        return [
            self._caption_line(tool.about, _RUNNING, _joined(words.seconds(now - tool.since), tool.says))
            for tool in self._running.values()
        ]

    def _spinner(self) -> list[str]:
        if self._since is None or self._running:
            return []
        turn = int(self._clock() * _SPINS_PER_SECOND) % len(_SPINNER)
        says = self._says or ("thinking" if self._thoughts else "working")
        line = Text.assemble((_SPINNER[turn], "cyan"), (f" {says} · {words.seconds(self.elapsed)} · Esc stops", "dim"))
        return [self.line(line)]

    def _head_line(self, call_id: str, about: Caption, mark: _Mark, more: str = "") -> None:
        if self._head == call_id and not more:
            return
        self._put("tool", [self._caption_line(about, mark, more)])
        self._head = call_id

    def _caption_line(self, about: Caption, mark: _Mark, more: str) -> str:
        room = self._painter.width - len(more) - 4
        line = _caption(about, mark, Text())
        if more and room > len(about.name) + 4:
            line.truncate(room, overflow="ellipsis")
        line.append(f" · {more}" if more else "", "dim")
        return self.line(line)

    def _lines(self, what: RenderableType) -> list[str]:
        return self._painter.lines(what)

    def _put(self, kind: _Kind, lines: list[str], *, apart: bool = False) -> None:
        """Commit lines of a kind, with a blank line between two kinds, and between two of a kind that stand `apart`."""
        if self._last is not None and (apart or kind != self._last):
            self._screen.commit([""])
        self._screen.commit(lines)
        self._last = kind
        self._head = None

    def _add(self, lines: list[str]) -> None:
        """Commit lines that belong to the last ones."""
        self._screen.commit(lines)


def _caption(about: Caption, mark: _Mark, line: Text) -> Text:
    return _named(about, line.append(f"{mark[0]} ", mark[1]))


def _named(about: Caption, line: Text) -> Text:
    line.append(about.name, "bold")
    return line.append(f" {about.about}" if about.about else "")


def _joined(*parts: str) -> str:
    return " · ".join(filter(None, parts))
