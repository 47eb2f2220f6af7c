"""Which models there are to choose from: as the provider itself lists them, else those that are known here."""

from __future__ import annotations

import asyncio
from typing import Any

from trunkline.base import http, jsontext
from trunkline.models.endpoint import endpoint
from trunkline.models.prices import PRICES
from trunkline.models.providers import PROVIDERS, ModelSettings

#: Somebody waits in front of a prompt.
OFFERED_SECONDS = 4.0

#: More than the longest list of a reseller has.
MAX_LIST_BYTES = 4 * 1024 * 1024

#: Names of models are words that people type; what is longer, or cannot be shown, is none.
LONGEST_NAME = 200


async def offered(settings: ModelSettings) -> list[str]:
    """The names, in the order of the list. One that does not answer in time has those that are known here."""
    if settings.provider != "local" and PROVIDERS[settings.provider].has_key:
        try:
            async with asyncio.timeout(OFFERED_SECONDS):
                return await _listed(settings)
        except (OSError, ValueError, TimeoutError):
            if settings.base_url is not None:  # whose models they are, nobody knows
                return []
    return known_here(settings.provider)


def known_here(provider: str) -> list[str]:
    """The names of a provider's models, as far as they are known without asking it; none of one that is not known."""
    if provider == "local":
        from trunkline.models import catalog

        return [entry.name for entry in catalog.entries() if entry.kind == "llm"]
    if provider not in PROVIDERS:
        return []
    found = PROVIDERS[provider]
    return [name for name in PRICES if name.startswith(found.families)] or [found.model]


async def _listed(settings: ModelSettings) -> list[str]:
    """What the provider says.

    Raises:
        OSError, ValueError: it says nothing that can be used.
    """
    import httpx

    url, headers = _request(settings)
    try:
        async with (
            http.client(secure=url.startswith("https:")) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            if not response.is_success:
                raise ValueError(f"status {response.status_code}")
            found: Any = jsontext.loads(await http.whole(response.aiter_bytes(), MAX_LIST_BYTES))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise OSError(str(error)) from error
    models = found.get("data") if isinstance(found, dict) else None
    if not isinstance(models, list):
        raise ValueError("no list of models")
    names = [model.get("id") for model in models if isinstance(model, dict)]
    return [name for name in names if isinstance(name, str) and name.isprintable() and 0 < len(name) <= LONGEST_NAME]


def _request(settings: ModelSettings) -> tuple[str, dict[str, str]]:
    if settings.provider == "anthropic":
        from trunkline.models.anthropic import API_VERSION, DEFAULT_BASE_URL

        key = {"x-api-key": settings.api_key} if settings.api_key else {}
        url = endpoint(settings.base_url or DEFAULT_BASE_URL, "/models")
        return f"{url}?limit=1000", {"anthropic-version": API_VERSION, **key}
    from trunkline.models.openai import DEFAULT_BASE_URL as OPENAI_BASE_URL

    key = {"authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
    return endpoint(settings.base_url or OPENAI_BASE_URL, "/models", deep=True), key
