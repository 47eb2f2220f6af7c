"""The walks of `docs/explanation/architecture.md` are taken: each function is called, in the order told."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import trunkline
from tests.network.world import world
from tests.support.attached import exchange
from tests.support.chat_bridge import DONE, Stage
from tests.support.fake_model import FakeModel, call, calls, words
from tests.support.host import Host
from tests.support.ledger_agents import USE, scripted
from tests.support.ledger_faces import AcpWay
from tests.support.ledger_ways import AGENT
from tests.support.tryll_served import served
from trunkline.agents.coder.agent import Coder
from trunkline.agents.coder.settings import CoderSettings
from trunkline.core.approvals import Policy
from trunkline.core.events import TextDelta
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.models.providers import ModelSettings
from trunkline.network.open_database import open_database
from trunkline.wires.jsonstream.serve import JsonStreamServer
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import fast

pytestmark = pytest.mark.docs

SOURCE = str(Path(trunkline.__file__).parent) + "/"
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "architecture.md"
STEP = re.compile(r"`([a-z_/]+)\.py` `([\w.]+)`")


class Walked:
    """The functions of ours that were called, in the order of their first calls; also in threads that begin now."""

    def __init__(self) -> None:
        self.steps: dict[str, None] = {}
        self.watches = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if self.watches and event == "call" and code.co_filename.startswith(SOURCE):
            self.steps.setdefault(f"{code.co_filename.removeprefix(SOURCE).removesuffix('.py')} {code.co_qualname}")

    @contextmanager
    def watching(self) -> Iterator[None]:
        self.watches = True
        yield
        self.watches = False


@contextmanager
def walked() -> Iterator[Walked]:
    """Look at what is called, from now on, in this thread and in those that begin now."""
    found = Walked()
    sys.setprofile(found)
    threading.setprofile(found)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


async def a_json_line(folder: Path, found: Walked) -> None:
    replies = calls(call("Bash", command="echo hi")), words("all done")
    coder = Coder(CoderSettings(ModelSettings("anthropic"), "a test"), lambda wanted: FakeModel(*replies))
    session = await Session.open(coder, MemoryLog("s1"), Policy("default"), workspace=str(folder))
    host = Host()
    host.server = server = JsonStreamServer(session, host)
    server.greet()
    with found.watching():
        server.feed(b'{"type": "message", "msg_id": "m1", "content": "hi"}\n')
        (asked,) = await lines(host, "tool_request")
        server.feed(b'{"type": "tool_approve", "call_id": "%s"}\n' % asked["call_id"].encode())
        await lines(host, "stream_end")
    await server.close()
    await session.close()


async def lines(host: Host, kind: str) -> list[dict[str, Any]]:
    """The lines of a kind that the host was sent, as soon as there is one."""
    while not (found := [line for line in host.lines if line["type"] == kind]):  # noqa: ASYNC110  (a process runs)
        await asyncio.sleep(0.01)
    return found


async def a_chat_message(folder: Path, found: Walked) -> None:
    stage = Stage(folder)
    async with stage.bridge():
        with found.watching():
            stage.platform.says("hello")
            await stage.asked()
            stage.agent.say(TextDelta("one"), DONE)
            await stage.sees("one")


async def a_signed_post(folder: Path, found: Walked) -> None:
    async with world(await open_database(f"sqlite:///{folder}/network.db")) as network:
        community = await network.community()
        agent = await network.agent(community)
        with found.watching():
            answer = await agent.send("POST", "/api/threads", {"communityId": community, "title": "t", "body": "b"})
        assert answer.status_code == 200


async def a_tryll_frame(folder: Path, found: Walked) -> None:
    async with served(folder) as server, server.peer() as peer:
        agent = await peer.agent()
        fast.forget()  # or the frame would pass by what was learnt from another of its kind
        with found.watching():
            peer.say(m.SendMessageRequest(3, agent, "hello"))
            await peer.turn()


async def a_prompt(folder: Path, found: Walked) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        editor = AcpWay(folder, monkeypatch)
        async with exchange(folder, **{AGENT: scripted(folder)}) as running, editor.inside(running):
            with found.watching():
                await editor.ask(USE)


WALKS: dict[str, Callable[[Path, Walked], Any]] = {
    "A JSON line": a_json_line,
    "A chat message": a_chat_message,
    "A signed POST": a_signed_post,
    "A Tryll frame": a_tryll_frame,
    "A prompt in an editor": a_prompt,
}


@pytest.mark.parametrize("name", WALKS)
async def test_a_walk_is_as_it_is_told(name: str, tmp_path: Path) -> None:
    told = PAGE.read_text(encoding="utf-8").partition(f"### {name}\n")[2].partition("\n##")[0]
    steps = [f"{file} {function}" for file, function in STEP.findall(told)]
    assert len(steps) >= 8
    with walked() as found:
        await WALKS[name](tmp_path, found)
    order = {step: number for number, step in enumerate(found.steps)}
    assert [step for step in steps if step not in order] == []
    assert steps == sorted(steps, key=order.__getitem__)
