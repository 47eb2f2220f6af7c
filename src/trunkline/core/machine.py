"""The models of this machine that are no agents, as the faces to the world see them: what embeds, hears and speaks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Literal, Protocol

from trunkline.base.values import Value
from trunkline.core.events import Audio

#: What a model is for.
ModelKind = Literal["embedding", "stt", "tts"]


class Embedded(Value):
    """Texts as vectors of length 1, in their order."""

    vectors: Sequence[Sequence[float]]
    tokens: int | None = None
    """Of all texts together; None: nobody has counted them."""


class Heard(Value):
    """What was said in a part of a sound, from one second of it to another."""

    start: float
    end: float
    text: str


class MachineModels(Protocol):
    """They are loaded when they are first used, and stay for a while."""

    def names(self) -> Sequence[str]:
        """Those that are here, without loading any."""

    def find(self, model: str, kind: ModelKind) -> str:
        """The model that a client means: by its name, with or without `model:` in front, or by OpenAI's name of such a
        model, which means the first one that is here.

        Raises:
            ModelError: there is none; the text says how to get one.
        """

    async def embed(self, name: str, texts: Sequence[str]) -> Embedded:
        """Texts as vectors.

        Raises:
            Fault: it did not work.
        """

    def transcribe(
        self, name: str, sound: Audio, *, prompt: str = "", language: str = "", segmented: bool = False
    ) -> AsyncGenerator[Heard, None]:
        """What is said in a sound: as one part, or `segmented`, which tells when it was said. Parts without words are
        left out.

        Args:
            prompt: words that are expected.
            language: the one that is spoken, as its code; empty: nobody knows.

        Raises:
            BadAudio: the sound is none that can be heard.
            Unsupported: the model does not know the language.
            Fault: it did not work.
        """

    def speak(
        self, name: str, text: str, *, speed: float = 1.0, rate: int | None = None
    ) -> AsyncGenerator[Audio, None]:
        """The sound of a text, in pieces as they are made; at a rate of one's own, if one is named.

        Raises:
            Fault: it did not work.
        """

    async def close(self) -> None:
        """Let go of all that is loaded. Idempotent."""
