"""Switches tracing on for a command, where somebody says where traces go. Imports nothing of it where nobody does.

Programs that a host spawns look at the environment alone: reading files would make their start longer. Services look
at `[otel]` of the configuration, too, and an exchange at that of its own file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

#: The standard's variables; `telemetry.exporting` has them, too, and takes longer to import than to look at them.
VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@contextmanager
def by_environment() -> Iterator[None]:
    """Make spans in the block, if the environment says where they go."""
    if not any(map(os.environ.get, VARIABLES)):
        yield
        return
    from trunkline.telemetry.exporting import TelemetrySettings, exporting

    with exporting(TelemetrySettings.of(os.environ)):
        yield


@contextmanager
def by_configuration() -> Iterator[None]:
    """Make spans in the block, if the environment or the configuration says where they go.

    Raises:
        ConfigError: a file cannot be used, or the packages for it are not installed.
    """
    from trunkline.cli import serving
    from trunkline.core import configuration

    found = configuration.settled("otel")
    for warning in found.config.all_warnings():
        # Those about the rest of the files, the service itself tells.
        if "`otel" in warning:
            serving.told(warning)
    if not found["endpoint"]:
        with by_environment():
            yield
        return
    from trunkline.telemetry.exporting import TelemetrySettings, exporting

    with exporting(TelemetrySettings.of(os.environ, found["endpoint"], found["service_name"])):
        yield
