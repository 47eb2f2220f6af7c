"""How a model chooses among the words that may come next."""

from __future__ import annotations

from trunkline.base.values import Value


class Sampling(Value):
    """What is asked of a model, beside the prompt. `seed` 0: another one each time; `top_k` 0: no limit."""

    temperature: float = 0.7
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    max_tokens: int = 2048
    seed: int = 0


#: How a model samples when neither its catalog entry nor whoever asks says anything.
DEFAULT_SAMPLING = Sampling()


def resolve_sampling(defaults: Sampling | None, overrides: Value | None) -> Sampling:
    """What holds: each field from `overrides`, unless it is None there, else from the model's catalog, else built in.

    `overrides` has the fields of `Sampling`.
    """
    base = defaults or DEFAULT_SAMPLING
    if overrides is None:
        return base
    given = {field: value for field in overrides.__fields__ if (value := getattr(overrides, field)) is not None}
    return base.replace(**given) if given else base
