"""`--metrics` of commands that serve: figures for Prometheus and a probe, at an address of their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from trunkline.base.config_settled import EffectiveConfig
from trunkline.base.hosts import Hosts, is_loopback
from trunkline.base.values import Value
from trunkline.cli import services, serving
from trunkline.core.starting import another_address, cannot_listen

if TYPE_CHECKING:
    import ssl

    from trunkline.base.status_pages import Page, StatusPage, StatusPages

_FLAG = "--metrics"
_PUBLIC = "Add `--public` if they may ask for figures, or say `--metrics 127.0.0.1:PORT`."


def option(service: str) -> Callable[[services.F], services.F]:
    """The flag, for a command that serves."""
    return services.option(
        service,
        "metrics",
        metavar="HOST:PORT",
        help="Tell figures at `/metrics`, for Prometheus, and `/healthz`, for probes.",
    )


def place(found: EffectiveConfig, *, public: bool = False, hint: str = _PUBLIC) -> tuple[str, int] | None:
    """Where figures are told; None for nowhere.

    Args:
        public: whether other machines may ask.
        hint: what is told to whoever names an address that they reach, and did not say that they may.

    Raises:
        ConfigError: it is no address, or others reach it who may not ask.
    """
    if not found["metrics"]:
        return None
    return serving.address(found["metrics"], public=public, hint=hint, flag=_FLAG)


class FiguresDoor(Value):
    """Who may ask for figures, and how."""

    place: tuple[str, int] | None = None
    """None for nobody: then nothing is opened, and nothing told."""
    token: str = ""
    """What those who ask from other machines must say; "" for nothing."""
    tls: ssl.SSLContext | None = None

    def __repr__(self) -> str:
        return f"FiguresDoor(place={self.place!r})"


class FiguresTold:
    """`/metrics` and `/healthz` of a service.

    Args:
        figures: all figures, as text.
        stopping: whether the service is about to end.
    """

    def __init__(
        self, door: FiguresDoor, figures: Callable[[], str | Awaitable[str]], stopping: Callable[[], bool]
    ) -> None:
        self._door = door
        self._figures = figures
        self._stopping = stopping
        self._pages: StatusPages | None = None
        self.address: tuple[str, int] | None = None
        """The real one, once it is open."""

    async def open(self) -> None:
        """Answer from now on, until it is closed.

        Raises:
            ConfigError: the address cannot be had.
        """
        if self._door.place is None:
            return
        from trunkline.base.status_pages import StatusPages

        host, port = self._door.place
        # That it is alive is for everybody to know, and what it does is not.
        pages: dict[str, Page] = {"/metrics": self._all, "/healthz": self._health}
        token = "" if is_loopback(host) else self._door.token
        self._pages = StatusPages(pages, Hosts.of(host), token, for_all=["/healthz"])
        try:
            self.address = await self._pages.listen(host, port, self._door.tls)
        except OSError as error:
            raise cannot_listen(host, port, error, another_address(_FLAG)) from None

    def tell(self) -> None:
        """Say where they are, to people."""
        if self.address is not None:
            serving.told(f"Its figures are at {serving.shown(*self.address, tls=self._door.tls is not None)}/metrics")

    async def close(self) -> None:
        """Answer nobody any more: after the service itself, so that a probe is told that it stops. Idempotent."""
        if self._pages is not None:
            await self._pages.close()

    async def _all(self) -> StatusPage:
        from inspect import isawaitable

        from trunkline.base.prometheus import MEDIA_TYPE
        from trunkline.base.status_pages import StatusPage

        found = self._figures()
        return StatusPage(await found if isawaitable(found) else found, media_type=MEDIA_TYPE)

    def _health(self) -> StatusPage:
        from trunkline.base.status_pages import StatusPage

        return StatusPage("stopping\n", 503) if self._stopping() else StatusPage("ready\n")
