"""What a graph tells of a turn besides its answer, in files: the way that it took, and sound."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from trunkline.base import jsontext
from trunkline.base.printable import printable_line
from trunkline.core.events import Audio, Envelope, Event, Extension
from trunkline.core.faults import ConfigError
from trunkline.core.graph.turns import TURN_DIAGNOSTICS

if TYPE_CHECKING:
    from trunkline.cli.talk_files import WavWriter


class TraceFiles:
    """A sink that keeps what happened in the last turn, and what was said aloud, in files."""

    congested = False

    def __init__(self, record: str | None, sound: str | None) -> None:
        """See to it that the sound can be written.

        Raises:
            ConfigError: it cannot.
        """
        self.problem: ConfigError | None = None
        """Why something could not be kept."""
        self._record = record
        self._sound = sound
        self._sounds: WavWriter | None = None
        if sound is not None:
            from trunkline.cli.talk_files import WavWriter

            self._sounds = WavWriter(sound)

    def show(self, envelopes: Sequence[Envelope]) -> None:
        for envelope in envelopes:
            try:
                self._take(envelope.event)
            except ConfigError as error:
                self.problem = self.problem or error

    def _take(self, event: Event) -> None:
        match event:
            case Audio(data=pcm, rate=rate, channels=channels) if self._sounds is not None:
                from trunkline.wires.tryll.drive import Sound

                self._sounds.write(Sound(pcm, rate, channels))
            case Extension(kind=kind, data=data) if kind == TURN_DIAGNOSTICS and self._record is not None:
                try:
                    with open(self._record, "wb") as file:
                        file.write(jsontext.dumps(dict(data)) + b"\n")
                except OSError as error:
                    raise ConfigError(f"`{self._record}` cannot be written: {error.strerror}.") from None

    async def drain(self) -> None:
        """It is never behind."""

    def close(self, why_mute: str) -> None:
        """Write what the header says. Idempotent. `why_mute` is told if there was no sound to keep.

        Raises:
            ConfigError: something could not be kept.
        """
        if self._sounds is not None:
            self._sounds.close()
            if self._sounds.empty:
                click.echo(printable_line(f"`{self._sound}` was not written: {why_mute}"), err=True)
        if self.problem is not None:
            raise self.problem


def refuse_to_replace(target: str | None, *sources: str | None) -> None:
    """See to it that what is written takes the place of nothing that is read.

    Raises:
        click.UsageError: it would.
    """
    for source in filter(None, sources):
        if target is None or not os.path.exists(target) or not os.path.exists(source):
            continue
        if os.path.samefile(target, source):
            raise click.UsageError(printable_line(f"`{target}` would take the place of `{source}`, which is read."))
