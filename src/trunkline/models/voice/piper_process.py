"""Piper, as a process of its own: `python -m trunkline.models.voice.piper_process MODEL.onnx THREADS`.

Piper is under the GPL, version 3 or later, and this program under the MIT licence: this module alone uses it, in a
process that nothing else runs in.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from trunkline.base import jsontext
from trunkline.models.onnx import session_options
from trunkline.models.voice import child


class _Stoppable:
    """An onnxruntime session whose runs can be ended by another thread."""

    def __init__(self, session: Any, fresh: Any) -> None:
        self._session = session
        self._fresh = fresh
        self.options = fresh()

    def renew(self) -> None:
        """Forget that it was stopped."""
        self.options = self._fresh()

    def run(self, outputs: Any, inputs: Any) -> Any:
        return self._session.run(outputs, inputs, self.options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class Piper:
    """A `Speaker`."""

    def __init__(self, path: str, threads: int) -> None:
        import onnxruntime  # type: ignore[import-untyped]  # it has no stubs
        from piper import PiperVoice
        from piper.config import PiperConfig

        with open(f"{path}.json", "rb") as file:
            config = PiperConfig.from_dict(jsontext.loads(file.read()))
        session = onnxruntime.InferenceSession(path, session_options(threads), providers=["CPUExecutionProvider"])
        self._session = _Stoppable(session, onnxruntime.RunOptions)
        self._voice = PiperVoice(session=self._session, config=config)
        self._speakers = max(1, config.num_speakers)
        # Relative to the voice's own pace.
        self._pace = float(config.length_scale)
        self.sample_rate = int(config.sample_rate)
        # The first sentence takes longer than all others: what it needs is loaded with it.
        for _ in self.say("Yes.", 0, 1.0):
            pass

    def say(self, text: str, speaker: int, speed: float) -> Iterator[bytes]:
        """One piece of sound per sentence."""
        self._session.renew()
        return self._sentences(text, speaker, speed)

    def _sentences(self, text: str, speaker: int, speed: float) -> Iterator[bytes]:
        from piper import SynthesisConfig

        config = SynthesisConfig(
            speaker_id=speaker if 0 <= speaker < self._speakers and self._speakers > 1 else None,
            length_scale=self._pace / speed,
        )
        # Double brackets hold phonemes, to Piper; to everybody else they are brackets.
        for chunk in self._voice.synthesize(text.replace("[[", "[ ["), config):
            yield chunk.audio_int16_bytes

    def stop(self) -> None:
        """End the sentence that is being computed, after the step of the network that it is at."""
        self._session.options.terminate = True


if __name__ == "__main__":
    child.serve(lambda: Piper(sys.argv[1], int(sys.argv[2])))
