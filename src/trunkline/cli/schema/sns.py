"""The network's API, as OpenAPI: what it serves itself."""

from __future__ import annotations

import json

DIRECTIONS = ("both",)


def text(direction: str) -> str:
    """All routes."""
    from trunkline.network.http.app import all_endpoints
    from trunkline.network.http.openapi import document

    return json.dumps(document(all_endpoints()), indent=2, ensure_ascii=False) + "\n"
