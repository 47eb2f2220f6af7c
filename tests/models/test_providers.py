from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.unmeasured import unmeasured
from trunkline.agents.coder.agent import Coder
from trunkline.agents.coder.settings import resolve
from trunkline.agents.coder.settings_models import compat_keys
from trunkline.base.extras import modules
from trunkline.core.faults import ConfigError
from trunkline.models.providers import PROVIDERS, ModelProvider, ModelSettings, check, make


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("openai", "OPENAI_API_KEY"),
        ("bedrock", "AWS_REGION"),
        ("vertex", "VERTEX_PROJECT_ID"),
    ],
)
def test_what_is_missing_is_named_by_its_variable(provider: str, variable: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(ModelSettings(provider))
    assert caught.value.message == f"{variable} not set"
    assert caught.value.hint


@pytest.mark.parametrize(
    "settings",
    [
        ModelSettings("anthropic", api_key="k"),
        ModelSettings("openai", base_url="http://localhost:11434/v1"),
        ModelSettings("bedrock", region="eu-west-1"),
        ModelSettings("bedrock", profile="work"),
        ModelSettings("vertex", project="p"),
        ModelSettings("vertex", credentials="/file.json"),
        ModelSettings("local"),
        ModelSettings("mock"),
    ],
)
def test_what_is_enough_is_enough(settings: ModelSettings) -> None:
    check(settings)


def test_a_region_may_come_from_amazon_s_other_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    check(ModelSettings("bedrock"))


def test_an_address_elsewhere_needs_a_key_all_the_same() -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY not set"):
        check(ModelSettings("openai", base_url="https://h.example/v1"))


def test_a_provider_that_does_not_exist_is_refused_with_a_list_of_those_that_do() -> None:
    with pytest.raises(ConfigError, match=r"`nosuch`.*`anthropic`"):
        check(ModelSettings("nosuch"))


@pytest.mark.parametrize("key", ["a b", "a\nb", "clé", "a\x00"])
def test_a_key_that_is_none_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(ModelSettings("openai", api_key=key))
    assert "OPENAI_API_KEY does not hold a key" in str(caught.value)
    assert key not in str(caught.value)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not a valid URL"):
        check(ModelSettings("openai", api_key="k", base_url="localhost:11434"))


@pytest.mark.parametrize("provider", ["anthropic", "openai", "mock"])
def test_without_a_name_the_default_model_is_asked(provider: str) -> None:
    model = make(ModelSettings(provider, api_key=" key\n"))
    assert (model.provider, model.name) == (provider, PROVIDERS[provider].model)
    assert model.context_window > 1000
    assert model.images is True


def test_a_line_feed_around_a_key_is_forgiven() -> None:
    check(ModelSettings("openai", api_key="key\n"))


@pytest.mark.parametrize(("name", "provider"), PROVIDERS.items(), ids=list(PROVIDERS))
def test_what_the_entry_of_a_provider_says_is_there(name: str, provider: ModelProvider) -> None:
    module, _, made = provider.made_by.partition(".")
    assert callable(getattr(import_module(f"trunkline.models.{module}"), made))
    assert {*provider.variables, *provider.elsewhere} <= set(ModelSettings.__fields__)
    assert provider.extra is None or provider.extra in modules()
    if provider.speaks is not None:
        assert compat_keys(name) == import_module(f"trunkline.models.{provider.speaks}").COMPAT_KEYS


def test_a_provider_that_is_added_is_one_entry_and_one_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ModelSettings] = []
    toy = ModuleType("trunkline.models.toy")
    toy.ToyModel = made.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, toy.__name__, toy)
    entry = ModelProvider(
        "toy.ToyModel", "bear", {"api_key": "TOY_KEY"}, speaks="openai", told_by=(("TOY_KEY",),), families=("bear",)
    )
    monkeypatch.setitem(PROVIDERS, "toy", entry)
    environ = {"HOME": str(tmp_path), "TOY_KEY": "a-key-for-toys"}
    found = resolve({}, str(tmp_path), environ)
    assert (found.model.provider, found.model.model, found.model.api_key) == ("toy", "bear", "a-key-for-toys")
    assert "`TOY_KEY` is set" in found.why
    assert Coder(found).checked
    make(found.model)
    assert [settings.model for settings in made] == ["bear"]
    with pytest.raises(ConfigError, match="TOY_KEY not set"):
        make(ModelSettings("toy"))


def test_settings_do_not_show_their_secrets() -> None:
    settings = ModelSettings("bedrock", api_key="s3cret", secret_access_key="s3cret", session_token="s3cret")
    assert "s3cret" not in repr(settings)


@pytest.mark.process
def test_making_a_model_does_not_load_the_network_library() -> None:
    program = """
import sys
from trunkline.models.providers import ModelSettings, make
for provider in ("anthropic", "openai", "mock"):
    make(ModelSettings(provider, api_key="k"))
assert not {"httpx", "httpcore", "anyio", "http.client", "urllib.parse"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", program], env=unmeasured(), check=True, timeout=PATIENCE_SECONDS)
