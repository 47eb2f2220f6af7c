"""The models of this machine: what is here, what is being pulled, and how fast each is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base.sizes import size_text
from trunkline.exchange.api.endpoint import ApiCall
from trunkline.exchange.api.models import list_models, list_pulls
from trunkline.exchange.console.page import ConsolePage

#: The kinds of models in their order, with what each is good for.
KINDS = (
    ("llm", "Language", "They answer, and call tools."),
    ("embedding", "Embeddings", "They find texts by their meaning."),
    ("stt", "Speech to text", "They write down what is said."),
    ("tts", "Text to speech", "They say what is written."),
    ("vad", "Voice detection", "They notice when somebody speaks."),
)
#: What other kinds are listed under.
MORE = ("", "Others", "Models of other kinds.")


async def models(call: ApiCall) -> Mapping[str, Any]:
    """`GET /models`."""
    found = await list_models(call)
    known = {kind for kind, _, _ in KINDS}
    groups = [
        (title, about, [each for each in found["models"] if (each["kind"] if each["kind"] in known else "") == kind])
        for kind, title, about in (*KINDS, MORE)
    ]
    return {
        "found": found,
        "groups": [group for group in groups if group[2]],
        "pulls": (await list_pulls(call))["pulls"],
        "size": size_text,
    }


PAGES = (ConsolePage("/models", models, "models.html"),)
