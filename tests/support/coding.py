"""The coding agent as a process, between a host and a provider that are both ours.

    with coding(tmp_path, calls(("Bash", {"command": "true"})), says("Done.")) as agent:
        agent.ask("Run it.")
        assert agent.asked.results == [...]         # what the provider was sent last

Replies are given in the format that is asked for, so one test serves both providers.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from tests.support.agent_process import AgentProcess, gone
from tests.support.conversations import Asked, read
from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import HANG, Answerer, Part, Reply, Request, StubProvider, in_thread, reply_of_script
from tests.support.provider_streams import anthropic_sse, anthropic_text, openai_sse, openai_text

PROVIDERS = ("openai", "anthropic")

#: A command that starts processes in its own group and out of it, writes down their ids, and then waits for ever.
FAMILY = """
sleep 300 & echo $! >> pids
(sleep 300 & echo $! >> pids; wait) &
setsid sleep 300 & echo $! >> pids
echo $$ >> pids; until [ "$(wc -l < pids)" -eq 4 ]; do sleep 0.01; done; mv pids family; wait
"""


#: The agent as it is, but for its patience with what it stops: on a busy machine a command may take longer to end than
#: a host waits. How little it waits otherwise, whoever does not end, tests/core/test_session_bad_agents.py looks at.
_PATIENT = f"""
from trunkline.agents.coder import conversation
from trunkline.core import performer
performer.CANCEL_SECONDS = performer.UNWIND_SECONDS = performer.CLOSE_SECONDS = {PATIENCE_SECONDS}
conversation.CLOSE_SECONDS = {PATIENCE_SECONDS}
from trunkline.cli import main
main()
"""


class Coder(AgentProcess):
    """The agent, ready. Sessions are kept in the test's own home."""

    command = (sys.executable, "-P", "-c", _PATIENT, "agent", "--json-stream")

    def __init__(
        self,
        stub: StubProvider,
        workspace: Path,
        *flags: str,
        provider: str = "openai",
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.stub = stub
        self.workspace = workspace
        super().__init__(
            *("--provider", provider, "--base-url", stub.url, *flags),
            cwd=workspace,
            env={**os.environ, **(env or {})},
        )

    def __enter__(self) -> Self:
        self.until("ready")
        return super().__enter__()

    # As the host

    def request(self) -> dict[str, Any]:
        """The next request for a tool."""
        return self.until("tool_request")[-1]

    def approve(self, request: Mapping[str, Any], scope: str = "once") -> None:
        self.send(type="tool_approve", call_id=request["call_id"], scope=scope)

    def deny(self, request: Mapping[str, Any], reason: str) -> None:
        self.send(type="tool_deny", call_id=request["call_id"], reason=reason)

    def see_out(self) -> list[dict[str, Any]]:
        """The lines up to the end of the turn; every request on the way is approved."""
        seen: list[dict[str, Any]] = []
        while not seen or seen[-1]["type"] != "stream_end":
            line = self.line()
            assert line is not None, f"the stream ended within a turn: {seen}, {self.stderr()!r}"
            seen.append(line)
            if line["type"] == "tool_request":
                self.approve(line)
        return seen

    def ask(self, text: str, msg_id: str = "m1", **more: Any) -> list[dict[str, Any]]:
        """Send a message and see it out."""
        self.send(type="message", msg_id=msg_id, input=text, **more)
        return self.see_out()

    def stop(self) -> list[dict[str, Any]]:
        """Stop the turn; its last lines."""
        self.send(type="stop")
        return self.until("stream_end")

    # As the provider

    @property
    def requests(self) -> list[Request]:
        return self.stub.requests

    @property
    def asked(self) -> Asked:
        """What the provider was sent last."""
        return read(self.requests[-1].json)


@contextmanager
def coding(
    workspace: Path,
    *replies: Reply | Answerer,
    flags: tuple[str, ...] = ("--no-session",),
    provider: str = "openai",
    env: Mapping[str, str] | None = None,
) -> Iterator[Coder]:
    """An agent whose provider plays these replies, and refuses any further request."""
    with serving(*replies) as stub, Coder(stub, workspace, *flags, provider=provider, env=env) as agent:
        yield agent


@contextmanager
def serving(*replies: Reply | Answerer, default: Answerer | None = None) -> Iterator[StubProvider]:
    """A provider that plays these replies."""
    stub = StubProvider(default)
    for reply in replies:
        stub.play(reply)
    with in_thread(stub):
        yield stub


# What a provider says


def says(text: str, **more: Any) -> Answerer:
    """An answer in words."""
    return reply_of_script({"text": text, **more})


def calls(*wanted: tuple[str, Mapping[str, Any]], text: str = "") -> Answerer:
    """An answer that calls tools."""
    return reply_of_script({"tool_calls": wanted, "text": text})


def begins(text: str, then: Part = HANG) -> Answerer:
    """An answer that is not finished: it hangs, or breaks."""

    def answer(request: Request) -> Reply:
        if request.is_anthropic:
            # Without the block's end and the two events of the answer's.
            return Reply([anthropic_sse(anthropic_text(text)[:-3]), then])
        return Reply([openai_sse(openai_text(text)[:-2], done=False), then])

    return answer


# What can be seen of it


def eventually(is_so: Callable[[], object], what: str) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"not so: {what}"
        select.select([], [], [], 0.01)


def family(workspace: Path) -> list[int]:
    """The processes that `FAMILY` has started, when all are there."""
    file = workspace / "family"
    eventually(file.exists, "the command has started")
    return [int(pid) for pid in file.read_text().split()]


def all_gone(pids: list[int]) -> bool:
    return all(map(gone, pids))


def of(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The lines of one type."""
    return [line for line in lines if line["type"] == kind]


def text_of(lines: list[dict[str, Any]]) -> str:
    """The answer in these lines."""
    return "".join(line["text"] for line in of(lines, "text_delta"))
