"""What happens in a session, as a client is told of it: events become updates.

Of a call that needs no approval the client hears when it begins; of any other when it is asked about, and always with
what it would change, before the question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trunkline.base.visible import inline, visible
from trunkline.base.vocabulary import EXIT_PLAN
from trunkline.core import events as core
from trunkline.core.events import ToolJudged, ToolRequested
from trunkline.core.fault_table import told
from trunkline.core.preview import file_before
from trunkline.wires.acp import calls, codec
from trunkline.wires.acp.messages_content import (
    AudioBlock,
    ContentBlock,
    ResourceLinkBlock,
    ShownContent,
    TextBlock,
    ToolCallContent,
    ToolCallLocation,
    ToolCallStatus,
    ToolCallUpdate,
    ToolKind,
)
from trunkline.wires.acp.messages_updates import (
    AgentMessageChunk,
    AvailableCommand,
    AvailableCommandsUpdate,
    CurrentModeUpdate,
    MoneySpent,
    PlannedTask,
    PlanUpdate,
    SessionInfoUpdate,
    SessionNotification,
    SessionUpdate,
    ToolCallProgress,
    ToolCallStart,
    UsageUpdate,
    UserMessageChunk,
)

#: How much of the first message is the session's title.
TITLE_CHARS = 80


class Narrator:
    """Tells one client of one session. `write` takes encoded lines; somebody else flushes them."""

    def __init__(
        self,
        session_id: str,
        workspace: str,
        write: Callable[[bytes], None],
        has_terminal: Callable[[str], bool],
        clean: Callable[[str], str],
    ) -> None:
        """`has_terminal`: whether the client shows a terminal with a call, and so all that it prints. `clean` takes
        secrets out of a text that is in no event."""
        self._session_id = session_id
        self._workspace = workspace
        self._clean = clean
        self._write = write
        self._has_terminal = has_terminal
        self._calls: dict[str, calls.Call] = {}
        self._told: set[str] = set()
        """The calls of this turn that are known, and those that the client was told of."""
        self._changes: dict[str, tuple[ToolCallContent, ...]] = {}
        """What each of them changes, as that was when the client was told of it: later the file is another one."""
        self._shown: dict[str, calls.CallShown] = {}
        """What their agent itself has shown of them."""
        self._in_line = False
        """Whether the answer stands in the middle of a line."""
        self._is_past = False
        """Whether the event that is being told happened long ago: files are not as they were then."""

    def update(self, update: SessionUpdate) -> None:
        """Tell something that is no event."""
        self._write(codec.encode_notification(SessionNotification(self._session_id, update)))

    def text(self, kind: str, text: str) -> None:
        """A piece of the answer or of a thought."""
        self._write(codec.text_line(kind, self._session_id, text))
        if kind == "agent_message_chunk" and text:
            self._in_line = text[-1] != "\n"

    def notice(self, text: str) -> None:
        """Something that the user should see: a paragraph of its own."""
        self.text("agent_message_chunk", f"{chr(10) * 2 if self._in_line else ''}{text}\n\n")

    def failed(self, event: core.Failed) -> None:
        """What went wrong, for those who are not answered with it."""
        self.notice(f"Error: {told(event.kind, event.message)}")

    def user(self, message: core.UserMessage) -> None:
        """What a user has said: somebody else, or earlier."""
        blocks: list[ContentBlock] = [TextBlock(message.text)] if message.text else []
        blocks += [ResourceLinkBlock(f"file://{path}", path.rpartition("/")[2]) for path in message.files]
        for block in blocks:
            self.update(UserMessageChunk(block))
        self._in_line = False

    def title(self, message: core.UserMessage) -> None:
        """What the session is called: how its first message begins."""
        if line := " ".join(message.text.split()):
            self.update(SessionInfoUpdate(inline(line[: TITLE_CHARS * 2], TITLE_CHARS)))

    def event(self, event: core.Event, *, past: bool = False) -> None:
        """An event; those of the turn itself are for whoever follows the turn. `past`: it is told later than it was."""
        self._is_past = past
        match event:
            case core.TextDelta(text=text):
                self.text("agent_message_chunk", text)
            case core.ThinkingDelta(text=text):
                self.text("agent_thought_chunk", text)
            case core.Notice(message=message):
                self.notice(message)
            case core.Plan(entries=entries):
                tasks = tuple(PlannedTask(entry.content, entry.priority, entry.status) for entry in entries)
                self.update(PlanUpdate(tasks))
            case core.Audio(data=data, rate=rate, channels=channels):
                sound = AudioBlock(data, f"audio/pcm;rate={rate};channels={channels}")
                self.update(AgentMessageChunk(sound))
            case core.ModeChanged(mode=mode):
                self.update(CurrentModeUpdate(mode))
            case core.Extension():
                self._extension(event)
            case _:
                self._tool_event(event)

    def _tool_event(self, event: core.Event) -> None:
        match event:
            case ToolJudged():
                self._know(event)
            case ToolRequested(call_id=call_id):
                self._know(event)
                self._call(call_id, event.name, "pending")
            case core.ToolAnswered(call_id=call_id, approved=True) if call_id in self._told:
                self._call(call_id, "", "in_progress")
            case core.ToolStarted(call_id=call_id, name=name):
                self._call(call_id, name, "in_progress")
            case core.ToolFinished():
                self._finished(event)
            case core.ToolCancelled(call_id=call_id, reason=reason):
                content = (ShownContent(TextBlock(reason)),) if reason else ()
                self._ended(call_id, "", "failed", (*self._changes.get(call_id, ()), *content), {"error": reason})
            case core.Progress(call_id=str(call_id), message=message) if call_id in self._told:
                self.update(ToolCallProgress(call_id, meta={"progress": message}))

    def _know(self, call: calls.Call) -> None:
        """A call that begins. Some agents use an id again."""
        self._calls[call.call_id] = call
        self._told.discard(call.call_id)
        self._changes.pop(call.call_id, None)

    def has_told(self, call_id: str) -> bool:
        """Whether the client knows of a call."""
        return call_id in self._told

    def end_of_turn(self) -> None:
        """The calls of a turn end with it."""
        self._calls.clear()
        self._told.clear()
        self._changes.clear()
        self._shown.clear()
        self._in_line = False

    def described(self, request: ToolRequested) -> ToolCallUpdate:
        """The call in a question about it."""
        return ToolCallUpdate(
            request.call_id,
            self._title(request),
            self._kind(request),
            "pending",
            self._change_of(request) or self._said(request) or None,
            self._locations(request) or None,
            dict(request.args),
        )

    def change_in(self, call: calls.Call, before: str) -> None:
        """Tell what a call would make of a file that the client has like this, saved or not."""
        change = calls.change_of(call, self._workspace, self._clean, before)
        if change and change != self._changes.get(call.call_id):
            self._changes[call.call_id] = change
            self.update(ToolCallProgress(call.call_id, content=change))

    def _call(self, call_id: str, name: str, status: ToolCallStatus) -> None:
        """A call, for the first time; or what became of it."""
        if call_id in self._told:
            self.update(ToolCallProgress(call_id, status=status))
            return
        self._told.add(call_id)
        call = self._calls.get(call_id)
        if call is None:
            self._unasked(call_id, name, status)
            return
        self.update(
            ToolCallStart(
                call_id,
                self._title(call),
                self._kind(call),
                status,
                self._change_of(call) or self._said(call) or None,
                self._locations(call) or None,
                dict(call.args),
            )
        )

    def _unasked(self, call_id: str, name: str, status: ToolCallStatus) -> None:
        """The call of a program that asks nobody: only what it shows by itself is known."""
        shown = self._shown.get(call_id, calls.CallShown())
        self._changes[call_id] = shown.changes
        self.update(
            ToolCallStart(
                call_id,
                shown.title or inline(name, calls.TITLE_CHARS) or "tool",
                shown.kind or "other",
                status,
                shown.changes or None,
                shown.locations or None,
                None if shown.args is None else dict(shown.args),
            )
        )

    def _title(self, call: calls.Call) -> str:
        title = calls.title_of(call)
        shown = self._shown.get(call.call_id)
        # Where the arguments do not say what it is about, the agent's own words for it do.
        if shown is None or title != call.name or shown.title in ("", title):
            return title
        return inline(f"{title} {shown.title}", calls.TITLE_CHARS)

    def _kind(self, call: calls.Call) -> ToolKind:
        shown = self._shown.get(call.call_id)
        return (shown.kind if shown is not None else None) or calls.kind_of(call)

    def _change_of(self, call: calls.Call) -> tuple[ToolCallContent, ...]:
        change = self._changes.get(call.call_id)
        if change is None:
            shown = self._shown.get(call.call_id)
            change = shown.changes if shown is not None and shown.changes else self._on_disk(call)
            self._changes[call.call_id] = change
        return change

    def _on_disk(self, call: calls.Call) -> tuple[ToolCallContent, ...]:
        # What the file is by now was made of it later, if the call was decided on already.
        path = None if self._is_past else calls.changed_file(call, self._workspace)
        before = None if path is None else file_before(path, self._workspace, calls.DIFFED_BYTES)
        return calls.change_of(call, self._workspace, self._clean, before)

    def _locations(self, call: calls.Call) -> tuple[ToolCallLocation, ...]:
        shown = self._shown.get(call.call_id)
        return shown.locations if shown is not None and shown.locations else calls.locations_of(call, self._workspace)

    def _finished(self, event: core.ToolFinished) -> None:
        succeeded = event.status == "success"
        content: tuple[Any, ...] | None = calls.output_of(event)
        if self._has_terminal(event.call_id) or (succeeded and self._changes.get(event.call_id)):
            # What is shown already says more.
            content = None
        elif not succeeded:
            # It takes the place of the one before, so the change that was not made is told again.
            content = (*self._changes.get(event.call_id, ()), *calls.output_of(event))
        status: ToolCallStatus = "completed" if succeeded else "failed"
        self._ended(event.call_id, event.name, status, content, calls.raw_output_of(event))

    def _ended(
        self, call_id: str, name: str, status: ToolCallStatus, content: tuple[Any, ...] | None, raw: dict[str, Any]
    ) -> None:
        if call_id not in self._told:
            self._call(call_id, name, "in_progress")
        self.update(ToolCallProgress(call_id, status=status, content=content or None, raw_output=raw))

    @staticmethod
    def _said(call: calls.Call) -> tuple[Any, ...]:
        """What the agent says of a call, where nothing else can be shown of it; of a plan, the plan: it is read before
        it is agreed to, and a title is one line."""
        plan = call.args.get("plan") if call.name == EXIT_PLAN else None
        text = visible(plan) if isinstance(plan, str) and plan else call.description
        return (ShownContent(TextBlock(text)),) if text else ()

    def _extension(self, event: core.Extension) -> None:
        """What agents behind another program of this protocol tell."""
        if event.kind == core.COMMANDS:
            listed = event.data.get("commands")
            found = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list | tuple) else []
            self.commands({str(each.get("name", "")): str(each.get("description", "")) for each in found})
        elif event.kind == core.CALL_SHOWN:
            call_id = str(event.data.get("call_id"))
            self._shown[call_id] = shown = calls.shown(event.data)
            if shown.changes and call_id in self._changes:
                self._changes[call_id] = shown.changes
        elif event.kind == core.CONTEXT:
            used, size, cost = (event.data.get(name) for name in ("used", "size", "cost"))
            if isinstance(used, int) and isinstance(size, int):
                spent = MoneySpent(cost["amount"], cost["currency"]) if isinstance(cost, Mapping) else None
                self.update(UsageUpdate(used, size, spent))

    def commands(self, known: Mapping[str, str]) -> None:
        """The commands that there are, without their slash."""
        named = [(name.removeprefix("/"), what) for name, what in known.items()]
        self.update(AvailableCommandsUpdate(tuple(AvailableCommand(name, what) for name, what in named if name)))
