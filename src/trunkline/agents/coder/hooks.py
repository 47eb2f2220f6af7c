"""Commands of the user's that are run at certain moments, and that decide about what comes next.

A hook reads one JSON object. What it says is what it means by its exit code: 0, and its standard output may hold a
decision as a JSON object; 2, it says no, and why on its standard error. Anything else is the hook's own failure: people
are told, and work goes on. Several are run in order; a no counts more than a question, and that more than a yes.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from trunkline.agents.coder.hook_process import HookRun, run_hook
from trunkline.agents.coder.settings_hooks import Hook, HookTable
from trunkline.base.process import child_env
from trunkline.base.programs import trusted_path
from trunkline.base.redact import Redactor
from trunkline.base.values import Value
from trunkline.core.events import Asking, Event, Notice
from trunkline.tools.truncation import one_line, truncate

_log = logging.getLogger(__name__)

HookDecision = Literal["", "allow", "ask", "deny"]
Say = Callable[[Event], Awaitable[None]]

#: What a hook may tell the model at a time, and people.
MOST_CONTEXT_CHARS = 20_000
MOST_REASON_CHARS = 2_000
#: What a variable may hold; the kernel takes no more than 128 KiB, its name included.
_MOST_VARIABLE_BYTES = 100_000
#: The exit code that says no.
_NO = 2

#: Of several who know something about a call, the one who is heard.
STRICTEST_FIRST: tuple[Asking, ...] = ("deny", "ask", "confirm", "allow", "")
#: How else a decision is written by hooks that were made for others.
_DECISIONS: Mapping[Any, HookDecision] = {
    "allow": "allow",
    "ask": "ask",
    "deny": "deny",
    "approve": "allow",
    "block": "deny",
}
#: Where such hooks put what we read, by our name for it.
_ELSEWHERE = {
    "decision": "permissionDecision",
    "reason": "permissionDecisionReason",
    "tool_input": "updatedInput",
    "context": "additionalContext",
}


class HookVerdict(Value):
    """What the hooks of one moment came to."""

    decision: HookDecision = ""
    reason: str = ""
    tool_input: Mapping[str, Any] | None = None
    """In place of a call's arguments."""
    context: tuple[str, ...] = ()
    """For the model."""


NO_VERDICT = HookVerdict()


class Hooks:
    """Those of one conversation."""

    def __init__(
        self,
        table: HookTable,
        *,
        session_id: str = "",
        workspace: str = ".",
        shell: str = "/bin/sh",
        redactor: Redactor | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._table = table
        self._about = {"session_id": session_id, "workspace": os.path.abspath(workspace)}
        self._workspace = workspace
        self._shell = shell
        self._redactor = Redactor() if redactor is None else redactor
        self._environ = environ

    def has(self, event: str) -> bool:
        """Whether something is run then."""
        return event in self._table

    async def run(self, event: str, say: Say, *names: str, **told: Any) -> HookVerdict:
        """Run what is to be run. `names` are what matchers look at; `told` are further members of the object."""
        verdict = NO_VERDICT
        for hook in self._table.get(event, ()):
            if hook.covers(names, told.get("tool_input") or {}):
                verdict = _joined(verdict, await self._one(hook, event, told, say))
                if verdict.tool_input is not None:
                    told["tool_input"] = verdict.tool_input
        return verdict

    async def _one(self, hook: Hook, event: str, told: Mapping[str, Any], say: Say) -> HookVerdict:
        data = json.dumps({"event": event, **self._about, **told}, default=str).encode()
        env = child_env(self._environ, _variables(told) if hook.is_theirs else None)
        # As for commands of the model's: a `git` that lies in the workspace is not the user's.
        env["PATH"] = trusted_path(env)
        argv = [self._shell, "-c", hook.command]
        ran = await run_hook(argv, data, cwd=self._workspace, env=env, seconds=hook.seconds)
        verdict, problem = self._theirs(hook, event, ran) if hook.is_theirs else self._ours(ran, event)
        if problem:
            label = one_line(self._redactor.text(hook.label))
            await say(Notice(f"The hook `{label}` ({event}) {problem}. Work goes on without it."))
        return verdict

    def _ours(self, ran: HookRun, event: str) -> tuple[HookVerdict, str]:
        """What it says, and what went wrong."""
        if ran.code == _NO:
            return HookVerdict("deny", self._clean(ran.stderr, MOST_REASON_CHARS)), ""
        if ran.code != 0:
            return NO_VERDICT, self._failed(ran)
        text = ran.stdout.removeprefix("\ufeff").strip()
        if not text.startswith("{"):
            return NO_VERDICT, "printed something before its JSON object" if _ends_with_object(text) else ""
        if ran.is_cut:
            return NO_VERDICT, "said more than is read"
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            return NO_VERDICT, "printed something that is not valid JSON"
        return self._read(_flat(said), takes_input=event == "pre_tool_use")

    def _read(self, said: Mapping[str, Any], *, takes_input: bool) -> tuple[HookVerdict, str]:
        word = said.get("decision")
        decision = _DECISIONS.get(word) if isinstance(word, str) else None
        if word is not None and decision is None:
            return NO_VERDICT, f"decided {one_line(json.dumps(word), 80)}, which must be `allow`, `deny` or `ask`"
        for key in ("reason", "context"):
            if not isinstance(said.get(key) or "", str):
                return NO_VERDICT, f"gave a `{key}` that is not a string"
        args = said.get("tool_input")
        if args is not None and not (takes_input and isinstance(args, dict)):
            return NO_VERDICT, "gave a `tool_input`, which must be a JSON object, and only before a tool"
        context = self._clean(said.get("context") or "", MOST_CONTEXT_CHARS)
        reason = self._clean(said.get("reason") or "", MOST_REASON_CHARS)
        return HookVerdict(decision or "", reason, args, (context,) if context else ()), ""

    def _theirs(self, hook: Hook, event: str, ran: HookRun) -> tuple[HookVerdict, str]:
        """One that was written for aionrs, where only the exit code counts, and only before a tool."""
        if not ran.code:
            return NO_VERDICT, ran.problem
        if event != "pre_tool_use":
            return NO_VERDICT, self._failed(ran)
        output = self._clean("\n".join(filter(None, (ran.stdout.strip(), ran.stderr.strip()))), MOST_REASON_CHARS)
        why = output or f"it exited with {ran.code} and printed nothing"
        return HookVerdict("deny", f"Hook '{hook.label}' blocked execution: {why}"), ""

    def _failed(self, ran: HookRun) -> str:
        if ran.code is None:
            return ran.problem
        words = one_line(self._clean(ran.stderr or ran.stdout, MOST_REASON_CHARS))
        return f"exited with {ran.code}" + (f": {words}" if words else "")

    def _clean(self, text: str, limit: int) -> str:
        return truncate(self._redactor.text(text.strip()), limit)


async def to_the_log(event: Event) -> None:
    """Where nobody listens any more."""
    _log.warning("%s", getattr(event, "message", event))


def _ends_with_object(text: str) -> bool:
    """Whether it was meant for us: behind other words, there is a JSON object."""
    if not text.endswith("}"):
        return False
    try:
        return isinstance(json.loads(text[text.index("{") :]), dict)
    except (ValueError, RecursionError):
        return False


def _flat(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """An answer in our words, also of a hook that was made for others."""
    inner = said.get("hookSpecificOutput")
    if not isinstance(inner, Mapping):
        return said
    found = {ours: inner[theirs] for ours, theirs in _ELSEWHERE.items() if theirs in inner}
    return {**said, **found}


def _joined(one: HookVerdict, other: HookVerdict) -> HookVerdict:
    """Both: the stricter decision with its reason, the later arguments, all that is told."""
    stricter = min(one, other, key=lambda each: STRICTEST_FIRST.index(each.decision))
    args = one.tool_input if other.tool_input is None else other.tool_input
    return HookVerdict(stricter.decision, stricter.reason, args, (*one.context, *other.context))


def _variables(told: Mapping[str, Any]) -> dict[str, str]:
    """What aionrs tells its hooks. They stand in the environment, and never in the text that the shell reads."""
    args = told.get("tool_input") or {}
    found = {
        "TOOL_NAME": told.get("tool_name"),
        "TOOL_INPUT": json.dumps(args, ensure_ascii=False, default=str),
        "TOOL_INPUT_FILE_PATH": args.get("file_path"),
        "TOOL_INPUT_COMMAND": args.get("command"),
        "TOOL_INPUT_PATTERN": args.get("pattern"),
        "TOOL_OUTPUT": told.get("tool_output"),
    }
    return {name: _for_environment(value) if isinstance(value, str) else "" for name, value in found.items()}


def _for_environment(text: str) -> str:
    data = text.replace("\0", "").encode("utf-8", "replace")[:_MOST_VARIABLE_BYTES]
    return data.decode("utf-8", "ignore")
