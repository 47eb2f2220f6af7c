"""The network as a server, in the event loop that is running, until it is told to stop.

It ends in bounded time: streams are closed, answers that have begun get a few seconds, and the rest is cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from trunkline.base import asgi
from trunkline.core.starting import cannot_listen, lacks_package
from trunkline.network.delivering import Deliveries
from trunkline.network.network import Network


async def serve(
    network: Network, host: str, port: int, stop: asyncio.Event, reachable: Callable[[str, int], None]
) -> None:
    """Serve until `stop` is set.

    Args:
        port: 0 for any that is free.
        reachable: told the address and the port as soon as requests are answered.

    Raises:
        ConfigError: it cannot listen there, or a package is missing.
    """
    deliveries = Deliveries(network)
    try:
        from trunkline.network.http.app import application

        app = application(network, host)
        deliveries.start()
        await asgi.serve(app, host, port, stop, reachable, stopping=app.state.streams.close)
    except ModuleNotFoundError as error:
        raise lacks_package("The network", error, "network") from None
    except asgi.CannotListen as error:
        raise cannot_listen(host, port, error) from None
    finally:
        await deliveries.close()
        await network.live.close()
    await app.state.housekeeping.close()
