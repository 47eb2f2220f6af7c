"""The names of our traces are those of the conventions."""

from __future__ import annotations

from pathlib import Path

from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.semconv.attributes import error_attributes, service_attributes

from trunkline.models.providers import NAMES
from trunkline.telemetry import names


def known(of: object) -> set[str]:
    return {value for name, value in vars(of).items() if isinstance(value, str) and not name.startswith("_")}


def test_every_name_is_one_of_the_conventions_or_visibly_our_own() -> None:
    ours = {value for value in known(names) if "." in value and " " not in value} | set(names.USAGE.values())
    theirs = known(gen_ai) | known(error_attributes) | known(service_attributes)
    assert len(ours) > 15
    assert {name for name in ours if not name.startswith(("trunkline.", "https:"))} - theirs == set()


def test_operations_are_those_of_the_conventions() -> None:
    theirs = {each.value for each in gen_ai.GenAiOperationNameValues}
    assert {names.CHAT, names.EXECUTE_TOOL, names.INVOKE_AGENT} <= theirs


def test_a_provider_that_the_conventions_know_has_their_name() -> None:
    theirs = {each.value for each in gen_ai.GenAiProviderNameValues}
    told = {ours: names.provider(ours) for ours in NAMES}
    assert told["bedrock"] == "aws.bedrock"
    assert told["vertex"] == "gcp.vertex_ai"
    # Those that run on one's own machine, and those who pass questions on, have no name there.
    assert {name for name in told.values() if name not in theirs} <= {
        "local", "mock", "ollama", "llama-server", "openrouter",
    }  # fmt: skip


def test_every_name_is_in_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "how-to" / "observe.md").read_text(encoding="utf-8")
    ours = {value for value in known(names) if "." in value and " " not in value} | set(names.USAGE.values())
    assert {name for name in ours if f"`{name}`" not in guide} == set()
