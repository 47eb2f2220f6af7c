"""One trace through several programs: from a client's request to the last agent that works for it, over real wires."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.openai_process import openai_process
from tests.support.otlp import ReceivedSpan, Receiver, receiving
from tests.support.patience import PATIENCE_SECONDS
from tests.support.unmeasured import unmeasured

pytestmark = [pytest.mark.process, pytest.mark.slow]

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEADERS = {"traceparent": f"00-{TRACE}-{SPAN}-01", "Content-Type": "application/json"}
MCP_SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"
#: A plain model takes the tools of whoever asks it.
MODEL = "model:mock"
SAID = "nobody else's business"

EXCHANGE = """
[exchange]
listen = "127.0.0.1:0"
home = "home"

[agents.helper]
agent = "coder"
provider = "openai"
base_url = "{model}"
model = "model:mock"
workspace = "."

[agents.program]
agent = "agentproc:program.yaml"

[agents.user]
agent = "coder"
provider = "mock"
mode = "yolo"
workspace = "."

[otel]
endpoint = "{receiver}"
service_name = "exchange"

[people.ana]
token_env = "ANA"
role = "admin"
"""


@contextmanager
def exchange(folder: Path, **environ: str) -> Iterator[str]:
    """An exchange as a process; gives its address. What it says must be JSON."""
    command = [sys.executable, "-m", "trunkline", "up", "--config", "trunkline.toml", "--log-format", "json"]
    env = (
        unmeasured() | {"TRUNKLINE_HOME": str(folder / "state"), "ANA": "ana's token", "OPENAI_API_KEY": "x"} | environ
    )
    with subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, text=True) as child:
        patience = threading.Timer(PATIENCE_SECONDS, child.kill)
        patience.start()
        try:
            assert child.stderr is not None
            told = ""
            while "reachable" not in told:
                told = json.loads(child.stderr.readline())["message"]
            yield told.split()[-1]
            child.terminate()
            rest = child.stderr.read()
            assert child.wait(PATIENCE_SECONDS) == 143
            assert [line for line in rest.splitlines() if json.loads(line)["level"] != "info"] == []
        finally:
            patience.cancel()
            child.kill()


def ask(url: str, path: str, body: dict[str, object]) -> dict[str, object]:
    headers = {**HEADERS, "Authorization": "Bearer ana's token"}
    request = urllib.request.Request(f"{url}{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        found: dict[str, object] = json.load(answer)
        return found


def below(spans: list[ReceivedSpan], parent: str) -> list[ReceivedSpan]:
    return [span for span in spans if span.parent_id == parent]


def written(folder: Path, receiver: Receiver, model: str = "http://127.0.0.1:9/v1") -> None:
    (folder / "trunkline.toml").write_text(EXCHANGE.format(model=model, receiver=receiver.url))
    profile = {
        "name": "program",
        "command": sys.executable,
        "args": ["-m", "trunkline", "agentproc", "serve", "echo"],
        "protocol": "0.4",
        "env_allowlist": ["OTEL_EXPORTER_OTLP_ENDPOINT", "TRUNKLINE_HOME", "PYTHONPATH"],
        "env": {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url},
    }
    (folder / "program.yaml").write_text(json.dumps(profile))


def test_a_turn_that_asks_a_model_that_is_an_agent_elsewhere_is_one_trace(tmp_path: Path) -> None:
    with receiving() as receiver:
        elsewhere = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_SERVICE_NAME": "elsewhere"}
        with openai_process("--agent", MODEL, environ=unmeasured() | elsewhere) as model:
            written(tmp_path, receiver, model.url)
            with exchange(tmp_path) as url:
                id = ask(url, "/api/sessions", {"agent": "helper"})["id"]
                ask(url, f"/api/sessions/{id}/messages", {"text": SAID})
                receiver.wait("invoke_agent helper")
            model.stop()
        spans = receiver.wait("invoke_agent helper", f"chat {MODEL}", f"invoke_agent {MODEL}")
    (turn,) = below(spans, SPAN)
    (chat,) = below(spans, turn.span_id)
    (there,) = below(spans, chat.span_id)
    assert [span.name for span in (turn, chat, there)] == [
        "invoke_agent helper", f"chat {MODEL}", f"invoke_agent {MODEL}",
    ]  # fmt: skip
    assert {span.trace_id for span in spans} == {TRACE}
    assert [span.resource["service.name"] for span in (turn, chat, there)] == ["exchange", "exchange", "elsewhere"]
    assert [span.attributes.get("trunkline.wire") for span in (turn, there)] == ["http", "openai"]
    assert (turn.attributes["gen_ai.agent.name"], turn.attributes["gen_ai.conversation.id"]) == ("helper", id)
    assert chat.attributes["gen_ai.provider.name"] == "openai"
    assert turn.start <= chat.start <= there.start < there.end <= chat.end <= turn.end
    assert SAID.encode() not in b"".join(receiver.bodies)


def test_a_program_that_is_started_for_a_turn_goes_on_with_its_trace(tmp_path: Path) -> None:
    with receiving() as receiver:
        written(tmp_path, receiver)
        with exchange(tmp_path) as url:
            id = ask(url, "/api/sessions", {"agent": "program"})["id"]
            ask(url, f"/api/sessions/{id}/messages", {"text": SAID})
            receiver.wait("invoke_agent program", "invoke_agent echo")
        spans = receiver.spans
    (turn,) = below(spans, SPAN)
    (there,) = below(spans, turn.span_id)
    assert [turn.name, there.name] == ["invoke_agent program", "invoke_agent echo"]
    assert there.attributes["trunkline.wire"] == "agentproc"
    assert {span.trace_id for span in spans} == {TRACE}


def test_a_server_of_tools_is_told_which_trace_a_call_belongs_to(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    server = f"tee {shlex.quote(str(heard))} | {shlex.quote(sys.executable)} -S -E {shlex.quote(str(MCP_SERVER))}"
    own = tmp_path / "state" / "config" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f"[mcp.servers.small]\ncommand = 'sh'\nargs = ['-c', {json.dumps(server)}]\n")
    with receiving() as receiver:
        written(tmp_path, receiver)
        with exchange(tmp_path) as url:
            id = ask(url, "/api/sessions", {"agent": "user"})["id"]
            ask(url, f"/api/sessions/{id}/messages", {"text": 'tool: echo {"a": 1}'})
            receiver.wait("invoke_agent user", "execute_tool echo")
        spans = receiver.spans
    (turn,) = below(spans, SPAN)
    assert sorted(span.name for span in below(spans, turn.span_id)) == ["chat mock", "chat mock", "execute_tool echo"]
    (call,) = [each for each in map(json.loads, heard.read_text().splitlines()) if each["method"] == "tools/call"]
    assert call["params"]["_meta"]["traceparent"].split("-")[1:3] == [TRACE, turn.span_id]


def test_a_program_that_a_host_spawns_makes_spans_if_its_environment_says_where_they_go(tmp_path: Path) -> None:
    with receiving() as receiver:
        done = subprocess.run(
            [sys.executable, "-m", "trunkline", "agent", "--json-stream", "--agent", "echo"],
            input=json.dumps({"type": "message", "msg_id": "1", "content": SAID}) + "\n",
            env=unmeasured() | {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=True,
        )
        span = receiver.named("invoke_agent echo")
    assert done.stderr == ""
    assert span.attributes["trunkline.wire"] == "jsonstream"
    assert span.resource["service.name"] == "trunkline"
    assert span.parent_id == ""
    assert SAID.encode() not in b"".join(receiver.bodies)


def test_where_nobody_asks_for_traces_nothing_of_it_is_imported(tmp_path: Path) -> None:
    program = """
import sys
from trunkline.cli import agent, app, bridge_run, serving, up
from trunkline.exchange import process
from trunkline.exchange.api import app
from trunkline.agents.coder import conversation
print([name for name in sys.modules if name.startswith(("opentelemetry", "trunkline.telemetry.spans"))])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=unmeasured(), cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
    assert os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") is None
