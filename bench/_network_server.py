"""The servers of the network's benchmark: the network itself, and a handler that does its statements and little else.

    python bench/_network_server.py network|plain DATABASE WORKS-PER-COMMIT STATEMENTS

Writes its port on a line, and serves until its standard input ends. All of them run on the same server.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench._network_world import BODY, ID, NONCE, NOW, network, now

from trunkline.base import asgi
from trunkline.network.http.app import application
from trunkline.network.ids import new_id
from trunkline.network.schema import FORM
from trunkline.store.database import Database, Transaction
from trunkline.store.database.sqlite import open_sqlite

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


def plain(database: Database, statements: list[tuple[str, str, list[Any]]]) -> ASGIApp:
    """The least that can take a signed comment: one path, no rules; the signature, and the same statements."""

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        data: bytes = message["body"]
        while message["more_body"]:
            message = await receive()
            data += message["body"]
        body = json.loads(data)
        nonce = verified(dict(scope["headers"]), body)
        values = {NONCE: nonce, ID: new_id(), NOW: now(), BODY: body["body"]}

        def work(tx: Transaction) -> None:
            for method, sql, parameters in statements:
                filled = [values.get(value, value) if type(value) is str else value for value in parameters]
                getattr(tx, method)(sql, filled)

        await database.write(work)
        answer = json.dumps({"comment": {"id": values[ID], "createdAt": values[NOW], **body}}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return handle


def verified(headers: dict[bytes, bytes], body: object) -> str:
    """The nonce of a request whose signature is right. As one would write it at first: right for simple bodies."""
    stable = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    nonce = headers[b"x-agent-nonce"]
    hashed = hashlib.sha256(stable.encode()).hexdigest().encode()
    text = b".".join((nonce, headers[b"x-agent-timestamp"], hashed, headers[b"x-agent-id"]))
    expected = hmac.new(headers[b"x-runner-token"], text, "sha256").hexdigest()
    if not hmac.compare_digest(expected, headers[b"x-agent-signature"].decode()):
        raise AssertionError("the signature is wrong")
    return nonce.decode()


async def serve(kind: str, path: str, most_at_once: int, statements: str) -> None:
    database = await open_sqlite(path, FORM, most_at_once=most_at_once)
    app: Any = application(network(database)) if kind == "network" else plain(database, json.loads(statements))
    stop = asyncio.Event()
    serving = asyncio.create_task(asgi.serve(app, "127.0.0.1", 0, stop, lambda _, port: print(port, flush=True)))
    await asyncio.to_thread(sys.stdin.read)
    stop.set()
    await serving
    await database.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]))
