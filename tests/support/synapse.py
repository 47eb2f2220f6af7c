"""A real Matrix homeserver on the loopback interface, and people who use it without any code of ours."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx

from tests.support.mcp_environment import environment
from tests.support.patience import PATIENCE_SECONDS
from tests.support.ports import free_port
from trunkline.base.process import spawn

SYNAPSE = ("matrix-synapse==1.163.2",)
#: It compiles its tables when it starts; on a busy machine that takes a while.
START_SECONDS = 60
MOST_UPLOAD_BYTES = 200_000

_LOOK_SECONDS = 0.05
_PLENTY = {"per_second": 1000, "burst_count": 1000}


class Server:
    """A homeserver that runs."""

    def __init__(self, url: str, secret: str) -> None:
        self.url = url
        self._secret = secret

    async def person(self, name: str, *, admin: bool = False) -> Person:
        """Somebody new. The name is made unique."""
        user = f"{name}-{secrets.token_hex(4)}"
        password = secrets.token_hex(8)
        async with httpx.AsyncClient(base_url=self.url, timeout=PATIENCE_SECONDS) as client:
            path = "/_synapse/admin/v1/register"
            nonce = (await client.get(path)).json()["nonce"]
            signed = "\0".join((nonce, user, password, "admin" if admin else "notadmin"))
            mac = hmac.new(self._secret.encode(), signed.encode(), hashlib.sha1).hexdigest()
            body = {"nonce": nonce, "username": user, "password": password, "admin": admin, "mac": mac}
            made = (await client.post(path, json=body)).json()
        return Person(self.url, made["user_id"], made["access_token"], password)


class Person:
    """Somebody at a keyboard."""

    def __init__(self, url: str, id: str, token: str, password: str) -> None:
        self.id = id
        self.token = token
        self.password = password
        self._client = httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_SECONDS
        )
        self._since: str | None = None
        self.heard: list[dict[str, Any]] = []

    async def __aenter__(self) -> Person:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def call(self, method: str, path: str, body: Any = None, **parameters: str) -> dict[str, Any]:
        """A request that must work."""
        answer = await self._client.request(method, path, json=body, params=parameters)
        assert answer.status_code == 200, f"{method} {path}: {answer.status_code} {answer.text}"
        found: dict[str, Any] = answer.json()
        return found

    async def make_room(self, *invited: str, **settings: Any) -> str:
        body = {"invite": list(invited), "preset": "private_chat", **settings}
        room: str = (await self.call("POST", "/_matrix/client/v3/createRoom", body))["room_id"]
        return room

    async def join(self, room: str) -> None:
        await self.call("POST", f"/_matrix/client/v3/join/{quote(room)}", {})

    async def do(self, room: str, action: str, user: str) -> None:
        """`invite` or `kick` somebody."""
        await self.call("POST", f"/_matrix/client/v3/rooms/{quote(room)}/{action}", {"user_id": user})

    async def send(self, room: str, content: dict[str, Any], type: str = "m.room.message") -> str:
        path = f"/_matrix/client/v3/rooms/{quote(room)}/send/{type}/{uuid4().hex}"
        event: str = (await self.call("PUT", path, content))["event_id"]
        return event

    async def say(self, room: str, text: str, **more: Any) -> str:
        return await self.send(room, {"msgtype": "m.text", "body": text, **more})

    async def react(self, room: str, event: str, key: str) -> str:
        relation = {"rel_type": "m.annotation", "event_id": event, "key": key}
        return await self.send(room, {"m.relates_to": relation}, "m.reaction")

    async def timeline(self, room: str) -> list[dict[str, Any]]:
        """The newest events of a room, in order."""
        path = f"/_matrix/client/v3/rooms/{quote(room)}/messages"
        chunk: list[dict[str, Any]] = (await self.call("GET", path, dir="b", limit="100"))["chunk"]
        return chunk[::-1]

    async def messages(self, room: str, sender: str) -> list[dict[str, Any]]:
        """What one of them said, as contents."""
        return [
            event["content"]
            for event in await self.timeline(room)
            if event["type"] == "m.room.message" and event["sender"] == sender
        ]

    async def shown(self, room: str, sender: str) -> list[str]:
        """The texts of one of them as a client shows them: each message once, as it was changed last."""
        texts: dict[str, str] = {}
        for event in await self.timeline(room):
            if event["type"] == "m.room.message" and event["sender"] == sender:
                new = event["content"].get("m.new_content")
                message = event["content"]["m.relates_to"]["event_id"] if new else event["event_id"]
                texts[message] = (new or event["content"])["body"]
        return list(texts.values())

    async def hear(self, room: str, wanted: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The first event in a room, or sign of typing there, that is as wanted."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                for event in self.heard:
                    if event["room"] == room and wanted(event):
                        return event
                await self._listen()

    async def _listen(self) -> None:
        since = {"since": self._since, "timeout": "5000"} if self._since else {}
        answer = await self.call("GET", "/_matrix/client/v3/sync", **since)
        self._since = answer["next_batch"]
        rooms = answer.get("rooms", {})
        for group in ("join", "leave"):
            for room, found in rooms.get(group, {}).items():
                events = found.get("timeline", {}).get("events", []) + found.get("ephemeral", {}).get("events", [])
                self.heard += [{"sender": "", **event, "room": room} for event in events]

    async def upload(self, data: bytes, type: str) -> str:
        answer = await self._client.post("/_matrix/media/v3/upload", content=data, headers={"Content-Type": type})
        ref: str = answer.raise_for_status().json()["content_uri"]
        return ref

    async def download(self, ref: str) -> bytes:
        path = f"/_matrix/client/v1/media/download/{ref.removeprefix('mxc://')}"
        return (await self._client.get(path)).raise_for_status().content


@contextmanager
def homeserver(directory: Path) -> Iterator[Server]:
    """A homeserver at work, until the end of the block. It has no limits on how fast people write."""
    programs = environment(SYNAPSE)
    port, secret = free_port(), secrets.token_hex(16)
    config = directory / "homeserver.json"
    config.write_text(json.dumps(_configuration(directory, port, secret)))
    command = [str(programs / "python"), "-m", "synapse.app.homeserver", "--config-path", str(config)]
    with spawn(command, cwd=str(directory), env=_environment(), stdout="null", stderr="null") as child:
        url = f"http://127.0.0.1:{port}"
        _wait_for(url, lambda: child.poll() is None, directory / "homeserver.log")
        yield Server(url, secret)
        child.terminate_tree(grace=5.0)


def _environment() -> dict[str, str]:
    # Its own settings come from the file alone; and it reaches nobody, so that a proxy would only be in the way.
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def _configuration(directory: Path, port: int, secret: str) -> dict[str, Any]:
    """The file, which is YAML to the server, and JSON is YAML."""
    seed = base64.b64encode(secrets.token_bytes(32)).decode().rstrip("=")
    (directory / "signing.key").write_text(f"ed25519 a_test {seed}\n")
    (directory / "log.json").write_text(json.dumps(_logging(directory)))
    limits = ("message", "registration", "joins_per_room", "admin_redaction", "media_create")
    pairs: dict[str, tuple[str, ...]] = {
        "rc_login": ("address", "account", "failed_attempts"),
        "rc_joins": ("local", "remote"),
        "rc_invites": ("per_room", "per_user", "per_issuer"),
    }
    listener = {
        "port": port,
        "bind_addresses": ["127.0.0.1"],
        "type": "http",
        "tls": False,
        "resources": [{"names": ["client", "media"]}],
    }
    return {
        "server_name": "test.local",
        "public_baseurl": f"http://127.0.0.1:{port}/",
        "listeners": [listener],
        "database": {"name": "sqlite3", "args": {"database": str(directory / "homeserver.db")}},
        "log_config": str(directory / "log.json"),
        "media_store_path": str(directory / "media"),
        "max_upload_size": MOST_UPLOAD_BYTES,
        "registration_shared_secret": secret,
        "macaroon_secret_key": secret,
        "form_secret": secret,
        "signing_key_path": str(directory / "signing.key"),
        "trusted_key_servers": [],
        "federation_domain_whitelist": [],
        "report_stats": False,
        # Nobody attacks these passwords, and each test has new ones.
        "bcrypt_rounds": 4,
        "presence": {"enabled": False},
        **{f"rc_{name}": _PLENTY for name in limits},
        **{name: dict.fromkeys(parts, _PLENTY) for name, parts in pairs.items()},
    }


def _logging(directory: Path) -> dict[str, Any]:
    file = {"class": "logging.FileHandler", "filename": str(directory / "homeserver.log")}
    root = {"level": "WARNING", "handlers": ["file"]}
    return {"version": 1, "handlers": {"file": file}, "root": root, "disable_existing_loggers": False}


def _wait_for(url: str, runs: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while runs() and time.monotonic() < deadline:
        try:
            httpx.get(f"{url}/_matrix/client/versions", timeout=START_SECONDS, trust_env=False).raise_for_status()
        except httpx.ConnectError:
            time.sleep(_LOOK_SECONDS)
            continue
        return
    raise AssertionError(f"the homeserver did not start: {log.read_text()[-2000:] if log.exists() else ''}")
