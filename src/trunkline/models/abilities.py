"""What a model can do, by its name: whether it tells its reasoning, sees pictures, and can be told how hard to try.

    of(ModelSettings("openai", "qwen3:8b")).thinks          # True
    of(ModelSettings("openai", "gpt-4o-mini")).images       # True

What is in no table is not known, and what a profile's `compat` says overrules all of it. Asked at every start, before
anything of a model is loaded, so it has to be cheap: no patterns in here.
"""

from __future__ import annotations

from typing import Any

from trunkline.base.values import Value
from trunkline.base.vocabulary import EFFORTS, IMAGE_INPUT
from trunkline.models.providers import PROVIDERS, ModelSettings

#: Claude could not think before 3.7.
_THOUGHTLESS = ("claude-2", "claude-instant", "claude-3-5", "claude-3-haiku", "claude-3-opus", "claude-3-sonnet")

#: Models that tell their reasoning in the Chat Completions format. (OpenAI's own do not.)
_TELL_THOUGHTS = (
    "deepseek-r", "deepseek-v4", "glm-4.5", "glm-4.6", "glm-4.7", "glm-5", "gpt-oss", "kimi-k2-thinking", "kimi-k2.5",
    "kimi-k3", "magistral", "minimax-m", "qwen3", "qwq",
)  # fmt: skip

_SEE = (
    "chatgpt-4o", "claude-", "gemini", "gpt-4-turbo", "gpt-4.1", "gpt-4o", "gpt-5", "gpt-6", "o1", "o3", "o4",
    "pixtral",
)  # fmt: skip
_BLIND = ("claude-2", "claude-instant", "o1-mini", "o1-preview", "o3-mini")

#: Models that are told how hard to try in the Chat Completions format; and those of the same names that refuse it.
_TRY = ("codex-", "gemini-2.5", "gemini-3", "gpt-5", "gpt-6", "gpt-oss", "grok-3-mini", "o1", "o3", "o4")
_DO_NOT_TRY = ("gpt-5-chat", "o1-mini", "o1-preview")

#: Models of OpenAI that answer at once.
_DO_NOT_REASON = ("chatgpt-4o", "gpt-3.5", "gpt-4", "gpt-5-chat")

#: From this version on a Claude decides by itself how much it thinks, refuses to be given a budget for that, and can be
#: told how hard to try.
_ADAPTIVE_SINCE = (4, 7)


class Abilities(Value):
    """What a model can do."""

    thinks: bool = False
    """Whether it tells its reasoning, at least when it is asked to."""
    images: bool | None = None
    """Whether it can be shown pictures; None: nobody knows."""
    efforts: tuple[str, ...] = ()
    """How hard it can be told to try; empty where it takes no word on that."""


def of(settings: ModelSettings) -> Abilities:
    """What is known of a model. A `compat` of the wrong kind is for the model itself to refuse."""
    said = settings.compat
    provider = PROVIDERS.get(settings.provider)
    name = plain(settings.model or (provider.model if provider is not None else ""))
    images = next((sees for word, sees in IMAGE_INPUT.items() if word == said.get("image_input")), None)
    if settings.provider == "mock":
        # It can be shown anything, and repeats what it was told.
        return Abilities(images=images is not False)
    if settings.provider == "local":
        # What runs it takes no pictures, whatever is said of the model.
        return Abilities(thinks=name.startswith(_TELL_THOUGHTS), images=False)
    if provider is not None and provider.speaks == "anthropic":
        thinks, tries = not name.startswith(_THOUGHTLESS), is_adaptive(name)
    else:
        tries = takes_effort(name)
        # Those that can be told how hard to try are OpenAI's reasoning models; there they tell a summary of it.
        thinks = name.startswith(_TELL_THOUGHTS) or (tries and said.get("openai_api_mode") == "responses")
    # Nobody is called blind on account of a name: it may be another's model that is called like it.
    sees = True if name.startswith(_SEE) and not name.startswith(_BLIND) else None
    return Abilities(
        thinks=said.get("supports_thinking", thinks) is True,
        images=sees if images is None else images,
        efforts=_levels(said.get("effort_levels")) if said.get("supports_effort", tries) is True else (),
    )


def _levels(said: Any) -> tuple[str, ...]:
    return tuple(map(str, said)) if isinstance(said, list | tuple) and said else EFFORTS


def plain(model: str) -> str:
    """A name from where its maker's begins: in lower case, without region, seller and path."""
    name = model.lower().rpartition("/")[2]
    at = name.find("claude-")
    return name if at < 0 else name[at:]


def takes_effort(model: str) -> bool:
    """Whether a model is known, by its name, to be told how hard to try in the Chat Completions format."""
    name = plain(model)
    return name.startswith(_TRY) and not name.startswith(_DO_NOT_TRY)


def has_no_reasoning(model: str) -> bool:
    """Whether a model is known, by its name, to have none, so that it refuses to be asked about it."""
    return plain(model).startswith(_DO_NOT_REASON)


def is_adaptive(model: str) -> bool:
    """Whether a Claude, by its name, decides by itself how much it thinks."""
    # claude-sonnet-5-5, claude-opus-4.7, claude-sonnet-5@20261001
    words = plain(model).partition("@")[0].replace(".", "-").split("-")
    numbers = [int(word) for word in words[2:4] if word.isdecimal() and len(word) <= 2]
    if words[0] != "claude" or len(words) < 3 or not words[1].isalpha() or not numbers or not words[2].isdecimal():
        return False
    return (numbers[0], numbers[1] if len(numbers) > 1 else 0) >= _ADAPTIVE_SINCE
