"""Model servers on this machine: whether they are there, and what they serve.

Other programs listen on the same ports. Only an answer that has the shape of these servers' answers counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from trunkline.base import http, jsontext
from trunkline.base.values import Value

if TYPE_CHECKING:
    import httpx

#: For all questions to one server together. One on this machine answers in milliseconds, one in the house in tens.
PROBE_SECONDS = 1.0

#: More than a list of models ever has.
MAX_ANSWER_BYTES = 1024 * 1024

#: So many of an Ollama's models, the newest ones, are asked what they can do.
MOST_ASKED = 8

OLLAMA_PORT = 11434
LLAMA_SERVER_URL = "http://127.0.0.1:8080"


class LocalServer(Value):
    """One that answers. `model` is the one to use; None: it has none."""

    name: str
    url: str
    model: str | None


async def find_servers(ollama_url: str, llama_server_url: str) -> list[LocalServer]:
    """Those that answer, Ollama first. All are asked at once; one without an address is not."""
    asked = ((_ollama, ollama_url), (_llama_server, llama_server_url))
    probes = [_within_time(ask, url) for ask, url in asked if url]
    return [server for server in await asyncio.gather(*probes) if server is not None]


def server_url(name: str, environ: Mapping[str, str]) -> str:
    """Where the server is that people call `ollama` or `llama-server`."""
    return ollama_url(environ.get("OLLAMA_HOST", "")) if name == "ollama" else LLAMA_SERVER_URL


def ollama_url(host: str) -> str:
    """Where the Ollama is that `OLLAMA_HOST` means, in any of the forms that Ollama itself takes."""
    parts = urlsplit(host if "://" in host else f"http://{host}")
    try:
        port = parts.port
    except ValueError:
        port = None
    default_port = {"https": 443}.get(parts.scheme, 80) if "://" in host else OLLAMA_PORT
    name = parts.hostname or "127.0.0.1"
    # Where a server listens to everybody, a client goes to itself.
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104  # not bound to, replaced
    shown = f"[{name}]" if ":" in name else name
    return f"{parts.scheme}://{shown}:{port or default_port}{parts.path.rstrip('/')}"


class _Probe:
    """Asks one server, and takes JSON objects only."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client = client
        self.url = url

    async def get(self, path: str) -> Mapping[str, Any] | None:
        return await self._ask("GET", path, None)

    async def post(self, path: str, question: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return await self._ask("POST", path, jsontext.dumps(question))

    async def _ask(self, method: str, path: str, body: bytes | None) -> Mapping[str, Any] | None:
        import httpx

        try:
            async with self._client.stream(method, self.url + path, content=body) as response:
                data = await http.whole(response.aiter_bytes(), MAX_ANSWER_BYTES)
            value = jsontext.loads(data) if response.is_success else None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError):
            return None
        return value if isinstance(value, dict) else None


async def _within_time(ask: Any, url: str) -> LocalServer | None:
    try:
        # The client first: the server is not to pay for what we take to load it, which is long on a busy machine.
        async with http.client(secure=url.startswith("https:")) as client, asyncio.timeout(PROBE_SECONDS):
            server: LocalServer | None = await ask(_Probe(client, url))
            return server
    except (TimeoutError, ValueError):
        # The second: a proxy's address that cannot work. Whoever asks for a model will be told.
        return None


async def _ollama(probe: _Probe) -> LocalServer | None:
    tags = await probe.get("/api/tags")
    if tags is None or not isinstance(tags.get("models"), list | None) or "models" not in tags:
        return None
    names = [name for model in tags["models"] or () if (name := _chat_model(model))]
    model = names[0] if names else None
    # Newest first, as it lists them; an agent is of little use without tools.
    shown = await asyncio.gather(*(probe.post("/api/show", {"model": name}) for name in names[:MOST_ASKED]))
    for name, abilities in zip(names, shown, strict=False):
        if "tools" in _strings((abilities or {}).get("capabilities")):
            model = name
            break
    return LocalServer("Ollama", probe.url, model)


def _chat_model(model: Any) -> str | None:
    """The name of a listed model, unless it is one that only makes vectors."""
    if not isinstance(model, dict) or not isinstance(model.get("name"), str):
        return None
    details = model.get("details")
    families = _strings(details.get("families")) if isinstance(details, dict) else []
    if "embed" in model["name"] or any("bert" in family for family in families):
        return None
    return str(model["name"])


async def _llama_server(probe: _Probe) -> LocalServer | None:
    health, models = await asyncio.gather(probe.get("/health"), probe.get("/v1/models"))
    if health is None or health.get("status") != "ok" or models is None or not isinstance(models.get("data"), list):
        return None
    names = [model["id"] for model in models["data"] if isinstance(model, dict) and isinstance(model.get("id"), str)]
    return LocalServer("llama-server", probe.url, names[0]) if names else None


def _strings(value: Any) -> Sequence[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
