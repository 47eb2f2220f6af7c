"""What tests of models say of a pool."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.agents.graph.pool import ModelPool
from trunkline.core.faults import Fault
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import InferenceEngine, ModelInfo

#: The real engine, whichever library runs a model.
REAL = InferenceEngine.LLAMA_CPP


def info(pool: ModelPool, name: str) -> ModelInfo:
    (found,) = (each for each in pool.list() if each.name == name)
    return found


async def refusal(action: Any) -> TryllError:
    """What a client of the Tryll wire is told of the fault."""
    with pytest.raises(Fault) as caught:
        await action
    return TryllError.of(caught.value)
