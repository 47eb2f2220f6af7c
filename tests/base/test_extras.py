"""How a missing part is to be had: with the Python that runs us, whichever environment is active."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

import trunkline
from trunkline.base import extras
from trunkline.base.extras import adding, install_hint, told_elsewhere

ROOT = Path(trunkline.__file__).parents[2]


def test_in_a_checkout_the_sources_are_installed_with_the_extra() -> None:
    assert shlex.split(install_hint("local")) == [sys.executable, "-m", "pip", "install", "-e", f"{ROOT}[local]"]


def test_an_installed_trunkline_asks_for_the_extra_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trunkline, "__file__", str(tmp_path / "lib" / "site-packages" / "trunkline" / "__init__.py"))
    monkeypatch.setattr(sys, "executable", "/with space/python")
    assert install_hint("bedrock") == "'/with space/python' -m pip install 'trunkline[bedrock]'"


def test_an_environment_without_pip_is_filled_by_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trunkline, "__file__", str(tmp_path / "site-packages" / "trunkline" / "__init__.py"))
    monkeypatch.setattr(sys, "executable", "/x/python")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else ModuleType(name).__spec__)
    assert install_hint("coder") == "uv pip install --python /x/python 'trunkline[coder]'"


@pytest.mark.parametrize("root", ["/home/o'hara/my sources", None])
@pytest.mark.parametrize("pip", [True, False])
def test_people_elsewhere_are_told_to_install_the_same_and_not_where(
    monkeypatch: pytest.MonkeyPatch, root: str | None, pip: bool
) -> None:
    monkeypatch.setattr(extras, "_checkout", lambda: root)
    monkeypatch.setattr(sys, "executable", "/home/o'hara/venv/bin/python")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: ModuleType(name) if pip else None)
    told = f"There is no voice. {adding('voice', 'voice-gpl')} It is free."
    assert "/home" in told
    assert told_elsewhere(told) == (
        "There is no voice. Add them with `pip install 'trunkline[voice,voice-gpl]'`. It is free."
    )


def test_a_bundle_takes_no_packages_and_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "_bundled", False)
    assert adding("local").startswith("Add it with `")
    extras.mark_bundle()
    assert adding("local") == "Make the bundle again with the extra `local` installed."
    told = "Make the bundle again with the extras `voice` and `voice-gpl` installed."
    assert adding("voice", "voice-gpl") == told
