"""A platform needs an entry and a module, and nothing else: a toy goes all the way that Telegram goes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.commands import clean_environment
from trunkline.base.chat_platforms import AT_THE_TERMINAL, PLATFORMS
from trunkline.chat.platforms import made, senders_of
from trunkline.chat.settings import BridgeSettings

ROOT = Path(__file__).parents[2]

#: The folder of a platform: somebody called `ann` says what the configuration names, and leaves.
MODULE = """
import os

from tests.support.chat_platform import LIMITS, MemoryPlatform
from trunkline.chat.credentials import secret
from trunkline.core.faults import ConfigError


def make(table, environ, is_allowed):
    token = secret("toy", table, "token", environ)
    if not token:
        raise ConfigError("There is no token for the toy.")
    assert is_allowed("ann") and not is_allowed("bob")
    return Toy(table["greeting"], token)


class Toy(MemoryPlatform):
    name = "toy"

    def __init__(self, greeting, token):
        super().__init__(LIMITS.replace(edits=False))
        self._greeting, self._token = greeting, token

    async def open(self):
        if self._token != "sesame-sesame":
            raise ConfigError(f"The toy does not take {self._token}.")
        self.says(self._greeting, sender="ann", at=None)
        self.leaves()

    async def send(self, chat, text, **more):
        print(f"to {chat}: {text}" + "; its agent has the token" * ("TOY_TOKEN" in os.environ))
        return await super().send(chat, text, **more)
"""
#: The entry, and after it the commands that are read from standard input, as they would be typed.
PROGRAM = """
import json, sys
from trunkline.base import chat_platforms
from trunkline.base.config_schema import TEXT

chat_platforms.PLATFORMS["toy"] = chat_platforms.PlatformEntry(
    "a toy",
    "toy.platform",
    is_id=str.isalpha,
    ids="those who play have names, as in `toy:ann`",
    example="ann",
    way_in="ask whoever plays, and",
    keys={"greeting": TEXT},
    secrets={"token": "TOY_TOKEN"},
    extra="toys",
    needs=("no_such_blocks",),
)

from click.testing import CliRunner
from trunkline.base.extras import lacking
from trunkline.cli.app import app

for line in sys.stdin:
    arguments, environ = json.loads(line)
    result = CliRunner().invoke(app, arguments, env=environ)
    print(json.dumps([result.exit_code, result.output]))
print(json.dumps(lacking(ModuleNotFoundError(name="no_such_blocks"))))
"""


@pytest.mark.process
def test_a_platform_that_is_added_is_configured_checked_served_and_answered(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "platform.py").write_text(MODULE)
    good, bad = tmp_path / "config" / "config.toml", tmp_path / "bad.toml"
    good.parent.mkdir()
    good.write_text('[bridge.toy]\ngreeting = "hello, toy"\n')
    bad.write_text('[bridge]\nallow = ["toy:1"]\n[bridge.toy]\ngreeting = 1\ntokn = "x"\n')
    right, wrong = {"TOY_TOKEN": "sesame-sesame"}, {"TOY_TOKEN": "guessed-token"}
    commands: dict[str, tuple[list[str], dict[str, str]]] = {
        "help": (["bridge", "--help"], {}),
        "bad": (["config", "check", str(bad)], {}),
        "good": (["config", "check", str(good)], {}),
        "unconfigured": (["bridge", "check"], {"TRUNKLINE_HOME": str(tmp_path / "empty")}),
        "nobody": (["bridge", "check", "--agent", "echo"], {}),
        "shut": (["bridge", "check", "toy", "--agent", "echo", "--allow", "toy:7"], {}),
        "no token": (["bridge", "check", "toy", "--agent", "echo", "--allow", "toy:ann"], {}),
        "wrong token": (["bridge", "check", "toy", "--agent", "echo", "--allow", "toy:ann"], wrong),
        "check": (["bridge", "check", "toy", "--agent", "echo", "--allow", "toy:ann"], right),
        "run": (["bridge", "run", "--agent", "echo", "--allow", "toy:ann"], right),
    }
    environ = clean_environment() | {
        "HOME": str(tmp_path), "TRUNKLINE_HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT), str(ROOT / "src"))),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input="".join(f"{json.dumps(each)}\n" for each in commands.values()),
        env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    *told, lacks = map(json.loads, done.stdout.splitlines())
    codes, said = ({name: each[part] for name, each in zip(commands, told, strict=True)} for part in (0, 1))
    assert "Put agents into a chat: Telegram, Matrix, a toy, or this terminal." in said["help"]
    assert "those who play have names" in said["bad"]
    assert "`bridge.toy.greeting` must be a string" in said["bad"]
    assert "Did you mean `bridge.toy.token`?" in said["bad"]
    assert "or `[bridge.toy]` into" in said["unconfigured"]
    assert 'nobody on toy: ask whoever plays, and write `allow = ["toy:ann"]`' in said["nobody"]
    assert "those who play have names" in said["shut"]
    assert "platform toy: There is no token for the toy." in said["no token"]
    assert "platform toy: The toy does not take [redacted]." in said["wrong token"]
    assert "platform toy: ok" in said["check"]
    assert "to c: hello, toy\n" in said["run"]
    assert {name for name, code in codes.items() if code == 0} == {"help", "good", "check", "run"}
    assert "[toys]" in lacks


@pytest.mark.process
def test_a_bridge_for_one_platform_imports_no_other_one() -> None:
    program = """
import sys
import trunkline.cli.bridge_check, trunkline.cli.bridge_run
from trunkline.chat.platforms import made, senders_of
from trunkline.chat.settings import BridgeSettings
settings = BridgeSettings(platforms={"telegram": {"token": "1:x"}})
made("telegram", settings, senders_of(settings, ("telegram",)))
print(*sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=clean_environment(), capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert PLATFORMS["telegram"].module in loaded
    others = [entry for name, entry in PLATFORMS.items() if name != "telegram"]
    assert [each for each in loaded for entry in others if each.startswith(entry.package) or each in entry.needs] == []


def test_whoever_started_the_bridge_is_let_in_where_they_did_and_nowhere_else() -> None:
    settings = BridgeSettings(allow=("telegram:1",), approvers=("telegram:1",))
    you = f"terminal:{AT_THE_TERMINAL}"
    for names, is_here in ((("telegram",), False), (("telegram", "terminal"), True)):
        senders = senders_of(settings, names)
        assert [senders.allowed(you), senders.may_approve(you), senders.unlimited(you)] == [is_here] * 3
        assert senders.allowed("telegram:1")
        assert not senders.unlimited("telegram:1")


def test_a_platform_is_told_who_of_its_own_people_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    entry = PLATFORMS["matrix"].replace(module=__name__)
    monkeypatch.setitem(PLATFORMS, "matrix", entry)
    monkeypatch.setattr(sys.modules[__name__], "make", lambda *given: asked.append(given), raising=False)
    settings = BridgeSettings(allow=("matrix:@me:here", "telegram:1"), platforms={"matrix": {"user": "@bot:here"}})
    made("matrix", settings, senders_of(settings, ("matrix",)), {"A": "b"})
    ((table, environ, is_allowed),) = asked
    assert (table, environ) == ({"user": "@bot:here"}, {"A": "b"})
    assert [is_allowed(id) for id in ("@me:here", "@you:here", "1")] == [True, False, False]
