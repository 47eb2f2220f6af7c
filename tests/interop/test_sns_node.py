"""A peer in another language: what JavaScript signs our network accepts, and what our client signs JavaScript accepts.

The peer is Node with nothing installed: its own `JSON`, its own `crypto`, its own `fetch`.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require
from tests.support.patience import PATIENCE_SECONDS
from tests.support.sns_stub import AGENT, COMMUNITY, TOKEN, SnsStub
from trunkline.base import recursion
from trunkline.network.open_database import open_database
from trunkline.network.serving import serve
from trunkline.wires.sns.drive import Sns

with recursion.kept():
    from tests.support.owner_world import World

pytestmark = [pytest.mark.process]


#: Reads one JSON value from standard input, and writes one. `mode` is `write` or `check`.
PEER = r"""
const { createHash, createHmac } = require("node:crypto");

function canonical(value) {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return "[" + value.map(canonical).join(",") + "]";
  const members = Object.keys(value).sort().map((name) => JSON.stringify(name) + ":" + canonical(value[name]));
  return "{" + members.join(",") + "}";
}

function signature({ token, agentId, nonce, timestamp, text }) {
  const hash = createHash("sha256").update(canonical(JSON.parse(text)), "utf8").digest("hex");
  return createHmac("sha256", token).update([nonce, timestamp, hash, agentId].join(".")).digest("hex");
}

async function write({ url, token, agentId, thread }, text) {
  const runner = { "x-runner-token": token, "x-agent-id": agentId };
  const issued = await fetch(url + "/api/agents/nonce", { method: "POST", headers: runner });
  const { nonce } = await issued.json();
  const timestamp = String(Date.now());
  const answer = await fetch(`${url}/api/threads/${thread}/comments`, {
    method: "POST",
    headers: {
      ...runner,
      "content-type": "application/json",
      "x-agent-nonce": nonce,
      "x-agent-timestamp": timestamp,
      "x-agent-signature": signature({ token, agentId, nonce, timestamp, text }),
    },
    body: text,
  });
  return [answer.status, await answer.json()];
}

// Doubles and names with any bits, from a hash of a counter: hard cases, the same on every run.
function anything(count) {
  const doubles = [], names = {};
  for (let number = 0; number < count; number++) {
    const bits = createHash("sha256").update(String(number)).digest();
    const double = bits.readDoubleBE(0);
    if (Number.isFinite(double)) doubles.push(double, Math.trunc(double % 1e22), Math.fround(bits.readFloatBE(8)));
    const units = [bits.readUInt16BE(16), bits.readUInt16BE(18), 0xd700 + (bits[20] % 0x200) * 8, bits[21]];
    names[String.fromCharCode(...units)] = units.length - number;
  }
  return JSON.stringify({ body: "anything", doubles: doubles.filter(Number.isFinite), names });
}

async function main() {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  const job = JSON.parse(Buffer.concat(chunks).toString("utf8"));
  let results = [];
  if (job.mode === "check") results = job.sent.map((each) => signature(each));
  else for (const text of [...job.texts, anything(job.random)]) results.push(await write(job, text));
  process.stdout.write(JSON.stringify(results));
}

main();
"""

#: Bodies as they travel, member by member beside `body`. Each must be accepted.
MEMBERS = {
    "numbers": "[0,-0,1.0,-1.50,1e2,1E+2,0.1e-6,1e-7,0.000001,1e21,1e20,123456789012345678901234567890]",
    "doubles": "[5e-324,2.2250738585072014e-308,1.7976931348623157e308,9007199254740993,0.30000000000000004,1e23]",
    "beyond": "[1e400,-1e400,1e-400]",
    "names": r'{"\ud83d\ude00":1,"\ufb01":2,"z":3,"\u00e9":4,"":5,"10":6,"9":7,"a\u0000b":8,"__proto__":9}',
    "halves": r'["\ud800","\udc00 \ud800","x\udfff",{"\ud83d":1,"\ude00":2}]',
    "controls": r'"\b\f\n\r\t\u0000\u001f\u007f\u0080 \/ \\ \" "',
    "separators": '"\u2028 \u2029 \ufeff \u00a0 \U0001f600"',
    "nested": "[" * 60 + '{"b":{"d":null,"c":true},"a":[[],{}]}' + "]" * 60,
    "twice": '{"same":1,"other":2,"same":3}',
    "spaced": '\t{ "b" :\r\n1 , "a" : [ ] }',
}
#: A text that is kept as it is.
KEPT = "\U0001f600 \u2028 \u2029 \ufeff \u00a0 \u202e \ufb01 \U0010ffff"


@pytest.fixture
def node() -> str:
    found = shutil.which("node")
    require("Node", found is not None, "on Debian: apt-get install nodejs")
    return str(found)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[tuple[World, str]]:
    """A network, and where it listens."""
    database = await open_database(f"sqlite:///{tmp_path}/network.db")
    world = World(database)
    # The peer's clock is the real one.
    world.now = round(time.time() * 1000)
    stop, reachable = asyncio.Event(), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve(world.network, "127.0.0.1", 0, stop, lambda host, port: reachable.set_result(f"http://{host}:{port}"))
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            yield world, await reachable
    finally:
        stop.set()
        await serving
        await world.client.aclose()
        await database.close()


async def a_job(world: World, url: str) -> dict[str, Any]:
    """For the peer: to comment on a thread, as an agent of the network."""
    owner = await world.owner()
    community = await world.community(owner)
    agent = await world.agent(owner, community["id"])
    token = await world.runner_token(owner, agent["id"])
    begun = {"communityId": community["id"], "title": "For a peer", "body": "Write here.", "type": "DISCUSSION"}
    status, answer = await world.write(token, agent["id"], "/api/threads", begun)
    assert status == 200, answer
    thread = answer["thread"]["id"]
    return {"mode": "write", "url": url, "token": token, "agentId": agent["id"], "thread": thread}


async def ask(node: str, job: dict[str, Any]) -> list[Any]:
    """What the peer answers."""
    process = await asyncio.create_subprocess_exec(
        node, "-e", PEER, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            out, _ = await process.communicate(json.dumps(job).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    answered: list[Any] = json.loads(out)
    return answered


async def test_whatever_javascript_signs_is_accepted(node: str, world: tuple[World, str]) -> None:
    job = await a_job(*world)
    texts = [f'{{"{name}":{value},"body":"{name}"}}' for name, value in MEMBERS.items()]
    texts.append(json.dumps({"body": KEPT}))
    answers = await ask(node, {**job, "texts": texts, "random": 400})
    assert [status for status, _ in answers] == [200] * len(answers), answers
    status, shown = await world[0].get(f"/api/threads/{job['thread']}")
    assert status == 200
    assert [comment["body"] for comment in shown["comments"]] == [*MEMBERS, KEPT, "anything"]


async def test_texts_that_cannot_be_kept_are_400_and_never_a_bad_signature(node: str, world: tuple[World, str]) -> None:
    job = await a_job(*world)
    texts = [r'{"body":"\ud800"}', r'{"body":"a\u0000b"}', '{"body":[1]}', '{"body":{"a":1}}', "[]", '"text"', "null"]
    *answers, _ = await ask(node, {**job, "texts": texts, "random": 0})
    assert [status for status, _ in answers] == [400] * len(texts), answers
    assert all(list(answer) == ["error"] for _, answer in answers)


async def test_what_our_client_signs_is_what_javascript_computes(node: str) -> None:
    bodies = [
        "plain",
        "fünf \U0001f600 \u2028 \ufb01",
        "\ud800 half",
        "\ud83d\ude00 two halves",
        'quote " \\ \x00 \x7f',
    ]
    async with SnsStub() as stub:
        sns = Sns(stub.url, AGENT, TOKEN, timeout=PATIENCE_SECONDS)
        for body in bodies:
            await sns.create_thread(COMMUNITY, body, body, "DISCUSSION")
        await sns.close()
        written = [each for each in stub.requests if each.target == "/api/threads"]
    sent = [
        {
            "token": TOKEN,
            "agentId": AGENT,
            "nonce": each.headers["x-agent-nonce"],
            "timestamp": each.headers["x-agent-timestamp"],
            "text": each.body.decode(),
        }
        for each in written
    ]
    assert await ask(node, {"mode": "check", "sent": sent}) == [each.headers["x-agent-signature"] for each in written]
    assert len(written) == len(bodies)
