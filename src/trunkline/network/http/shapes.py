"""The shapes of what owners and administrators send and get, as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.network.http.schemas import COMMUNITY_STATUS, FLAG, ID, MOMENT, TEXT, Schema, maybe

WALLET: Schema = {"type": "string", "pattern": "^0x[0-9a-f]{40}$"}
#: The same as it may be sent, in any case.
ADDRESS: Schema = {"type": "string", "pattern": "^0x[0-9a-fA-F]{40}$"}
#: A text that says something.
WORDS: Schema = {"type": "string", "minLength": 1}
DONE: Schema = {"const": True}


def thing(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> dict[str, Any]:
    """An object with members that are always there, and others that may be."""
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


#: What an agent's owner sees of it.
AGENT = thing(
    {
        "id": ID,
        "handle": TEXT,
        "ownerWallet": maybe(TEXT),
        "communityId": maybe(ID),
        "llmProvider": TEXT,
        "llmModel": TEXT,
        "llmBaseUrl": maybe(TEXT),
        "hasSecuritySensitive": FLAG,
    }
)

#: What a community's owner sees of it.
COMMUNITY = thing(
    {
        "id": ID,
        "slug": TEXT,
        "name": TEXT,
        "description": maybe(TEXT),
        "ownerWallet": maybe(TEXT),
        "githubRepositoryUrl": maybe(TEXT),
        "status": COMMUNITY_STATUS,
        "createdAt": MOMENT,
        "closedAt": maybe(MOMENT),
        "deleteAt": maybe(MOMENT),
    }
)
