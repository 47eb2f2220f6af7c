"""From the names of platforms to what serves them: the entries of `base.chat_platforms`, with the bridge's settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module

from trunkline.base.chat_platforms import PLATFORMS
from trunkline.chat.platform import MakePlatform, Platform
from trunkline.chat.senders import Senders
from trunkline.chat.settings import BridgeSettings


def made(name: str, settings: BridgeSettings, senders: Senders, environ: Mapping[str, str] = os.environ) -> Platform:
    """The platform of that name, as configured. Its module is imported now.

    Raises:
        ConfigError: something is missing for it.
    """
    make: MakePlatform = import_module(PLATFORMS[name].module).make
    return make(settings.platforms.get(name, {}), environ, lambda id: senders.allowed(f"{name}:{id}"))


def owners(names: Sequence[str]) -> dict[str, str]:
    """Who started the bridge, as a sender of each platform that it was started at."""
    found = {name: PLATFORMS[name].owner for name in names}
    return {name: f"{name}:{owner}" for name, owner in found.items() if owner is not None}


def senders_of(settings: BridgeSettings, names: Sequence[str]) -> Senders:
    """Who may write. Whoever started the bridge may, where they did."""
    own = tuple(owners(names).values())
    approvers = (*settings.approvers, *own) if settings.approvers else ()
    return Senders((*settings.allow, *own), approvers, rate=settings.rate, unlimited=own)
