"""The agent end: one turn of a session, told to the bridge that asked for it.

`AgentProcServer` gives lines to an output and is fed what the bridge answers; it owns no pipe and no process, so that
tests can drive it without any. `core.session` decides what happens in the turn, a `DialectWriter` gives it the form of
a dialect.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from trunkline.base.attach import STOP
from trunkline.base.jsontext import dumps
from trunkline.base.lines import LineOutput, LineSplitter, OverlongLine
from trunkline.core import events as core
from trunkline.core import faults
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.events import Envelope, Event
from trunkline.core.fault_table import form_of, told
from trunkline.core.ids import new_id
from trunkline.core.redaction import Redaction
from trunkline.core.session import Session
from trunkline.wires.agentproc import codec_ndjson
from trunkline.wires.agentproc.codec import MAX_LINE
from trunkline.wires.agentproc.messages import Attachment, PermissionRequest, PermissionResponse, TurnRequest
from trunkline.wires.agentproc.serve_dialects import DialectWriter
from trunkline.wires.agentproc.serve_input import local_path

logger = logging.getLogger(__name__)

#: How much of an attachment's URL is repeated to the agent: addresses are shorter, embedded files are not.
SHOWN_URL_CHARS = 2000

EMPTY = "The message is empty. Write something, or attach a file."
STOPPED = "The agent stopped before it had answered."
UNANSWERED = "The agent could not answer and did not say why."
NOBODY_LEFT = "The bridge has closed its end: there is nobody left to ask"
NOT_ASKED = "There was nobody to ask: the bridge does not accept such a question, or it is too long"


#: What keeps two paragraphs apart.
_APART = "\n\n"


class AgentProcServer:
    """One turn, one bridge. `over` is the exit code, once the turn has ended."""

    def __init__(self, session: Session, output: LineOutput, writer: DialectWriter, client: str = "") -> None:
        """`client`: who the bridge is, in a session that several share. There, others can be asked as well."""
        self._session = session
        self._client = client
        self._turn = 0
        self._awaited: str | None = None
        """The message whose turn it is, until that has begun."""
        self._output = output
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[int] = self._loop.create_future()
        self._kind: type[Event] = core.TextDelta
        self._pieces: list[str] = []
        self._last = ""
        """The end of what was said of the answer."""
        self._apart = False
        """Whether something else happened since then: what comes is a paragraph of its own."""
        self._failed: core.Failed | None = None
        self._lines = LineSplitter(MAX_LINE)
        self._asked: dict[str, core.ToolRequested] = {}
        """What waits for permission, by the ids of ours that the bridge knows."""
        self._requests = 0
        self._deserted = False
        session.attach(self)

    def begin(self, message: core.UserMessage) -> None:
        """Name the session and have the message answered."""
        self.greet()
        self._session.submit(message)

    def greet(self) -> None:
        """Name the session."""
        self._say(self._writer.begin())
        self._output.flush()

    def expect(self, message: core.UserMessage) -> core.UserMessage:
        """In a session that several share: the message as it is to be submitted. Its turn is the bridge's."""
        self._awaited = message.id or new_id()
        return message.replace(id=self._awaited, sender=message.sender or self._client)

    def expected(self, turn: int) -> None:
        """The message that was expected is answered in that turn. Before anything else is fed."""
        self._turn, self._awaited = turn, None

    def leave(self, code: int) -> None:
        """The turn is given up, with that exit code: nothing is said any more but what the agent has said already."""
        if not self.over.done():
            self.over.set_result(code)
        self._session.flush()

    def lose(self, fault: faults.Fault) -> None:
        """The session is gone before the turn has ended, and `over` raises this."""
        if not self.over.done():
            self.over.set_exception(fault)
            # Who waits for it may have gone already, with a fault of its own.
            self.over.exception()

    # What the bridge sends.

    def feed(self, data: bytes) -> None:
        """Bytes from the bridge: answers to permission requests."""
        for line in self._lines.feed(data):
            self._heard(line)

    def end(self) -> None:
        """The bridge has closed its end: whatever waits for it is denied, and so is whatever is asked later."""
        for line in self._lines.finish():
            self._heard(line)
        self._deserted = True
        if self._client:
            return
        for request_id in tuple(self._asked):
            self._decide(request_id, Deny(NOBODY_LEFT))

    def _heard(self, line: bytes | OverlongLine) -> None:
        if isinstance(line, OverlongLine):
            logger.warning("a line of %d bytes from the bridge was ignored", line.size)
            return
        if not line.strip():
            return
        if self._client and line.strip() == STOP:
            # The turn in progress may be somebody else's.
            self._session.stop(self._client, self._turn)
            return
        try:
            response = codec_ndjson.decode_response(line)
        except faults.RemoteProtocolError as fault:
            logger.warning("a line from the bridge was ignored: %s", fault)
            return
        request = self._asked.get(response.request_id)
        if request is None:
            logger.warning("the bridge answers a request that does not wait: `%s`", response.request_id[:80])
            return
        self._decide(response.request_id, _decision(request, response))

    def _decide(self, request_id: str, decision: Decision) -> None:
        request = self._asked.pop(request_id, None)
        if request is None:
            return
        try:
            self._session.answer(request.call_id, decision, self._client)
        except faults.UnknownCall:
            # The turn has ended meanwhile, or is being stopped.
            logger.info("`%s` is no longer waiting for an answer", request.name)

    # The session's sink.

    @property
    def congested(self) -> bool:
        """Whether the agent should wait for the bridge."""
        return self._output.congested

    async def drain(self) -> None:
        """Wait for the bridge."""
        await self._output.drain()

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Some events of the session. Text that comes at once goes out as one piece."""
        for envelope in envelopes:
            event = envelope.event
            if self._client and not self._is_ours(envelope):
                continue
            if isinstance(event, core.TextDelta | core.ThinkingDelta):
                if type(event) is not self._kind:
                    self._say_pieces()
                    self._kind = type(event)
                self._pieces.append(event.text)
            else:
                self._say_pieces()
                self._happened(event)
        self._say_pieces()
        self._output.flush()

    def _is_ours(self, envelope: Envelope) -> bool:
        event = envelope.event
        if self._awaited is not None and isinstance(event, core.TurnStarted) and event.message.id == self._awaited:
            self.expected(envelope.turn)
        return envelope.turn == self._turn

    def _say(self, data: bytes) -> None:
        if data:
            self._output.write(data)

    def _say_pieces(self) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        if not text:
            return
        if self._kind is core.ThinkingDelta:
            self._say(self._writer.thinking(text))
            return
        if self._apart and self._last:
            # Elsewhere a tool's own lines keep them apart; here nothing else would.
            text = _APART[len(self._last) - len(self._last.rstrip("\n")) :] + text
        self._apart = False
        self._last = text[-len(_APART) :]
        self._say(self._writer.text(text))

    def _happened(self, event: Event) -> None:
        self._apart = self._apart or isinstance(event, core.ToolStarted | core.ToolFinished | core.ToolCancelled)
        match event:
            case core.ToolRequested():
                self._ask(event)
            case core.Failed(message=text):
                # Not said yet: an agent may try again and succeed, and an error would take the answer back.
                self._failed = event
                logger.warning("%s", text)
            case core.TurnEnded():
                self._ended(event)
            case core.Notice(message=text) | core.Progress(message=text):
                logger.info("%s", text)
            case core.Plan():
                logger.info("%s", event.words)
            case core.ToolAnswered(call_id=call_id):
                self._asked = {id: each for id, each in self._asked.items() if each.call_id != call_id}
            case core.ToolStarted(name=name):
                logger.info("`%s` is running", name)
            case core.ToolFinished(name=name, status=status):
                logger.info("`%s` has ended: %s", name, status)
            case core.ToolCancelled(call_id=call_id, reason=reason):
                logger.info("`%s` did not run: %s", call_id, reason)

    def _ask(self, request: core.ToolRequested) -> None:
        self._requests += 1
        # An id of our own: an agent's may hold what the protocol does not allow there.
        request_id = f"permission-{self._requests}"
        self._asked[request_id] = request
        asked = PermissionRequest(request_id, request.name, request.args, request.description, request.call_id)
        line = b"" if self._deserted else self._writer.request(asked)
        self._say(line)
        if not line and not self._client:
            # Later: the session is in the middle of showing this.
            reason = NOBODY_LEFT if self._deserted else NOT_ASKED
            self._loop.call_soon(self._decide, request_id, Deny(reason))

    def _ended(self, event: core.TurnEnded) -> None:
        self._asked.clear()
        if self.over.done():
            return
        if event.outcome == "success":
            self._say(self._writer.answer(usage=event.usage))
            self.over.set_result(0)
            return
        kind, text = ("cancelled", STOPPED) if event.outcome == "cancelled" else ("agent", UNANSWERED)
        if self._failed is not None and event.outcome == "error":
            kind, text = self._failed.kind, told(self._failed.kind, self._failed.message)
        self._say(self._writer.error(text, event.usage))
        self.over.set_result(form_of(kind).agentproc_exit)


def _decision(request: core.ToolRequested, response: PermissionResponse) -> Decision:
    """What an answer means. Only a clear yes to just what was asked is one."""
    if response.behavior != "allow":
        return Deny(response.message)
    if response.updated_input is not None and dict(response.updated_input) != dict(request.args):
        wanted = dumps(dict(response.updated_input)).decode("utf-8", "replace")
        return Deny(f"Not like this. Ask again with this input: {wanted}")
    return Approve()


# What the agent is told


def user_message(turn: TurnRequest, problems: Mapping[str, str] | None = None) -> core.UserMessage:
    """The message of a turn. Attached files of this machine are files; of all others the agent learns the address.

    `problems` are why those could not be had, by their addresses.

    Raises:
        RemoteProtocolError: it says nothing and brings nothing.
    """
    if not turn.message.strip() and not turn.attachments:
        raise faults.RemoteProtocolError(EMPTY)
    paths = [(attachment, local_path(attachment.url)) for attachment in turn.attachments]
    why = problems or {}
    elsewhere = [_mention(each, why.get(each.url, "")) for each, path in paths if path is None]
    text = "\n\n".join(filter(None, (turn.message, "\n".join(elsewhere))))
    files = tuple(path for _, path in paths if path is not None)
    return core.UserMessage(text, files, sender=turn.from_user or None)


def _mention(attachment: Attachment, problem: str) -> str:
    named = f" `{attachment.name}`" if attachment.name else ""
    url = attachment.url
    where = url if len(url) <= SHOWN_URL_CHARS else f"{url[:80]}... ({len(url)} characters)"
    missing = f" (not here: {problem})" if problem else ""
    return f"[Attached {attachment.type}{named}: {where}{missing}]"


class Witness(Redaction):
    """Redacts, and says in the log which tools the policy denied: no line of the protocol does."""

    def __call__(self, event: Event) -> Sequence[Event]:
        clean = super().__call__(event)
        if isinstance(event, core.ToolJudged) and event.verdict == "deny":
            logger.warning(
                "The tool `%s` (%s) was not allowed, and there is nobody to ask here. "
                "To allow it, start with `--allow %s`, or with another `--mode`.",
                event.name,
                event.category,
                event.name,
            )
        return clean
