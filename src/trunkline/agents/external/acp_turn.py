"""One turn of an agent that speaks the Agent Client Protocol: its updates and questions, as events. Sans-IO.

What a call is about becomes known bit by bit: its members are those that were told last. Many agents show a call as
running before they ask about it; so a call counts as begun only when it has shown something, has ended, or nobody was
asked about it for `HOLD_SECONDS`.

A call's arguments are its `rawInput`; without one, what its diff or its title tells. Its category follows its `kind`;
what says nothing of itself could be anything, and counts as a command. Its name is what the agent's `_meta` or first
title calls the tool, else its kind.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from trunkline.agents.external.agentproc_paths import stays_inside
from trunkline.base import jsontext
from trunkline.core import events as core
from trunkline.core.approvals import MCP_PREFIX
from trunkline.core.change import change
from trunkline.core.faults import AgentFailed
from trunkline.wires.acp.calls import DIFFED_BYTES
from trunkline.wires.acp.drive import PermissionAsked
from trunkline.wires.acp.messages_client import PermissionOption
from trunkline.wires.acp.messages_content import (
    ContentBlock,
    ImageBlock,
    ResourceBlock,
    ResourceLinkBlock,
    ShownContent,
    ShownDiff,
    TextBlock,
    ToolCallContent,
    ToolCallLocation,
    ToolCallUpdate,
)
from trunkline.wires.acp.messages_updates import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AvailableCommandsUpdate,
    CurrentModeUpdate,
    PlanUpdate,
    SessionUpdate,
    ToolCallProgress,
    ToolCallStart,
    UsageUpdate,
)

#: How long a call that is said to run is not shown: agents that ask about it do so within a fraction of that.
HOLD_SECONDS = 1.0
#: Calls that are open at once. Models ask for a few dozen; an agent that never closes any must not fill memory.
MAX_OPEN_CALLS = 1000
#: Entries of a plan that are shown.
MAX_PLANNED = 200
#: Commands that are told of, and how much of what each is for.
MAX_COMMANDS = 500
COMMAND_CHARS = 300
#: Of what a call shows while it runs.
PROGRESS_CHARS = 500
#: The longest text that is taken for the name of a tool.
_NAME = re.compile(r"[A-Za-z][\w.:-]{0,63}")

#: What the kinds of calls do. All others may do anything.
CATEGORIES: Mapping[str, core.Category] = {
    "read": "info", "search": "info", "think": "info", "fetch": "info",
    "edit": "edit", "delete": "edit", "move": "edit",
    "execute": "exec",
}  # fmt: skip
#: How the members of `_meta` are called in which agents say what tool it is.
_TOOL_NAMES = ("toolName", "tool_name")
_ALLOWED = "It was allowed."
_WITHDRAWN = "the agent is no longer waiting for an answer"


class _AcpCall:
    """What is known of a call."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.title = ""
        self.first_title = ""
        self.kind = ""
        self.status = ""
        self.content: tuple[ToolCallContent, ...] = ()
        self.locations: tuple[ToolCallLocation, ...] = ()
        self.raw_input: Any = None
        self.raw_output: Any = None
        self.tool = ""
        self.is_mcp = False
        self.runs_since: float | None = None
        """When it was first said to run; None once that is shown, or nobody has said so."""
        self.shown = False
        """Whether the core knows of it: as a request, or as running."""
        self.over = False

    def learn(self, news: ToolCallUpdate | ToolCallStart | ToolCallProgress) -> None:
        """What is absent is as it was."""
        for member in ("title", "kind", "status", "content", "locations", "raw_input", "raw_output"):
            told = getattr(news, member)
            if told is not None:
                setattr(self, member, told)
        self.first_title = self.first_title or self.title
        meta = news.meta or {}
        self.tool = self.tool or _tool_name(meta)
        self.is_mcp = self.is_mcp or meta.get("provenance") == "mcp" or self.name.startswith(MCP_PREFIX)

    @property
    def name(self) -> str:
        if self.tool:
            return self.tool
        return self.first_title if _NAME.fullmatch(self.first_title) else self.kind or "tool"

    @property
    def category(self) -> core.Category:
        return "mcp" if self.is_mcp else CATEGORIES.get(self.kind, "exec")

    @property
    def args(self) -> Mapping[str, Any]:
        if isinstance(self.raw_input, dict):
            return self.raw_input
        if self.raw_input is not None:
            return {"input": self.raw_input}
        diffs = [each for each in self.content if isinstance(each, ShownDiff)]
        if diffs:
            return {"path": diffs[0].path, "diff": _diff_text(diffs)}
        # Without it, one command could not be told from another, and a grant for this one would be for all.
        return {"command": self.title} if self.kind == "execute" and self.title else {}

    @property
    def description(self) -> str:
        """What it is, and what it changes where the arguments do not tell."""
        diffs = [each for each in self.content if isinstance(each, ShownDiff)]
        title = self.title if self.title != self.name else ""
        if not diffs or self.raw_input is None or _shows_change(self.raw_input):
            return title
        return f"{title}\n{_diff_text(diffs)}".strip()

    @property
    def paths(self) -> list[str]:
        return [
            *(each.path for each in self.locations),
            *(each.path for each in self.content if isinstance(each, ShownDiff)),
        ]

    def told(self, call_id: str, *, outside: bool, is_asked: bool) -> list[core.Event]:
        """What the agent itself shows of the call, for those who can show it so. Whole files only inside the workspace:
        others were not opened to whoever may look at the session."""
        changes = [
            {"path": each.path, "old": each.old_text, "new": each.new_text}
            for each in self.content
            if isinstance(each, ShownDiff) and not outside
        ]
        if sum(len(each["old"] or "") + len(each["new"] or "") for each in changes) > DIFFED_BYTES:
            changes = []
        shown: dict[str, Any] = {"title": self.title, "kind": self.kind, "paths": self.paths, "changes": changes}
        if not is_asked:
            shown["args"] = dict(self.args)
        shown = {name: value for name, value in shown.items() if value}
        return [core.Extension(core.CALL_SHOWN, {"call_id": call_id, **shown})] if shown else []

    def finished(self) -> core.ToolFinished:
        output, kind = _output(self.content, self.raw_output)
        file = next(iter(self.paths), None)
        return core.ToolFinished(
            self.id,
            self.name,
            "error" if self.status == "failed" else "success",
            output,
            kind,
            None if file is None else {"file_path": file},
        )


class AcpTurn:
    """What one turn has come to."""

    def __init__(self, workspace: str) -> None:
        self.context: UsageUpdate | None = None
        """How full the model's window is, as was told last."""
        self._workspace = workspace
        self._calls: dict[str, _AcpCall] = {}
        self._questions: dict[str, tuple[PermissionAsked, _AcpCall]] = {}
        """The questions that wait, by the id that the core knows them by."""
        self._asked_again = 0
        self._is_only_text = True

    def read(self, update: SessionUpdate, now: float) -> list[core.Event]:
        """What an update means to the user.

        Raises:
            AgentFailed: there are more open calls than anybody could follow.
        """
        match update:
            case AgentMessageChunk(content=content):
                return self._said(content)
            case AgentThoughtChunk(content=TextBlock(text=text)):
                return [core.ThinkingDelta(text)] if text else []
            case ToolCallStart() | ToolCallProgress():
                return self._call_news(update, now)
            case UsageUpdate():
                self.context = update
                return []
            case _:
                event = told_between(update)
                return [event] if event is not None else []

    def ask(self, question: PermissionAsked) -> list[core.Event]:
        """A question for the user; or one that was taken back.

        Raises:
            AgentFailed: there are more open calls than anybody could follow.
        """
        if not question.is_open:
            return self._taken_back(question)
        call = self._call(question.request.tool_call.tool_call_id)
        call.learn(question.request.tool_call)
        call_id = call.id
        if call.shown or call.over:
            # One call may be asked about twice: whether it may run, and whether it may reach so far.
            self._asked_again += 1
            call_id = f"{call.id}#{self._asked_again + 1}"
        call.shown = True
        call.runs_since = None
        self._questions[call_id] = (question, call)
        outside = self._leads_out(call)
        request = core.ToolRequested(call_id, call.name, call.category, call.args, call.description, outside)
        return [*call.told(call_id, outside=outside, is_asked=True), request]

    def decided(self, call_id: str, *, allowed: bool, always: bool) -> list[core.Event] | None:
        """Answer a question; what there is to tell then, or None if nobody asks."""
        found = self._questions.pop(call_id, None)
        if found is None:
            return None
        question, call = found
        option = _option(question.request.options, allowed=allowed, always=always)
        if option is None:
            question.cancel()
        else:
            question.answer(option.option_id)
        if not allowed:
            return []
        if option is None or not option.kind.startswith("allow"):
            return [core.ToolCancelled(call_id, "the agent offers no way to allow it just this once")]
        started: list[core.Event] = [core.ToolStarted(call_id, call.name)]
        if call_id != call.id:
            # The call itself is told of under its own id.
            started.append(core.ToolFinished(call_id, call.name, "success", _ALLOWED))
        return started

    def due(self, now: float) -> list[core.Event]:
        """What has to be told because nobody was asked about it."""
        begun: list[core.Event] = []
        for call in self._calls.values():
            if call.runs_since is not None and now >= call.runs_since + HOLD_SECONDS:
                begun += self._begin(call)
        return begun

    @property
    def next_due(self) -> float | None:
        """When `due` has to be looked at again."""
        times = [call.runs_since + HOLD_SECONDS for call in self._calls.values() if call.runs_since is not None]
        return min(times, default=None)

    def end(self) -> list[core.Event]:
        """It is over: what was not told yet."""
        if self.context is None:
            return []
        cost = self.context.cost
        told: dict[str, Any] = {"used": self.context.used, "size": self.context.size}
        if cost is not None:
            told["cost"] = {"amount": cost.amount, "currency": cost.currency}
        return [core.Extension(core.CONTEXT, told)]

    # Calls.

    def _call(self, call_id: str) -> _AcpCall:
        call = self._calls.get(call_id)
        if call is None:
            if len(self._calls) >= MAX_OPEN_CALLS:
                self._forget()
            call = self._calls[call_id] = _AcpCall(call_id)
        return call

    def _forget(self) -> None:
        """Make room: calls that are over will not be told of again."""
        self._calls = {id: call for id, call in self._calls.items() if not call.over}
        if len(self._calls) >= MAX_OPEN_CALLS:
            raise AgentFailed(f"The agent has more than {MAX_OPEN_CALLS} tool calls open at once.")

    def _call_news(self, news: ToolCallStart | ToolCallProgress, now: float) -> list[core.Event]:
        call = self._call(news.tool_call_id)
        call.learn(news)
        if call.over:
            return []
        if call.status in ("completed", "failed"):
            call.over = True
            begun = self._begin(call)
            return [*begun, call.finished()]
        if call.status != "in_progress" or any(each is call for _, each in self._questions.values()):
            return []
        if not call.shown:
            call.runs_since = call.runs_since if call.runs_since is not None else now
            return []
        text = _shown_text(news.content or ())
        return [core.Progress(text[-PROGRESS_CHARS:], call.id)] if text else []

    def _begin(self, call: _AcpCall) -> list[core.Event]:
        """Show that it runs, unless that is known."""
        call.runs_since = None
        if call.shown:
            return []
        call.shown = True
        shown = call.told(call.id, outside=self._leads_out(call), is_asked=False)
        return [*shown, core.ToolStarted(call.id, call.name)]

    def _leads_out(self, call: _AcpCall) -> bool:
        """Whether it reaches beyond the workspace."""
        named = [call.args, call.paths]
        return not stays_inside(named, self._workspace, self._workspace, changes=call.category == "edit")

    def _taken_back(self, question: PermissionAsked) -> list[core.Event]:
        for call_id, (waiting, _) in tuple(self._questions.items()):
            if waiting is question:
                del self._questions[call_id]
                return [core.ToolCancelled(call_id, _WITHDRAWN)]
        return []

    # Words.

    def _said(self, content: ContentBlock) -> list[core.Event]:
        text = block_text(content)
        if text:
            return [core.TextDelta(text)]
        if isinstance(content, TextBlock):
            return []
        first, self._is_only_text = self._is_only_text, False
        return [core.Notice("The agent has said something that is not text, which is not shown.")] if first else []


def told_between(update: SessionUpdate) -> core.Event | None:
    """What an update means that may come in a turn or between two of them."""
    match update:
        case PlanUpdate(entries=entries):
            return core.Plan(
                tuple(
                    core.PlanEntry(
                        entry.content,
                        entry.priority if entry.priority in get_args(core.Priority) else "medium",  # type: ignore[arg-type]
                        entry.status if entry.status in get_args(core.PlanStatus) else "pending",  # type: ignore[arg-type]
                    )
                    for entry in entries[:MAX_PLANNED]
                )
            )
        case AvailableCommandsUpdate(available_commands=commands):
            told = [
                {
                    "name": each.name,
                    "description": each.description[:COMMAND_CHARS],
                    "hint": each.input.hint[:COMMAND_CHARS] if each.input else "",
                }
                for each in commands[:MAX_COMMANDS]
            ]
            return core.Extension(core.COMMANDS, {"commands": told})
        case CurrentModeUpdate(current_mode_id=mode):
            return core.Extension(core.AGENT_MODE, {"mode": mode})
        case _:
            return None


def _tool_name(meta: Mapping[str, Any], depth: int = 3) -> str:
    """What an agent calls the tool, in `_meta` itself or in a member of its own there."""
    for name in _TOOL_NAMES:
        found = meta.get(name)
        if isinstance(found, str) and _NAME.fullmatch(found):
            return found
    within = (each for each in meta.values() if isinstance(each, dict) and depth > 1)
    return next(filter(None, (_tool_name(each, depth - 1) for each in within)), "")


def _option(options: Sequence[PermissionOption], *, allowed: bool, always: bool) -> PermissionOption | None:
    """The agent's own answer that says what was decided; without one, the nearest that allows no more."""
    kinds = ["reject_once", "reject_always"]
    if allowed:
        kinds = ["allow_always", "allow_once", *kinds] if always else ["allow_once", *kinds]
    return next((each for kind in kinds for each in options if each.kind == kind), None)


# Texts


def block_text(block: ContentBlock) -> str:
    """What can be read of a block."""
    match block:
        case TextBlock(text=text):
            return text
        case ResourceLinkBlock(uri=uri, name=name):
            return f"[{name}]({uri})" if name else uri
        case ResourceBlock(resource=resource):
            return resource.text or resource.uri
        case _:
            return ""


def _output(content: Sequence[ToolCallContent], raw: Any) -> tuple[str, core.OutputType]:
    """What a call has given, and in which form."""
    diffs = [each for each in content if isinstance(each, ShownDiff)]
    pictures = [
        each.content for each in content if isinstance(each, ShownContent) and isinstance(each.content, ImageBlock)
    ]
    text = _shown_text(content)
    if diffs and not text:
        return _diff_text(diffs), "diff"
    if pictures and not text:
        return b64encode(pictures[0].data).decode(), "image"
    return text or _raw_text(raw), "text"


def _shown_text(content: Sequence[ToolCallContent]) -> str:
    texts = [block_text(each.content) for each in content if isinstance(each, ShownContent)]
    return "\n".join(filter(None, texts))


def _raw_text(raw: Any) -> str:
    if raw is None or isinstance(raw, str):
        return raw or ""
    if isinstance(raw, dict):
        for member in ("output", "text", "message", "error"):
            if isinstance(raw.get(member), str) and raw[member]:
                return str(raw[member])
    return jsontext.dumps(raw).decode("utf-8", "replace")


def _diff_text(diffs: Sequence[ShownDiff]) -> str:
    parts: list[str] = []
    for each in diffs:
        old = "/dev/null" if each.old_text is None else each.path
        rows = change(each.old_text or "", each.new_text)
        parts += [f"--- {old}", f"+++ {each.path}", *(f"{row.sign}{row.text}" for row in rows)]
    return "\n".join(parts)


def _shows_change(args: Any) -> bool:
    """Whether the arguments themselves tell what is changed: as a diff, or as old and new text."""
    if not isinstance(args, dict):
        return False
    names = {name.lower().replace("_", "") for name in args if isinstance(name, str)}
    return bool(names & {"diff", "patch", "content", "newstring", "newtext", "edits"})
