"""Spans that are made in this process, for tests that look at what is told and not at how it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from trunkline.core import tracing
from trunkline.telemetry.spans import SpanTracer


class MadeSpans:
    """The spans that have ended."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def all(self) -> tuple[ReadableSpan, ...]:
        """In the order in which they ended."""
        return self._exporter.get_finished_spans()

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [span.name for span in self.all]

    def __getitem__(self, name: str) -> ReadableSpan:
        """The one span of that name."""
        (found,) = (span for span in self.all if span.name == name)
        return found

    def everything(self) -> str:
        """All that is told."""
        return "".join(span.to_json() for span in self.all)


@contextmanager
def following() -> Iterator[MadeSpans]:
    """Follow what happens in the block."""
    made = MadeSpans()
    tracing.follow(SpanTracer(made.provider.get_tracer("test")))
    try:
        yield made
    finally:
        tracing.follow(None)
        made.provider.shutdown()


def attributes(span: ReadableSpan) -> dict[str, object]:
    """What is told of a span."""
    return dict(span.attributes or {})
