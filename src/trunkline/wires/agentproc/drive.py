"""Run one turn of an AgentProc agent: spawn it, hear it, end it. Blocking, for any thread, without an event loop.

    outcome = run(profile, Turn("hello"), hear=print)

What is promised, whatever the agent does:

- `perform` returns, and raises nothing that is the agent's fault. The time limit counts from the start of the process
  and holds while input is written; at its end the tree gets SIGTERM, the profile's grace, SIGKILL. What is said
  meanwhile is still heard. The clock stands still while a permission request waits: a person thinks as long as it
  takes. Whoever hears one answers it, or cancels the run.
- An agent that has told its result, and goes on, is ended a little later (`LINGER_SECONDS`): the turn has succeeded.
- A request that nobody can answer ends the agent's input, once the others are answered.
- Nothing is left running, and a grandchild that holds a pipe open delays nothing.
- What the user gets on failure is one text: what the agent said went wrong, else what we saw. The session id counts in
  any case.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from trunkline.base.deadlines import Deadline, deadlines
from trunkline.base.process import Child, StderrTail, spawn
from trunkline.base.process_errors import SpawnError
from trunkline.base.process_pump import OutputName, Pump
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc.codec import Dialogue, LineReader, Reader
from trunkline.wires.agentproc.launch import Launch, launch, make_directory
from trunkline.wires.agentproc.messages import (
    Ignored,
    PermissionRequest,
    PermissionResponse,
    Said,
    TurnRequest,
    Withdrawn,
)
from trunkline.wires.agentproc.profile import Profile, Protocol
from trunkline.wires.agentproc.reply import GrowingReply

#: More requests than this in one turn are not shown to anybody, and denied.
MAX_REQUESTS = 1000
#: An agent that asks more often than this does not read the answers, which would pile up: its input is ended.
MAX_ANSWERS = 10_000

#: How long an agent that has said all may take to end. They write down their session; what takes longer is stuck.
LINGER_SECONDS = 10.0

EXIT_ERROR = 1
EXIT_TIMED_OUT = 124
#: As shells and `timeout` have it: the program is there and cannot be run, or is not there.
EXIT_NOT_RUNNABLE, EXIT_NOT_FOUND = 126, 127
EXIT_INTERRUPTED = 130

_NOT_ASKED = "there is nobody to ask: the profile does not have `permission: true`"
_UNANSWERABLE = (
    "a permission request without a usable `request_id`, or one that cannot be read, was ignored: nobody can answer "
    "it, and no others are answered from now on"
)
_NOT_ANSWERED = "no more requests are answered after one that nobody could answer"
_ONLY_PARTIALS = "the agent said nothing but partials, which are ignored in a turn without streaming"


class Outcome(Value, hot=True):
    """How a turn ended."""

    reply: str
    """What is to be shown besides the partials. Empty when the turn failed."""
    partials: tuple[str, ...]
    session_id: str
    """The id to use next time: what the agent said, else what it was given."""
    error: str
    """What went wrong, for the user. Empty when nothing did, or when the profile wants it kept quiet."""
    exit_code: int
    """0 only when the turn succeeded; 124 after a timeout, 128 + n when signal n ended the agent."""
    timed_out: bool
    truncated: bool
    cancelled: bool = False
    usage: Mapping[str, Any] | None = None
    stderr: str = ""
    """The end of what the agent wrote to its standard error."""
    failure: str = ""
    """What went wrong, for logs: also when `error` is kept quiet."""
    remark: str = ""
    """Why a turn that succeeded has no answer to show, if that can be told."""


class Run:
    """One turn. `perform` it once, in any thread; `cancel` and `respond` are for all other threads."""

    def __init__(
        self,
        profile: Profile,
        turn: TurnRequest,
        *,
        hear: Callable[[Said], None] = lambda said: None,
        log: Callable[[bytes], None] = lambda data: None,
        tap: Callable[[bytes], None] = lambda data: None,
        environ: Mapping[str, str] | None = None,
        wake_up: int | None = None,
        attended: bool = True,
    ) -> None:
        """`hear` is told partials, session ids, the first error, permission requests and oddities.

        `environ` is what the agent's environment is made of; ours unless given. `log` gets what it writes to its
        standard error, as it comes, and `tap` its standard output. `wake_up` is for signals: see `Pump`. A run that
        is not `attended` denies what the agent asks for.
        """
        self._profile = profile
        self._turn = turn
        self._hear = hear
        self._log = log
        self._tap = tap
        self._wake_up = wake_up
        self._attended = attended
        self._environ = dict(os.environ) if environ is None else environ
        self._reply = GrowingReply(
            streaming=profile.streaming and turn.streaming,
            max_chars=profile.max_reply_chars,
            suffix=profile.truncation_suffix,
        )
        self._stderr = StderrTail()
        self._waiting: set[str] = set()
        # A signal handler may come in between in the thread that holds it.
        self._lock = threading.RLock()
        self._child: Child | None = None
        self._pump: Pump | None = None
        self._endings: list[threading.Thread] = []
        self._dialogue: Dialogue | None = None
        self._limit: Deadline | None = None
        self._ends_at: float | None = None
        """When the time is over, while the clock runs."""
        self._time_left: float | None = None
        """What is left of it, while the clock stands still."""
        self._requests = 0
        self._is_mute = False
        """Whether a request came that nobody can answer: no other one is asked, and the input ends with the last."""
        self._said_all = self._lingered = False
        self._timed_out = False
        self._cancelled: int | None = None
        self._hurry: float | None = None
        """The grace of whoever is in a hurry."""

    def perform(self) -> Outcome:
        """Run the turn to its end. What `hear` raises ends it, and is raised."""
        try:
            prepared = launch(self._profile, self._turn, self._environ)
        except ConfigError as error:
            return self._outcome(EXIT_ERROR, str(error))
        for warning in prepared.warnings:
            self._hear(Ignored(warning))
        if prepared.root is not None and prepared.cwd is not None:
            make_directory(prepared.cwd, prepared.root)
        try:
            stdin: Literal["null", "pipe"] = "null" if prepared.stdin is None else "pipe"
            child = spawn(prepared.argv, cwd=prepared.cwd, env=prepared.env, stdin=stdin)
        except SpawnError as error:
            is_missing = error.reason in ("not-found", "bad-interpreter")
            return self._outcome(EXIT_NOT_FOUND if is_missing else EXIT_NOT_RUNNABLE, self._not_started(error))
        text = prepared.stdin or b""
        with child, Pump(child, text, open_input=prepared.interactive, wake_up=self._wake_up) as pump:
            try:
                self._begin(child, pump, prepared)
                self._listen(pump, prepared.dialogue or make_reader(self._profile, prepared.protocol))
                child.finish_if_clear(ended=True)
                code = child.wait()
            finally:
                self._settle()
        return self._outcome(code)

    @property
    def ending(self) -> bool:
        """Whether the agent is being ended, by its time limit or by `cancel`."""
        return self._timed_out or self._cancelled is not None

    def cancel(self, code: int = EXIT_INTERRUPTED, grace: float | None = None) -> None:
        """End the agent, from any thread or a signal handler. The outcome's exit code is this one.

        May be called again, with less `grace` than the profile's, to hurry it.
        """
        if grace is not None:
            self._hurry = grace
        if self._cancelled is None:
            self._cancelled = code
            self._end(grace)
        elif grace is not None:
            self._end(grace)

    def respond(self, response: PermissionResponse) -> None:
        """Answer a permission request, from any thread. One that does not wait is not answered again."""
        with self._lock:
            if response.request_id not in self._waiting:
                return
            self._release(response.request_id)
            pump = self._pump
        if pump is not None:
            pump.send(self._answer(response))
        self._end_input()

    def _end_input(self) -> None:
        """End the agent's input if nothing will be said to it any more."""
        with self._lock:
            if self._pump is not None and (self._reply.concluded or (self._is_mute and not self._waiting)):
                self._pump.close_input()

    def _answer(self, response: PermissionResponse) -> bytes:
        if self._dialogue is not None:
            return self._dialogue.respond(response)
        # Most agents speak 0.1, and never ask.
        from trunkline.wires.agentproc.codec_ndjson import encode_response

        return encode_response(response)

    def _not_started(self, error: SpawnError) -> str:
        text = f"The agent could not be started: {error}."
        if error.reason != "not-found":
            return text
        from trunkline.wires.agentproc import hub
        from trunkline.wires.agentproc.profile import check

        advice = check.instead(self._profile) or hub.how_to_install(self._profile.command[0])
        return f"{text} {advice}" if advice else text

    def _begin(self, child: Child, pump: Pump, prepared: Launch) -> None:
        self._child, self._pump, self._dialogue = child, pump, prepared.dialogue
        if self._profile.timeout_secs is not None:
            self._start_clock(self._profile.timeout_secs)
        if self._cancelled is not None:  # while there was nothing to end
            self._end(self._hurry)

    def _start_clock(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds
        # Not a matter of this thread: whoever hears the agent may keep it waiting.
        self._limit = deadlines.at(self._ends_at, self._expire)

    def _hold(self, request_id: str) -> None:
        """A request waits, and the clock stands still."""
        with self._lock:
            self._waiting.add(request_id)
            if self._limit is not None and self._ends_at is not None:
                self._limit.cancel()
                self._time_left, self._ends_at = max(self._ends_at - time.monotonic(), 0), None

    def _release(self, request_id: str) -> None:
        """A request does not wait any more. With the last one the clock goes on, unless the run is being ended."""
        with self._lock:
            self._waiting.discard(request_id)
            is_over = self.ending or self._said_all
            if not self._waiting and self._time_left is not None and self._child is not None and not is_over:
                seconds, self._time_left = self._time_left, None
                self._start_clock(seconds)

    def _await_end(self) -> None:
        """The agent has said all: what is left of its time does not matter, but that it ends."""
        with self._lock:
            if self._said_all or self.ending:
                return
            self._said_all = True
            if self._limit is not None:
                self._limit.cancel()
            self._ends_at = None
            self._limit = deadlines.at(time.monotonic() + LINGER_SECONDS, self._give_up)

    def _give_up(self) -> None:
        """It has said all, and goes on."""
        with self._lock:
            if self._child is not None and self._child.poll() is None and not self.ending:
                self._lingered = True
                self._end()

    def _expire(self) -> None:
        """Its time is over. An agent that has ended was in time, however long we take to hear all of it."""
        with self._lock:
            if self._ends_at is None or self._child is None or self._child.poll() is not None:
                return
            self._timed_out = self._cancelled is None
            self._end()

    def _listen(self, pump: Pump, reader: Reader) -> None:
        dialogue = self._dialogue

        def take(name: OutputName, data: bytes) -> None:
            if name == "stdout":
                self._tap(data)
                said = reader.feed(data)
                if dialogue is not None and (outgoing := dialogue.outgoing()):
                    pump.send(outgoing)
                self._say(said)
            else:
                self._stderr.feed(data)
                self._log(data)

        pump.run(take)
        self._say(reader.finish())

    def _say(self, sayings: list[Said]) -> None:
        hear = self._hear
        for said in self._reply.take(sayings):
            kind = type(said)
            if kind is PermissionRequest:
                self._ask(said)  # type: ignore[arg-type]  # narrowed by `type`, which is faster
                continue
            if kind is Withdrawn:
                self._release(said.request_id)  # type: ignore[attr-defined]
                self._end_input()
            hear(said)
        if self._reply.concluded:
            self._end_input()
            # After an error of 0.1, whose lines have no end but that of the output, there may be more to say.
            if self._reply.error is None or self._dialogue is not None or self._profile.protocol == "0.4":
                self._await_end()

    def _ask(self, request: PermissionRequest) -> None:
        self._requests += 1
        if self._requests > MAX_REQUESTS:
            self._refuse(request)
            return
        if not request.request_id:
            self._refuse_all()
            return
        self._hold(request.request_id)
        if not self._profile.permission:
            self._hear(Ignored(f"the agent wants to use `{request.tool_name}`, which was denied: {_NOT_ASKED}"))
            self.respond(PermissionResponse(request.request_id, "deny", _NOT_ASKED))
        elif not request.tool_name:
            self.respond(PermissionResponse(request.request_id, "deny", "malformed permission request"))
        elif self._is_mute:
            self.respond(PermissionResponse(request.request_id, "deny", _NOT_ANSWERED))
        elif self._endings:
            self.respond(PermissionResponse(request.request_id, "deny", "the turn is being ended"))
        else:
            if not self._attended:
                self.respond(PermissionResponse(request.request_id, "deny", "there is nobody to ask"))
            self._hear(request)

    def _refuse(self, request: PermissionRequest) -> None:
        """One request too many."""
        if self._requests == MAX_REQUESTS + 1:
            self._hear(Ignored(f"more than {MAX_REQUESTS} permission requests in one turn: the others are denied"))
        if self._requests > MAX_ANSWERS or not request.request_id:
            if self._pump is not None:
                self._pump.close_input()
        elif request.request_id not in self._waiting:
            # Else an answer would be taken for that to the first request of this id.
            self._hold(request.request_id)
            self.respond(PermissionResponse(request.request_id, "deny", "too many requests in one turn"))

    def _refuse_all(self) -> None:
        """A request without a usable id cannot be answered: the end of its input tells the agent that nobody will."""
        if not self._is_mute:
            self._hear(Ignored(_UNANSWERABLE))
            self._is_mute = True
        self._end_input()

    def _end(self, grace: float | None = None) -> None:
        """End the tree in a thread of its own, so that what the agent says meanwhile is heard."""
        child = self._child
        if child is None or (self._endings and grace is None):
            return
        for request_id in tuple(self._waiting):
            self.respond(PermissionResponse(request_id, "deny", "the turn was ended before anybody decided"))
        seconds = self._profile.kill_grace_secs if grace is None else grace
        # A process that ends before it leaves the rest to the watchdog.
        ending = threading.Thread(
            target=child.terminate_tree, args=(seconds,), name=f"end-agent-{child.pid}", daemon=True
        )
        ending.start()
        self._endings.append(ending)

    def _settle(self) -> None:
        """Nobody may reach the child from here on; who is ending it is waited for, which is bounded."""
        with self._lock:
            self._child = self._pump = None
        if self._limit is not None:
            self._limit.cancel()
        for ending in self._endings:
            ending.join()

    def _outcome(self, code: int, failure: str = "") -> Outcome:
        profile, reply = self._profile, self._reply
        if self._timed_out:
            code = EXIT_TIMED_OUT
        elif self._cancelled is not None:
            code = self._cancelled
        elif reply.error is not None:
            code = EXIT_ERROR if self._lingered else code or EXIT_ERROR
        elif self._lingered:
            code = 0
        elif code == 0 and profile.stream is not None and not (reply.concluded or reply.partials):
            # Its reader always ends with the whole answer: a program that has none says nothing that is understood.
            code, failure = EXIT_ERROR, "The program ended without an answer."
        error = failure or reply.error or ""
        if code != 0 and (not error or profile.include_stderr_in_reply):
            from trunkline.wires.agentproc import failures

            stderr = self._stderr.text()
            if not error:
                failure = failures.describe(profile, code, self._timed_out, stderr)
                error = failure if profile.send_error_reply else ""
            # What a program's own stream says went wrong is enough: such programs log a lot besides.
            is_told = profile.stream is not None and reply.error is not None
            if error and profile.include_stderr_in_reply and not is_told:
                error = failures.with_stderr(error, stderr, self._environ)
        return Outcome(
            reply=reply.text() if code == 0 else "",
            partials=tuple(reply.partials),
            session_id=reply.session_id or self._turn.session_id,
            error=error,
            exit_code=code,
            timed_out=self._timed_out,
            truncated=reply.truncated,
            cancelled=self._cancelled is not None,
            usage=reply.usage,
            stderr=self._stderr.text(),
            failure=failure or error,
            remark=_ONLY_PARTIALS if code == 0 and reply.left_out and not reply.text() else "",
        )


def run(
    profile: Profile,
    turn: TurnRequest,
    *,
    hear: Callable[[Said], None] = lambda said: None,
    environ: Mapping[str, str] | None = None,
) -> Outcome:
    """Run one turn to its end; see `Run`. Nobody is there to answer permission requests, so they are denied."""
    return Run(profile, turn, hear=hear, environ=environ, attended=False).perform()


def make_reader(profile: Profile, protocol: Protocol) -> Reader:
    """What reads the agent's output: one of the two dialects, or a stream of the program's own."""
    if profile.stream is not None:
        from trunkline.wires.agentproc import streams

        return streams.make(profile.stream)
    if protocol == "0.1":
        return LineReader(profile.session_line_prefix)
    if protocol == "0.4":
        from trunkline.wires.agentproc.codec_ndjson import NdjsonReader

        return NdjsonReader()
    from trunkline.wires.agentproc.codec_auto import AutoReader

    return AutoReader(profile.session_line_prefix)
