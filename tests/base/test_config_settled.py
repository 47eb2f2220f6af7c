"""What holds for a service, and who says so."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from trunkline.base.config import ConfigFileError, load
from trunkline.base.config_services import SECTIONS, schema_of, settings_of
from trunkline.base.config_settled import DEFAULT, EffectiveConfig, ValueSource

SERVICE = "tryll"


class World:
    """A user and a workspace."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "config" / "config.toml"
        self.user.parent.mkdir()
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.project = self.workspace / "trunkline.toml"
        self.environ = {"TRUNKLINE_HOME": str(folder)}

    def settled(
        self, flags: dict[str, object] | None = None, service: str = SERVICE, **environ: str
    ) -> EffectiveConfig:
        environ |= self.environ
        return EffectiveConfig(service, load(str(self.workspace), environ, schema_of(service)), flags, environ)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_flags_beat_variables_those_a_trusted_workspace_that_the_users_file_and_that_the_defaults(world: World) -> None:
    said = world.settled()
    assert (said["listen"], said.source("listen")) == ("127.0.0.1:9100", DEFAULT)
    world.user.write_text(f'trust = ["{world.workspace}"]\n[tryll]\n listen = "127.0.0.1:1"\n')
    said = world.settled()
    assert (said["listen"], said.source("listen")) == ("127.0.0.1:1", ValueSource("file", str(world.user), 3, 2))
    world.project.write_text('[tryll]\nlisten = "127.0.0.1:2"\n')
    said = world.settled()
    assert (said["listen"], said.source("listen")) == ("127.0.0.1:2", ValueSource("file", str(world.project), 2, 1))
    said = world.settled(TRUNKLINE_TRYLL_LISTEN="127.0.0.1:3")
    assert (said["listen"], str(said.source("listen"))) == ("127.0.0.1:3", "variable TRUNKLINE_TRYLL_LISTEN")
    said = world.settled({"listen": "127.0.0.1:4"}, TRUNKLINE_TRYLL_LISTEN="127.0.0.1:3")
    assert (said["listen"], str(said.source("listen"))) == ("127.0.0.1:4", "flag --listen")


def test_a_workspace_that_nobody_trusts_narrows_the_files_but_not_what_is_said_here_and_now(world: World) -> None:
    world.user.write_text('[tryll]\nmode = "yolo"\npublic = true\n')
    world.project.write_text('[tryll]\nmode = "auto_edit"\npublic = false\ntoken = "theirs"\n')
    said = world.settled()
    assert (said["mode"], said["public"], said["token"]) == ("auto_edit", False, None)
    assert said.source("mode") == ValueSource("file", str(world.project), 2, 1)
    said = world.settled({"public": True}, TRUNKLINE_TRYLL_MODE="yolo")
    assert (said["mode"], said["public"]) == ("yolo", True)
    (warning,) = said.config.all_warnings()
    assert "not followed: `tryll.token`" in warning


def test_a_path_is_relative_to_the_file_that_names_it(world: World) -> None:
    world.user.write_text('[tryll]\nmodels_dir = "models"\nstorage_root = "/lore"\n')
    said = world.settled(TRUNKLINE_TRYLL_TLS_CERT="chain.pem")
    assert (said["models_dir"], said["storage_root"]) == (str(world.user.parent / "models"), "/lore")
    assert said["tls_cert"] == "chain.pem"


def test_other_sections_are_left_alone(world: World) -> None:
    world.user.write_text("[network]\nlisten = 3\n[nonsense]\n[tryll]\npublik = true\n")
    (warning,) = world.settled().config.all_warnings()
    assert "unknown key `tryll.publik`. Did you mean `public`?" in warning
    with pytest.raises(ConfigFileError, match=r"line 2: `network.listen` must be an address"):
        world.settled(service="network")


@pytest.mark.parametrize("value", ["perhaps", "2", "true\n\x1b[2J x"])
def test_a_variable_that_is_not_understood_is_named_and_says_nothing_to_the_terminal(world: World, value: str) -> None:
    with pytest.raises(ConfigFileError) as caught:
        world.settled(TRUNKLINE_TRYLL_PUBLIC=value)
    assert str(caught.value).startswith("TRUNKLINE_TRYLL_PUBLIC: must be true or false, not `")
    assert str(caught.value).isprintable()


def test_an_empty_variable_counts_as_unset(world: World) -> None:
    assert world.settled(TRUNKLINE_TRYLL_TOKEN=" ")["token"] is None


def test_a_secret_is_taken_as_it_is_and_spaces_around_a_word_or_a_number_are_not_meant(world: World) -> None:
    said = world.settled(
        TRUNKLINE_TRYLL_TOKEN=" of clients ", TRUNKLINE_TRYLL_PUBLIC=" 1 ", TRUNKLINE_TRYLL_MODE=" yolo "
    )
    assert (said["token"], said["public"], said["mode"]) == (" of clients ", True, "yolo")
    said = world.settled(
        service="network", TRUNKLINE_NETWORK_RATE_LIMIT=" 7 ", TRUNKLINE_NETWORK_HOSTS=" a.example ,b.example "
    )
    assert (said["rate_limit"], said["hosts"]) == (7, ["a.example", "b.example"])


def test_every_default_is_what_may_stand_there_and_every_variable_means_one_key() -> None:
    found = [(service, key, setting) for service in SECTIONS for key, setting in settings_of(service).items()]
    assert [key for _, key, setting in found if setting.default is not None and setting.problem(setting.default)] == []
    assert [name for name, number in Counter(setting.variable for *_, setting in found).items() if number > 1] == []
    assert all(setting.about for *_, setting in found)


@pytest.mark.parametrize(
    ("service", "text", "secret"),
    [
        ("tryll", 'token = "0123456789"', True),
        ("network", 'admin_key = "0123456789"', True),
        ("network", 'listen = "127.0.0.1:1"', False),
        ("runner", 'secret_file = "launcher-secret"', False),
        ("runner", 'agents.ada.runnerToken = { env = "ADAS_TOKEN" }', False),
        ("runner", 'agents.ada.runnerToken = "0123456789"', True),
        ("bridge", 'telegram.token_env = "TELEGRAM"', False),
        ("bridge", 'telegram.token = "0123456789"', True),
    ],
)
def test_a_file_with_a_secret_that_others_can_read_is_mentioned(
    world: World, service: str, text: str, secret: bool
) -> None:
    world.user.write_text(f"[{service}]\n{text}\n")
    world.user.chmod(0o644)
    assert [
        f"`{world.user}` holds a secret of `{service}`" in each for each in world.settled(service=service).exposed()
    ] == ([True] if secret else [])
    world.user.chmod(0o600)
    assert world.settled(service=service).exposed() == ()
