"""The MCP SDK: imported when it is wanted, and quiet."""

from __future__ import annotations

import asyncio
import importlib
import logging

from trunkline.base.extras import adding
from trunkline.core.faults import ConfigError

#: What is used of it. The transports are imported here, too, so that no connection has to wait for them in the loop.
_MODULES = ("mcp", "mcp.client.session", "mcp.client.sse", "mcp.client.streamable_http", "mcp_types", "httpx2")

#: They log every lost connection with a traceback, and at times with the URL. We tell of it ourselves, in one sentence.
_NOISY_LOGGERS = ("mcp", "client", "httpx2", "httpcore2")


async def load(server: str) -> None:
    """Import the SDK for a server, in a thread: it takes half a second.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        for module in _MODULES:
            await asyncio.to_thread(importlib.import_module, module)
    except ImportError as error:
        raise ConfigError(
            f"MCP server `{server}` needs the package `mcp`, which cannot be imported ({error}).",
            hint=adding("coder"),
        ) from error
    for name in _NOISY_LOGGERS:
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.CRITICAL)
