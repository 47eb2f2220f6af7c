"""An agent that needs a model, made also where nobody said which: then it gets the one that is found here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from trunkline.core.faults import NoModel

if TYPE_CHECKING:
    from trunkline.models.discover import ModelChoice

T = TypeVar("T")


async def made(
    make: Callable[[Mapping[str, Any]], T], options: dict[str, Any], environ: Mapping[str, str]
) -> tuple[T, ModelChoice | None]:
    """What `make` makes of the options, and the model that was found, if one had to be.

    `options` have that model then, too; what somebody did say stays.

    Raises:
        ConfigError: it cannot be made, or there is no model here.
    """
    try:
        return make(options), None
    except NoModel as missing:
        from trunkline.models.discover import discover

        found = await discover(environ, provider=missing.provider, base_url=missing.base_url)
        options |= {name: options.get(name) or value for name, value in found.options.items()}
        return make(options), found
