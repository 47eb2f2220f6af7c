"""The server end of the Tryll wire. The front door; `server` says how to use it."""

from __future__ import annotations

from trunkline.wires.tryll.serve.server import GRACE_SECONDS, ServerSettings, TryllServer

__all__ = ["GRACE_SECONDS", "ServerSettings", "TryllServer"]
