"""The file of an exchange: what it says, and what is wrong with it."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.base.config import load
from trunkline.base.config_file import TomlFile
from trunkline.base.config_schema import ANY
from trunkline.core.faults import ConfigError
from trunkline.exchange import config, config_secrets
from trunkline.exchange.config_schema import OWN
from trunkline.exchange.settings import AgentBudget, AgentSettings, ExchangeSettings, WireSettings

WHOLE = """\
[exchange]
listen = "127.0.0.1:4401"
home = "home"
hosts = ["box.example"]
webhook = "https://hooks.example/x"
approvals_expire = "24h"
idle_after = "5m"

[agents.helper]
agent = "coder"
workspace = "project"
mode = "default"
allow = ["Read", "Grep", "Glob"]
description = "Works on my project"
model = "some-model"
[agents.helper.budget]
tokens_per_day = 2_000_000
usd_per_day = 5.0
turns_per_hour = 60
seconds_per_turn = 900
[agents.player]
agent = "scripted:play.yaml"
[agents.smith]
agent = "graph:smith"
models_dir = "models"

[wires.tryll]
listen = "127.0.0.1:9100"
agents = ["helper"]
[wires.telegram]
agent = "helper"

[people.ana]
token_env = "ANA_TOKEN"
role = "admin"
[people.bo]
token_sha256 = "AA00000000000000000000000000000000000000000000000000000000000000"
"""

KEYRING = {"ana": "ana's other token", "bot": "1:the-bots-token", "hook": "https://example.org/hook-of-mine"}
ENVIRON = {"ANA_TOKEN": "ana's token", "HOME": "/home/ana"}


def read(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> ExchangeSettings:
    path = tmp_path / "trunkline.toml"
    path.write_text(text, encoding="utf-8")
    return config.read(str(path), ENVIRON if environ is None else environ, in_keyring)


def in_keyring(name: str) -> str:
    if name not in KEYRING:
        raise ConfigError("There is no such entry.", hint="Put it there.")
    return KEYRING[name]


def problems(tmp_path: Path, text: str) -> list[tuple[int | None, str | None, str]]:
    with pytest.raises(config.WrongFile) as caught:
        read(tmp_path, text)
    return [(problem.line, problem.key, problem.problem) for problem in caught.value.problems]


def test_a_file_says_everything_that_an_exchange_is_told(tmp_path: Path) -> None:
    found = read(tmp_path, WHOLE)
    assert (found.path, found.home) == (str(tmp_path / "trunkline.toml"), str(tmp_path / "home"))
    assert (found.listen, found.hosts, found.webhook) == (
        ("127.0.0.1", 4401), ("box.example",), "https://hooks.example/x",
    )  # fmt: skip
    assert (found.approvals_expire_seconds, found.evict_seconds) == (86400.0, 300.0)
    assert found.agents["helper"] == AgentSettings(
        "helper",
        "coder",
        str(tmp_path / "project"),
        "default",
        ("Read", "Grep", "Glob"),
        "Works on my project",
        AgentBudget(2_000_000, 5.0, 60, 900),
        {"model": "some-model"},
    )
    assert found.agents["player"].agent == f"scripted:{tmp_path / 'play.yaml'}"
    assert found.agents["smith"].options == {"models_dir": str(tmp_path / "models")}
    assert found.wires["tryll"] == WireSettings("tryll", ("helper",), {"listen": "127.0.0.1:9100"})
    assert found.wires["telegram"] == WireSettings("telegram", ("helper",), {"agent": "helper"})
    ana, bo = found.people["ana"], found.people["bo"]
    assert (ana.role, ana.token_sha256) == ("admin", hashlib.sha256(b"ana's token").hexdigest())
    assert (bo.role, bo.token_sha256) == ("talker", "aa" + "0" * 62)


def test_secrets_are_in_the_environment_or_in_the_keyring(tmp_path: Path) -> None:
    text = "[exchange]\nwebhook_keyring = 'hook'\n[people.ana]\ntoken_keyring = 'ana'\n"
    found = read(tmp_path, f"{text}[wires.telegram]\ntoken_keyring = 'bot'\n[wires.tryll]\ntoken_env = 'ANA_TOKEN'\n")
    assert found.people["ana"].token_sha256 == hashlib.sha256(b"ana's other token").hexdigest()
    assert found.webhook == KEYRING["hook"]
    assert config_secrets.named(found.wires["telegram"], ENVIRON) == {"token": "1:the-bots-token"}
    assert config_secrets.named(found.wires["tryll"], ENVIRON) == {"token": "ana's token"}
    assert set(found.kept) == set(KEYRING.values())
    assert "the-bots-token" not in repr(found) + repr(found.wires["telegram"])


def test_it_is_known_which_variables_agents_must_not_have(tmp_path: Path) -> None:
    environ = {"A": "a", "B": "b", "C": "c", "D": "d", "E": "e"}
    text = "[exchange]\nwebhook_env = 'A'\n[people.ana]\ntoken_env = 'B'\n[wires.telegram]\n[wires.network]\n"
    text += "admin_key_env = 'C'\n[wires.runner.agents.ada]\nagentId = 'c1'\nrunnerToken = {env = 'D'}\n"
    found = read(tmp_path, f"{text}llm = {{apiKey = {{env = 'E'}}}}\n", environ)
    # Keys of models stay: agents find them there as well.
    assert set(found.variables) == {
        "A", "B", "C", "D", "TELEGRAM_BOT_TOKEN", "ADMIN_API_KEY", "ETHERSCAN_API_KEY", "RUNNER_LAUNCHER_SECRET",
    }  # fmt: skip


def test_what_is_left_out_is_as_people_expect_it(tmp_path: Path) -> None:
    found = read(tmp_path, "[agents.e]\nagent = 'echo'\n", {"TRUNKLINE_HOME": str(tmp_path / "state")})
    assert found.home == str(tmp_path / "state" / "exchange")
    assert found.listen == ("127.0.0.1", 4400)
    assert found.approvals_expire_seconds is None
    assert found.agents["e"] == AgentSettings("e", "echo", str(tmp_path))


def test_a_wire_without_agents_is_everybodys_and_one_with_an_empty_list_nobodys(tmp_path: Path) -> None:
    assert read(tmp_path, "[wires.tryll]\n").wires["tryll"].agents is None
    assert read(tmp_path, "[wires.tryll]\nagents = []\n").wires["tryll"].agents == ()


def test_a_bundled_script_is_no_file(tmp_path: Path) -> None:
    assert read(tmp_path, "[agents.t]\nagent = 'scripted:tour'\n").agents["t"].agent == "scripted:tour"


RUNNER = "[wires.runner.agents.ada]\nagentId = 'c1'\n"


def test_the_files_of_a_runner_lie_beside_the_file(tmp_path: Path) -> None:
    text = f"{RUNNER}runnerToken = {{env = 'ANA_TOKEN'}}\nlog = 'ada.jsonl'\n[wires.runner.agents.ada.prompts]\n"
    text += "system = 'who.md'\nuser = {file = 'what'}\nappend = 'Be brief.'\nprofile = 'optimization'\n"
    ada = read(tmp_path, text).wires["runner"].keys["agents"]["ada"]
    assert ada["log"] == str(tmp_path / "ada.jsonl")
    assert ada["prompts"] == {
        "system": {"file": str(tmp_path / "who.md")}, "user": {"file": str(tmp_path / "what")}, "append": "Be brief.",
        "profile": "optimization",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        ("[exchange]\nlisten = '127.0.0.1:1'\nlitsen = 1\n", 3, "exchange.litsen", "unknown key"),
        ("[exchnage]\nlisten = '127.0.0.1:1'\n", 1, "exchnage", "unknown key"),
        ("[agents.a]\nagent = 'echo'\nmodle = 'x'\n", 3, "agents.a.modle", "unknown key"),
        ("[agents.a]\nagent = 'echo'\n[agents.a.budget]\nturns = 1\n", 4, "agents.a.budget.turns", "unknown key"),
        ("[wires.trill]\n", 1, "wires.trill", "unknown key"),
        ("[wires.network]\nmetrics = '127.0.0.1:0'\n", 2, "wires.network.metrics", "unknown key"),
        ("[wires.runner]\nmetrics = '127.0.0.1:0'\n", 2, "wires.runner.metrics", "unknown key"),
        ("[exchange]\nlisten = 4400\n", 2, "exchange.listen", "an address such as"),
        ("[exchange]\napprovals_expire = 3\n", 2, "exchange.approvals_expire", "a duration such as"),
        ("[agents.a]\nworkspace = '.'\n", 1, "agents.a", "needs `agent`"),
        ("[agents.a]\nagent = 'codr'\n", 2, "agents.a.agent", "no such agent"),
        ("[agents.a]\nagent = 'graph:'\n", 2, "agents.a.agent", "names nothing after the colon"),
        ("[agents.a]\nagent = 'coder'\nallow = ['Raed']\n", 3, "agents.a.allow", "holds `Raed`"),
        ("[agents.a]\nagent = 'coder'\napi_key = 'sk-1'\n", 3, "agents.a.api_key", "is a secret"),
        ("[agents.a]\nagent = 'coder'\nmode = 'wild'\n", 3, "agents.a.mode", "must be one of"),
        ("[agents.a.budget]\ntokens_per_day = -1\n", 2, "agents.a.budget.tokens_per_day", "from 1 on"),
        ("[agents.a.budget]\nseconds_per_turn = nan\n", 2, "agents.a.budget.seconds_per_turn", "above 0"),
        ("[agents.'a/b']\nagent = 'echo'\n", 1, 'agents."a/b"', "must begin with a letter"),
        ("[wires.tryll]\nagents = ['helper']\n", 2, "wires.tryll.agents", "no such agent here"),
        ("[wires.telegram]\nagent = 'helper'\n", 2, "wires.telegram.agent", "no such agent here"),
        ("[wires.telegram]\ntoken = '1:x'\n", 2, "wires.telegram.token", "is a secret"),
        ("[wires.tryll]\ntoken = 'x'\n", 2, "wires.tryll.token", "is a secret"),
        ("[wires.tryll]\ntoken_env = 'NOT_THERE'\n", 2, "wires.tryll.token_env", "`NOT_THERE`, which is not set"),
        ("[wires.runner]\nsecret = 'x'\n", 2, "wires.runner.secret", "is a secret"),
        ("[wires.runner]\nagent = 'helper'\n", 2, "wires.runner.agent", "no such agent here"),
        (f"{RUNNER}runnerToken = 'rnr_x'\n", 3, "wires.runner.agents.ada.runnerToken", "is a secret"),
        (f"{RUNNER}runnerToken = {{env = 'NONE'}}\n", 3, "wires.runner.agents.ada.runnerToken", "`NONE`, which is not"),
        (RUNNER, 1, "wires.runner.agents.ada", "needs `runnerToken`"),
        (
            f"{RUNNER}runnerToken = {{env = 'ANA_TOKEN'}}\nbrain = {{kind = 'agent', name = 'coder'}}\n",
            4,
            "wires.runner.agents.ada.brain.name",
            "no such agent here",
        ),
        (
            f"{RUNNER}runnerToken = {{env = 'ANA_TOKEN'}}\nllm = {{apiKey = 'sk-1'}}\n",
            4,
            "wires.runner.agents.ada.llm.apiKey",
            "is a secret",
        ),
        ("[people.ana]\nrole = 'admin'\n", 1, "people.ana", "needs `token_env`, `token_keyring` or"),
        ("[people.ana]\ntoken_keyring = 'nobody'\n", 2, "people.ana.token_keyring", "`nobody`, which is not available"),
        (
            "[people.ana]\ntoken_env = 'ANA_TOKEN'\ntoken_keyring = 'ana'\n",
            3,
            "people.ana.token_keyring",
            "one too many: there is `token_env`",
        ),
        (
            "[wires.telegram]\ntoken_env = 'ANA_TOKEN'\ntoken_keyring = 'bot'\n",
            3,
            "wires.telegram.token_keyring",
            "one too many: there is `token_env`",
        ),
        ("[people.ana]\ntoken = 'x'\n", 2, "people.ana.token", "is a secret"),
        ("[people.ana]\ntoken_env = 'NOT_THERE'\n", 2, "people.ana.token_env", "`NOT_THERE`, which is not set"),
        ("[people.ana]\ntoken_sha256 = 'abc'\n", 2, "people.ana.token_sha256", "64 hexadecimal digits"),
        ("[people.ana]\ntoken_env = 'ANA_TOKEN'\nrole = 'king'\n", 3, "people.ana.role", "must be one of"),
        ("[people]\nana = 3\n", 2, "people.ana", "must be a table"),
        ("agents = 3\n", 1, "agents", "must be a table"),
        ("[exchange\n", 1, None, "is not TOML"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_its_key(
    tmp_path: Path, text: str, line: int, key: str, words: str
) -> None:
    (found,) = problems(tmp_path, text)
    assert found[:2] == (line, key)
    assert words in found[2]


def test_all_that_is_wrong_is_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = problems(tmp_path, "[agents.a]\nagent = 'codr'\n[people.ana]\ntoken_env = 'NOT_THERE'\n")
    assert [line for line, _, _ in found] == [2, 4]


def test_two_people_with_one_token_cannot_be_told_apart(tmp_path: Path) -> None:
    text = "[people.ana]\ntoken_env = 'ANA_TOKEN'\n[people.bo]\ntoken_env = 'ANA_TOKEN'\n"
    assert problems(tmp_path, text)[0][:2] == (3, "people.bo")


def test_no_secret_of_the_file_is_repeated_in_what_is_said_of_it(tmp_path: Path) -> None:
    with pytest.raises(config.WrongFile) as caught:
        read(tmp_path, "[people.ana]\ntoken = 'tell-nobody'\n")
    assert "tell-nobody" not in str(caught.value)


def test_a_file_that_is_not_there_is_told_with_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(config.WrongFile, match="does not exist") as caught:
        config.read(str(tmp_path / "none.toml"), ENVIRON)
    assert "trunkline init" in str(caught.value)


def test_what_was_probably_meant_is_told(tmp_path: Path) -> None:
    text = "[agents.helper]\nagent = 'echo'\n[wires.tryll]\nagents = ['helpr']\n"
    with pytest.raises(config.WrongFile, match="Did you mean `helper`"):
        read(tmp_path, text)
    with pytest.raises(config.WrongFile, match=r"Did you mean `exchange\.listen`"):
        read(tmp_path, "[exchange]\nlitsen = '127.0.0.1:1'\n")


def test_a_file_with_very_many_mistakes_is_told_of_in_few_lines(tmp_path: Path) -> None:
    text = "[exchange]\n" + "".join(f"key{number} = 1\n" for number in range(500))
    with pytest.raises(config.WrongFile) as caught:
        read(tmp_path, text)
    assert len(str(caught.value).splitlines()) == config.MOST_TOLD + 1
    assert len(caught.value.problems) == 500


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab:$\0é", max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from(["exchange", "agents", "wires", "people"]),
        st.dictionaries(
            st.sampled_from(["listen", "home", "tryll", "telegram", "runner", "ana"]),
            _VALUES
            | st.dictionaries(
                st.sampled_from(["agent", "agents", "token_env", "token_sha256", "budget", "listen", "allow"]), _VALUES
            ),
        ),
    )
)
def test_any_table_is_read_or_refused_with_reasons(table: dict[str, dict[str, object]]) -> None:
    found = config.checked(TomlFile("/x/trunkline.toml", dict(table), ""), ENVIRON)
    assert isinstance(found, ExchangeSettings) or found


def test_the_documentation_has_every_key_and_its_example_can_be_used(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "exchange-file.md").read_text(encoding="utf-8")
    example = page.partition("```toml\n")[2].partition("```")[0]
    assert read(tmp_path, example).agents["helper"].budget.turns_per_hour == 60
    schema: Any = OWN
    agent, person = schema["agents"][ANY], schema["people"][ANY]
    keys = {*schema["exchange"], *agent, *agent["budget"], *person, *schema["wires"]} - {"api_key", "token"}
    assert not {key for key in keys if not re.search(rf"\b{key}\b", page)}


def test_an_agent_that_works_beside_the_file_of_an_exchange_says_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "trunkline.toml").write_text(WHOLE, encoding="utf-8")
    found = load(str(tmp_path), {"HOME": str(tmp_path / "home")})
    assert not found.all_warnings()
    assert not any(found.refused.values())


def test_what_a_file_says_of_its_cluster_needs_nothing_of_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "trunkline.toml"
    cluster = '[cluster]\nnats = "nats://127.0.0.1:4222"\npostgres_env = "ROWS"\nnode = "a"\n'
    path.write_text(f'{cluster}[people.ana]\ntoken_env = "NOT_SET_HERE"\n')
    with pytest.raises(config.WrongFile, match="NOT_SET_HERE"):
        config.read(str(path), {"ROWS": "postgresql://127.0.0.1/rows"})
    found = config.read_cluster(str(path), {"ROWS": "postgresql://127.0.0.1/rows"})
    assert found is not None
    assert (found.node, found.nats, found.postgres) == ("a", ("nats://127.0.0.1:4222",), "postgresql://127.0.0.1/rows")
    with pytest.raises(config.WrongFile, match=r":3:1: `cluster.postgres_env` names `ROWS`, which is not set"):
        config.read_cluster(str(path), {})
    path.write_text("[exchange]\n")
    assert config.read_cluster(str(path), {}) is None
    with pytest.raises(config.WrongFile, match="does not exist"):
        config.read_cluster(str(tmp_path / "none.toml"), {})
