"""How fast the language models of this machine answer: as their engine has measured it with the last answer of each in
this process, or as somebody has measured it, which is kept on the disk. What is newer counts."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from typing import Any

from trunkline.base import jsontext, paths, shapes
from trunkline.base.values import Value
from trunkline.models.engines import cost

#: A shorter answer says little: its first token takes as long as all others.
FEWEST_TOKENS = 8
#: In the folder of the models.
FILE = "measured.json"
#: Some hundred bytes for each model.
MAX_BYTES = 1 << 20
#: More were measured long ago, and are forgotten.
MOST_KEPT = 1000

_last: dict[str, ModelSpeed] = {}
#: What was read of the file, and the state in which it was then.
_read: tuple[tuple[str, int, int], Mapping[str, ModelSpeed]] = (("", 0, 0), {})


class ModelSpeed(Value):
    """What was measured of one answer, or of several."""

    tokens_per_second: float
    """Of the answer, from its first token on."""
    read_ms: int
    """For the prompt, before the first token: what the engine had read before is not read again. 0 of several."""
    tokens: int
    """That the answer had."""
    at: float = 0.0
    """When, in seconds since 1970."""


def heard(model: str, timings: Any) -> None:
    """An engine has told how long an answer took, as llama.cpp tells it. What makes no sense is left aside."""
    if not isinstance(timings, Mapping):
        return
    tokens, rate = cost(timings.get("predicted_n")), timings.get("predicted_per_second")
    if tokens >= FEWEST_TOKENS and isinstance(rate, int | float) and isfinite(rate) and rate > 0:
        _last[model] = ModelSpeed(round(float(rate), 1), cost(timings.get("prompt_ms")), tokens, time.time())


def last(model: str) -> ModelSpeed | None:
    """What was measured last of a model, by the name that it was loaded with; None if nothing was."""
    found = [each for each in (_last.get(model), _kept().get(model)) if each is not None]
    return max(found, key=lambda each: each.at, default=None)


def keep(model: str, tokens_per_second: float, tokens: int) -> None:
    """Keep for later, and for other processes, what was measured of a model by answers of so many tokens. If it cannot
    be written, it is not kept."""
    told = ModelSpeed(tokens_per_second, 0, tokens, time.time())
    newest = sorted({**_kept(), model: told}.items(), key=lambda item: item[1].at)[-MOST_KEPT:]
    path = _path()
    with suppress(OSError):
        paths.ensure_dir(os.path.dirname(path))
        with open(f"{path}.{os.getpid()}", "wb") as file:
            file.write(jsontext.dumps({name: shapes.encode(each) for name, each in newest}))
        os.replace(f"{path}.{os.getpid()}", path)


def _path() -> str:
    return os.path.join(paths.cache_dir(), "models", FILE)


def _kept() -> Mapping[str, ModelSpeed]:
    """What was kept. A file that cannot be read is as good as none."""
    global _read
    path = _path()
    try:
        state = os.stat(path)
        now = (path, state.st_mtime_ns, state.st_size)
        if _read[0] != now:
            with open(path, "rb") as file:
                told = jsontext.loads(file.read(MAX_BYTES))
            _read = now, {name: shapes.decode(ModelSpeed, each) for name, each in told.items()}
    except (OSError, ValueError, AttributeError):
        return {}
    return _read[1]
