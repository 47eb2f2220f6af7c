"""How a model chooses among the words that may come next."""

from __future__ import annotations

from trunkline.base.values import Value
from trunkline.core.graph.models import SamplingParams

#: How a model samples when neither its catalog entry nor whoever asks says anything.
DEFAULT_SAMPLING = SamplingParams()


def resolve_sampling(defaults: SamplingParams | None, overrides: Value | None) -> SamplingParams:
    """What holds: each field from `overrides`, unless it says nothing there (None, or an empty list), else from the
    model's catalog, else built in.

    `overrides` has the fields of `SamplingParams`.
    """
    base = defaults or DEFAULT_SAMPLING
    if overrides is None:
        return base
    given = {
        field: value for field in overrides.__fields__ if (value := getattr(overrides, field)) not in (None, (), "")
    }
    return base.replace(**given) if given else base
