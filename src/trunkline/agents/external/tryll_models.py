"""The models of a Tryll server, as it lists them: which of them answer, and which is taken if nobody names one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trunkline.base.nearest import suggestion
from trunkline.core.faults import ModelError
from trunkline.wires.tryll.messages import ModelInfo, ModelStatus

#: What a server calls models that answer.
_LANGUAGE = "language"
#: What agents run on that a server lists among its models.
_AGENT = "agent"
#: Which model is taken if nobody names one: the more ready, the better.
_READINESS = (
    ModelStatus.LOADED, ModelStatus.LOCAL, ModelStatus.DOWNLOADED, ModelStatus.DOWNLOADING, ModelStatus.ABSENT,
)  # fmt: skip


def pick(models: Iterable[ModelInfo]) -> str:
    """The language model that answers if nobody names one: the one that is most ready; "" if there is none.

    Agents that a server offers as models are for those who ask for them, and always ready.
    """
    found = [model for model in models if model.model_type == _LANGUAGE]
    return min(found, key=lambda model: (model.engine == _AGENT, _readiness(model))).name if found else ""


def language_models(models: Iterable[ModelInfo]) -> list[str]:
    """The names of those that answer."""
    return [model.name for model in models if model.model_type == _LANGUAGE]


def is_missing(model: ModelInfo) -> bool:
    """Whether the model has to be fetched before it can answer."""
    return model.status in (ModelStatus.ABSENT, ModelStatus.DOWNLOADING)


def check_known(name: str, known: Sequence[str]) -> None:
    """See to it that a model is among those that answer.

    Raises:
        ModelError: it is not.
    """
    if name not in known:
        has = f"It has {', '.join(known)}." if known else "It has none at all."
        raise ModelError(f"The server has no language model `{name}`.{suggestion(name, known)}", hint=has)


def _readiness(model: ModelInfo) -> int:
    return _READINESS.index(model.status) if model.status in _READINESS else len(_READINESS)
