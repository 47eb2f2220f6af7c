"""One agent of each kind for the cells of the ledger's matrix. All of them do what the same few messages say.

Each is made by the registry. What is a model's part is played by a stub: a provider for the coding agent, the mock
engine for the graph.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from tests.support.coding import begins, calls, says
from tests.support.conversations import read
from tests.support.provider import Reply, Request, StubProvider
from trunkline.agents import registry
from trunkline.agents.graph.agent_models import AgentModels
from trunkline.agents.graph.hosting import LocalGraphHost
from trunkline.agents.graph.pool import ModelPool
from trunkline.core.agent import AddHistory, Approve, Capabilities, Change, Decision, OpenRequest
from trunkline.core.approvals import Decisions
from trunkline.core.events import (
    Event,
    Failed,
    TextDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    UserMessage,
)
from trunkline.exchange.settings import AgentSettings
from trunkline.wires.tryll.serve import ServerSettings, TryllServer

#: What only whoever remembers the first message can say.
CODE_WORD = "heron"
SAY = f"The code word is {CODE_WORD}: say hello."
#: The mock calls a tool whose name is in the message.
USE = "Place an order."
#: Long, for the mock, which says it back and takes a moment for each word.
WAIT = f"{'word ' * 3000}: wait."
FAIL = "Now fail."
RECALL = "Now recall."

#: How the answer to `WAIT` begins. No word of the bridge: it may say that a message is waiting.
BEGUN = "I begin|You said: word"

HELLO = "hello"
DONE = "It is ordered."
NOT_DONE = "I may not"
ILL = "The model is ill"

SCRIPT = f"""\
turns:
  - when: "hello.$"
    steps: [{{text: "hello"}}]
  - when: "order.$"
    steps:
      - tool:
          name: Write
          args: {{file_path: order.txt, content: sword}}
          output: written
          approved: [{{text: "{DONE}"}}]
          denied: [{{text: "{NOT_DONE}: {{{{reason}}}}"}}]
  - when: "wait.$"
    steps: [{{text: "I begin"}}, {{hang: true}}]
  - when: "fail.$"
    steps: [{{fail: {{kind: provider, message: "{ILL}", retryable: true}}}}]
    outcome: error
  - when: "recall.$"
    steps: [{{text: "message {{{{turn}}}}, and before: {{{{history}}}} {{{{input}}}}"}}]
"""

GRAPH = """\
start: wants
default_model: mock-slow
nodes:
  wants: {type: HumanMessageGuardrail, inline_strings: ['order.$'], triggered: order, not_triggered: asks}
  order:
    type: ToolCall
    tools: [{name: order, description: Notes what is ordered.}]
    tool_called: agree
    no_tool_called: decline
  agree: {type: CannedResponse, inline_strings: [DONE]}
  decline: {type: CannedResponse, inline_strings: [NOT_DONE]}
  asks: {type: HumanMessageGuardrail, inline_strings: ['(fail|recall).$'], triggered: scripted, not_triggered: answer}
  scripted: {type: Generate, model_name: 'agent:scripted:SCRIPT', stream: true}
  answer: {type: Generate, stream: true}
"""

PROGRAM = f"""\
import json, os, pathlib, sys

def say(**event):
    print(json.dumps(event), flush=True)

turn = json.loads(sys.stdin.readline())
text = turn["message"]
wish = text.rstrip(".").split()[-1]
session = turn["session_id"] or f"s{{os.getpid()}}"
memory = pathlib.Path(f"memory-{{session}}.txt")
said = memory.read_text() if memory.exists() else ""
memory.write_text(said + text[:1000] + "\\n")
say(type="partial", text="", session_id=session)
if wish == "order":
    say(type="permission_request", request_id="r1", tool_name="Write", input={{"file_path": "order.txt"}})
    answer = json.loads(sys.stdin.readline())
    say(type="result", text="{DONE}" if answer["behavior"] == "allow" else "{NOT_DONE}")
elif wish == "wait":
    say(type="partial", text="I begin")
    sys.stdin.read()
    os.read(os.pipe()[0], 1)
elif wish == "fail":
    say(type="error", message="{ILL}")
    sys.exit(1)
elif wish == "recall":
    say(type="result", text=said + text)
else:
    say(type="result", text="hello")
"""

ACP_PROGRAM = f"""\
import json, os, pathlib, sys

OPTIONS = [{{"optionId": kind, "name": kind, "kind": kind}} for kind in ("allow_once", "reject_once")]
CAN = {{"loadSession": False, "sessionCapabilities": {{"resume": {{}}}}}}

def send(**members):
    print(json.dumps({{"jsonrpc": "2.0", **members}}), flush=True)

def read():
    return json.loads(sys.stdin.readline() or sys.exit())

def tell(session, what, **members):
    send(method="session/update", params={{"sessionId": session, "update": {{"sessionUpdate": what, **members}}}})

def say(session, text):
    tell(session, "agent_message_chunk", content={{"type": "text", "text": text}})

def ask(session):
    call = {{"toolCallId": "c1", "title": "Write", "kind": "edit", "rawInput": {{"file_path": "order.txt"}}}}
    tell(session, "tool_call", status="pending", **call)
    send(id="q", method="session/request_permission",
         params={{"sessionId": session, "toolCall": {{"toolCallId": "c1"}}, "options": OPTIONS}})
    allowed = read()["result"]["outcome"].get("optionId") == "allow_once"
    tell(session, "tool_call_update", toolCallId="c1", status="completed" if allowed else "failed")
    return allowed

def prompt(session, text):
    memory = pathlib.Path(f"memory-{{session}}.txt")
    said = memory.read_text() if memory.exists() else ""
    memory.write_text(said + text[:1000] + "\\n")
    wish = text.rstrip(".").split()[-1]
    if wish == "order":
        say(session, "{DONE}" if ask(session) else "{NOT_DONE}")
    elif wish == "wait":
        say(session, "I begin")
        while read().get("method") != "session/cancel":
            pass
        return {{"result": {{"stopReason": "cancelled"}}}}
    elif wish == "fail":
        return {{"error": {{"code": -32603, "message": "{ILL}"}}}}
    else:
        say(session, said + text if wish == "recall" else "hello")
    return {{"result": {{"stopReason": "end_turn"}}}}

while True:
    message = read()
    method, params = message.get("method"), message.get("params", {{}})
    answer = {{"result": {{}}}}
    if method == "initialize":
        answer["result"] = {{"protocolVersion": 1, "agentCapabilities": CAN}}
    elif method == "session/new":
        answer["result"] = {{"sessionId": f"s{{os.getpid()}}"}}
    elif method == "session/prompt":
        answer = prompt(params["sessionId"], "\\n".join(block["text"] for block in params["prompt"]))
    if "id" in message:
        send(id=message["id"], **answer)
"""


def scripted(home: Path) -> AgentSettings:
    """What a script plays."""
    return _settings(home, f"scripted:{_written(home / 'agent.yaml', SCRIPT)}")


def jsonstream(home: Path) -> AgentSettings:
    """A program that speaks the JSON stream: ours."""
    script = _written(home / "agent.yaml", SCRIPT)
    command = f"{sys.executable} -P -m trunkline agent --json-stream --agent scripted --script {script}"
    return _settings(home, f"jsonstream:{command}")


def graph(home: Path) -> AgentSettings:
    """A graph on the mock engine. What the mock cannot do, to fail and to remember, a node leaves to a script."""
    text = GRAPH.replace("NOT_DONE", NOT_DONE).replace("DONE", DONE)
    text = text.replace("SCRIPT", str(_written(home / "agent.yaml", SCRIPT)))
    return _settings(home, f"graph:{_written(home / 'graph.yaml', text)}")


def agentproc(home: Path) -> AgentSettings:
    """A program that a profile describes. It keeps what it heard in files of its own."""
    program = _written(home / "agent.py", PROGRAM)
    profile = f'protocol: "0.4"\ncommand: {sys.executable}\nargs: ["-P", "{program}"]\npermission: true\n'
    return _settings(home, f"agentproc:{_written(home / 'profile.yaml', profile)}")


def acp(home: Path) -> AgentSettings:
    """A program that speaks the Agent Client Protocol. It keeps what it heard in files of its own."""
    return _settings(home, f"acp:{sys.executable} -P {_written(home / 'agent.py', ACP_PROGRAM)}")


def module(home: Path) -> AgentSettings:
    """A class in a module."""
    return _settings(home, f"{__name__}:Keeper")


@asynccontextmanager
async def coder(home: Path) -> AsyncIterator[AgentSettings]:
    """The coding agent, with a stub for its provider."""
    async with StubProvider(_answer) as stub:
        options = {"provider": "openai", "model": "stub", "base_url": stub.url, "api_key": "sk-of-the-stub"}
        yield _settings(home, "coder").replace(options=options)


@asynccontextmanager
async def tryll(home: Path) -> AsyncIterator[AgentSettings]:
    """A Tryll server that offers the scripted agent as a model."""
    agent = registry.make(f"scripted:{_written(home / 'agent.yaml', SCRIPT)}", {})
    graphs = LocalGraphHost(AgentModels(ModelPool(), {"scripted": agent}, workspace=str(home)), str(home))
    server = TryllServer(graphs, ServerSettings())
    host, port = await server.listen("127.0.0.1", 0)
    try:
        yield _settings(home, f"tryll:{host}:{port}/agent:scripted")
    finally:
        await server.close()
        await graphs.close()


def _ready(make: Callable[[Path], AgentSettings]) -> Callable[[Path], AbstractAsyncContextManager[AgentSettings]]:
    @asynccontextmanager
    async def made(home: Path) -> AsyncIterator[AgentSettings]:
        yield make(home)

    return made


#: By the names of the matrix. Each is there as long as the block lasts.
AGENTS: dict[str, Callable[[Path], AbstractAsyncContextManager[AgentSettings]]] = {
    "coder": coder,
    "graph": _ready(graph),
    "agentproc": _ready(agentproc),
    "jsonstream": _ready(jsonstream),
    "acp": _ready(acp),
    "tryll": tryll,
    "scripted": _ready(scripted),
    "module": _ready(module),
}


def _settings(home: Path, agent: str) -> AgentSettings:
    return AgentSettings("", agent, str(home))


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _wish(text: str) -> str:
    """What is wanted: a message may have what was said before in front of it, and its last word says it."""
    return text.rstrip(".").split()[-1]


def _answer(request: Request) -> Reply:
    """What the coder's model says."""
    asked = read(request.json)
    wish = _wish(asked.words)
    if wish == "order" and not asked.results:
        return calls(("Write", {"file_path": "order.txt", "content": "sword\n"}))(request)
    if wish == "order":
        return says(NOT_DONE if "denied" in asked.results[-1] else DONE)(request)
    if wish == "wait":
        return begins("I begin")(request)
    if wish == "fail":
        return Reply([f'{{"error": {{"message": "{ILL}"}}}}'.encode()], status=400)
    if wish == "recall":
        # Without the middle of the long one: it would be said word by word.
        said = (f"{each.text[:100]} {each.text[-100:]}" for each in asked.said)
        return says("\n".join([*re.findall("The code word.*", asked.system), *said]))(request)
    return says("hello")(request)


class Keeper:
    """An agent as somebody may write one: it keeps what it heard in its journal."""

    name = "keeper"
    capabilities = Capabilities(approval=True, resume=True)

    async def open(self, request: OpenRequest) -> KeeperConversation:
        return KeeperConversation(request)


class KeeperConversation:
    """One dialogue."""

    session_id = None

    def __init__(self, request: OpenRequest) -> None:
        self._request = request
        self._decisions = Decisions()
        self._stopped = asyncio.Event()

    async def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        self._stopped.clear()
        said = "\n".join(map(str, self._request.journal.records))
        self._request.journal.append(message.text[:1000])
        wish = _wish(message.text)
        if wish == "order":
            decision = self._decisions.ask("call-1")
            yield ToolRequested("call-1", "Write", "edit", {"file_path": "order.txt"})
            if isinstance(await decision, Approve):
                yield ToolStarted("call-1", "Write")
                yield ToolFinished("call-1", "Write", "success", "written")
                yield TextDelta(DONE)
            else:
                yield ToolCancelled("call-1", "denied")
                yield TextDelta(NOT_DONE)
        elif wish == "wait":
            yield TextDelta("I begin")
            await self._stopped.wait()
            yield TurnEnded("cancelled")
            return
        elif wish == "fail":
            yield Failed("provider", ILL, retryable=True)
            yield TurnEnded("error")
            return
        else:
            yield TextDelta(said + message.text if wish == "recall" else "hello")
        yield TurnEnded("success")

    async def decide(self, call_id: str, decision: Decision) -> None:
        self._decisions.resolve(call_id, decision)

    async def configure(self, change: Change) -> None:
        if isinstance(change, AddHistory):
            self._request.journal.append(change.text)

    async def cancel(self) -> None:
        self._stopped.set()

    async def close(self) -> None:
        self._stopped.set()
