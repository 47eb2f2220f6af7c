"""Switches tracing on, if somebody names where traces go, and off again in bounded time.

    settings = TelemetrySettings.of(os.environ, endpoint_of_the_file)
    with exporting(settings):
        ...

They go to an OTLP receiver over HTTP. The standard's own variables hold for everything else: headers, certificates,
time limits, sampling, attributes of the resource (https://opentelemetry.io/docs/languages/sdk-configuration/).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from trunkline import __version__
from trunkline.base.values import Value
from trunkline.core import tracing
from trunkline.core.starting import lacks_package
from trunkline.telemetry import names

logger = logging.getLogger(__name__)

EXTRA = "otel"
#: The standard's variables that name a receiver: of everything, and of traces alone.
ENDPOINT, TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
#: Those that switch it off, and how.
_OFF = {"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "none"}
_SERVICE, _ATTRIBUTES = "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"
#: Where a receiver takes traces, below its address.
PATH = "/v1/traces"
#: How long the last spans may take to be sent when the process ends. A receiver nearby needs a few milliseconds; one
#: that is away must not keep anybody.
FLUSH_SECONDS = 2.0


class TelemetrySettings(Value):
    """Where traces go."""

    endpoint: str = ""
    """The receiver's address, as the file says it; empty: as the standard's variables say."""
    service_name: str = names.SERVICE

    @classmethod
    def of(cls, environ: Mapping[str, str], endpoint: str = "", service_name: str = "") -> TelemetrySettings | None:
        """What a file says, where no variable says otherwise; None: there are to be no traces."""
        if any(environ.get(name, "").strip().lower() == word for name, word in _OFF.items()):
            return None
        by_variable = any(environ.get(name, "").strip() for name in (ENDPOINT, TRACES_ENDPOINT))
        if not by_variable and not endpoint:
            return None
        return cls("" if by_variable else endpoint, service_name or names.SERVICE)


def begin(settings: TelemetrySettings | None) -> Callable[[], None]:
    """Make spans from now on; gives what ends that, which waits for the last of them, but not for long.

    Raises:
        ConfigError: the packages for it are not installed, and a file asks for it. If only a variable does, which may
            be meant for others, that is logged.
    """
    if settings is None or tracing.tracer is not None:
        return _nothing
    try:
        shut_down = _follow(settings)
    except ModuleNotFoundError as error:
        fault = lacks_package("Tracing", error, EXTRA)
        if settings.endpoint:
            raise fault from None
        logger.warning("no traces are made: %s", fault)
        return _nothing

    def end() -> None:
        tracing.follow(None)
        # It has a time limit of its own, which is longer than anybody waits for a process to end.
        ending = threading.Thread(target=shut_down, name="last spans", daemon=True)
        ending.start()
        ending.join(FLUSH_SECONDS)

    return end


@contextmanager
def exporting(settings: TelemetrySettings | None) -> Iterator[None]:
    """Make spans in the block.

    Raises:
        ConfigError: as `begin`.
    """
    end = begin(settings)
    try:
        yield
    finally:
        end()


def _follow(settings: TelemetrySettings) -> Callable[[], None]:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from trunkline.telemetry.spans import SpanTracer

    endpoint = f"{settings.endpoint.rstrip('/')}{PATH}" if settings.endpoint else None
    resource = Resource.create(_attributes(settings))
    # The process says when it ends: at Python's own end it would be waited for too long.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    tracing.follow(SpanTracer(provider.get_tracer(names.SCOPE, __version__)))
    return provider.shutdown


def _attributes(settings: TelemetrySettings) -> dict[str, str]:
    import os

    found = {names.SERVICE_VERSION: __version__}
    # What is given here would win over what the variables say.
    if not os.environ.get(_SERVICE) and f"{names.SERVICE_NAME}=" not in os.environ.get(_ATTRIBUTES, ""):
        found[names.SERVICE_NAME] = settings.service_name
    return found


def _nothing() -> None:
    pass
