"""Traces on their way to a receiver, over HTTP and in protobuf, and how they are switched on and off."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest

from tests.support.fake_agent import FakeAgent
from tests.support.fake_model import FakeModel, words
from tests.support.loop import until
from tests.support.otlp import Receiver, receiving
from trunkline import __version__
from trunkline.agents.echo import EchoAgent
from trunkline.core import tracing
from trunkline.core.approvals import Policy
from trunkline.core.events import ToolFinished, ToolStarted, TurnEnded, UserMessage
from trunkline.core.faults import ConfigError
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.models.asking import asked
from trunkline.models.model import Request
from trunkline.telemetry import exporting
from trunkline.telemetry.exporting import ENDPOINT, FLUSH_SECONDS, TRACES_ENDPOINT, TelemetrySettings
from trunkline.telemetry.spans import MAX_NAME

#: More than the flush may take, and less than the SDK's own limits, on a busy machine.
BOUND_SECONDS = FLUSH_SECONDS + 5.0


@pytest.fixture(autouse=True)
def nobody_follows() -> Iterator[None]:
    yield
    assert tracing.tracer is None


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


async def one_question() -> None:
    async for _ in asked(FakeModel(words("yes")), Request(())):
        pass


@pytest.mark.parametrize(
    ("environ", "file", "expected"),
    [
        ({}, "", None),
        ({}, "http://a:4318", TelemetrySettings("http://a:4318")),
        ({ENDPOINT: "http://b:4318"}, "", TelemetrySettings("")),
        ({TRACES_ENDPOINT: "http://b:4318/x"}, "", TelemetrySettings("")),
        ({ENDPOINT: "http://b:4318"}, "http://a:4318", TelemetrySettings("")),
        ({ENDPOINT: "  "}, "", None),
        ({ENDPOINT: "http://b:4318", "OTEL_SDK_DISABLED": "TRUE"}, "http://a:4318", None),
        ({"OTEL_TRACES_EXPORTER": "none"}, "http://a:4318", None),
    ],
)
def test_variables_count_more_than_the_file(
    environ: dict[str, str], file: str, expected: TelemetrySettings | None
) -> None:
    assert TelemetrySettings.of(environ, file) == expected


async def test_spans_reach_the_receiver_that_a_file_names(receiver: Receiver) -> None:
    with exporting.exporting(TelemetrySettings(f"{receiver.url}/", "night shift")):
        session = await Session.open(EchoAgent(), MemoryLog("s1"), Policy())
        session.submit(UserMessage("hello"))
        await session.at_rest()
        await session.close()
    span = receiver.named("invoke_agent echo")
    assert set(receiver.paths) == {"/v1/traces"}
    assert span.attributes["gen_ai.conversation.id"] == "s1"
    assert span.attributes["gen_ai.usage.output_tokens"] >= 0
    assert 0 < span.end - span.start < BOUND_SECONDS * 10**9
    told = {key: span.resource[key] for key in ("service.name", "service.version")}
    assert told == {"service.name": "night shift", "service.version": __version__}
    assert b"hello" not in b"".join(receiver.bodies)


async def test_names_that_a_program_gives_do_not_keep_other_spans_from_arriving(receiver: Receiver) -> None:
    agent = FakeAgent()
    with exporting.exporting(TelemetrySettings(receiver.url)):
        session = await Session.open(agent, MemoryLog("s1"), Policy())
        session.submit(UserMessage("hello"))
        await until(lambda: agent.busy)
        for call, name in (("c\udcff", "half \ud83d"), ("c2", "x" * 10_000)):
            agent.say(ToolStarted(call, name), ToolFinished(call, name, "success", ""))
        agent.say(TurnEnded("success"))
        await session.at_rest()
        await session.close()
    receiver.wait("invoke_agent fake", "execute_tool half ?", f"execute_tool {'x' * MAX_NAME}")


async def test_the_standards_variables_hold(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT, receiver.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20t")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "by variable")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    with exporting.exporting(TelemetrySettings("", "by file")):
        await one_question()
    span = receiver.named("chat fake")
    assert receiver.headers[0]["authorization"] == "Bearer t"
    assert span.resource["service.name"] == "by variable"
    assert span.resource["deployment.environment"] == "test"


async def test_a_receiver_that_is_away_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = time.monotonic()
    # Nobody listens on the discard port of this machine.
    with exporting.exporting(TelemetrySettings("http://127.0.0.1:9")):
        await one_question()
    assert time.monotonic() - begun < BOUND_SECONDS


async def test_a_receiver_that_refuses_keeps_nobody(receiver: Receiver) -> None:
    receiver.status = 503
    begun = time.monotonic()
    with exporting.exporting(TelemetrySettings(receiver.url)):
        await one_question()
    assert time.monotonic() - begun < BOUND_SECONDS
    assert receiver.bodies


def test_who_follows_already_goes_on_alone(receiver: Receiver) -> None:
    with exporting.exporting(TelemetrySettings(receiver.url)):
        before = tracing.tracer
        with exporting.exporting(TelemetrySettings(receiver.url)):
            assert tracing.tracer is before
        assert tracing.tracer is before


@pytest.fixture
def without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)


def test_a_file_that_asks_for_what_is_not_installed_is_told_how_to_get_it(without_packages: None) -> None:
    with pytest.raises(ConfigError, match=r"Tracing needs a package that is not installed.*\[otel\]"):
        exporting.begin(TelemetrySettings("http://127.0.0.1:9"))


def test_a_variable_that_may_be_meant_for_others_keeps_nothing_from_starting(
    without_packages: None, caplog: pytest.LogCaptureFixture
) -> None:
    exporting.begin(TelemetrySettings())()
    assert "no traces are made: Tracing needs a package" in caplog.text
