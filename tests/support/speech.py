"""Sound for tests of what hears and speaks: models pulled once for all runs, silence, noise, and a count of errors."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from functools import cache
from unittest import mock

from tests.conftest import require
from tests.support.local_model import SHARED_CACHE
from trunkline.base.extras import install_hint
from trunkline.core.faults import Fault
from trunkline.models import catalog, fetch
from trunkline.models.installed import missing_extra
from trunkline.models.voice.engines import HEARING_RATE

#: Ordinary sentences, and no names: what is measured is the engines, not their memory.
SENTENCES = (
    "The quick brown fox jumps over the lazy dog.",
    "Please open the northern gate before the merchants arrive at noon.",
    "I would like a cup of tea and a slice of bread.",
    "Winter is coming, and the roads will soon be covered with snow.",
)


@cache
def pulled(name: str) -> str:
    """The file of a model. Where it or its engine cannot be had, the test does not run.

    Kept for all tests of a process, so in a loop of its own.
    """
    entry = catalog.find(name)
    extra = missing_extra(entry.engine)
    require(f"the engine of {name}", extra is None, install_hint(extra or ""))
    with mock.patch.dict(os.environ, {"TRUNKLINE_CACHE": SHARED_CACHE}):
        os.environ.pop("XDG_CONFIG_HOME", None)
        try:
            return asyncio.run(fetch.pull(entry))
        except (Fault, OSError) as error:
            reason = str(error)
    require(f"the model {name}", False, reason)
    raise AssertionError


def silence(seconds: float) -> bytes:
    """Nothing, at the rate of hearing."""
    return bytes(int(seconds * HEARING_RATE) * 2)


def noise(seconds: float, loudness: float, seed: int = 1) -> bytes:
    """White noise of an RMS, at the rate of hearing; the same for the same seed."""
    import numpy as np

    values = np.random.default_rng(seed).normal(0.0, loudness, int(seconds * HEARING_RATE))
    return bytes(values.clip(-32768, 32767).astype("<i2"))


def at_hearing_rate(pcm: bytes, rate: int) -> bytes:
    """Sound of another rate, well enough for words."""
    import numpy as np

    given = np.frombuffer(pcm, "<i2").astype(np.float64)
    places = np.arange(int(len(given) * HEARING_RATE / rate)) * (rate / HEARING_RATE)
    return bytes(np.interp(places, np.arange(len(given)), given).astype("<i2"))


async def collected(sound: AsyncIterator[bytes]) -> bytes:
    """All of a sound."""
    return b"".join([piece async for piece in sound])


def words(text: str) -> list[str]:
    """What counts of a text when it is compared."""
    return re.findall(r"[a-z0-9']+", text.lower())


def word_errors(said: str, heard: str) -> tuple[int, int]:
    """Words that are wrong, missing or too many, and words that were said."""
    wanted, got = words(said), words(heard)
    row = list(range(len(got) + 1))
    for i, word in enumerate(wanted, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(got, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (word != other))
    return row[-1], len(wanted)
