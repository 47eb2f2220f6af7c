"""`trunkline network serve`: its options, its environment, and its life as a process."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli import network, serving
from trunkline.cli.figures import FiguresDoor
from trunkline.core.configuration import settled
from trunkline.core.faults import ConfigError
from trunkline.network.configured import settings_from
from trunkline.network.network import NetworkSettings


def test_an_address_that_others_reach_needs_to_be_meant() -> None:
    assert serving.address("127.0.0.1:0", public=False) == ("127.0.0.1", 0)
    assert serving.address("localhost:80", public=False) == ("localhost", 80)
    assert serving.address("[::1]:80", public=False) == ("::1", 80)
    assert serving.address("0.0.0.0:80", public=True) == ("0.0.0.0", 80)
    for reachable in ("0.0.0.0:80", "[::]:80", "example.org:80", "192.168.1.1:80"):
        with pytest.raises(ConfigError, match=r"Other machines can reach .* `--public`"):
            serving.address(reachable, public=False)
    for wrong in ("", "80", ":80", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536"):
        with pytest.raises(ConfigError, match="is not an address"):
            serving.address(wrong, public=True)


def settings(environ: dict[str, str]) -> NetworkSettings:
    home = os.path.join(environ.get("TRUNKLINE_HOME", ""), "network")
    return settings_from(settled("network", None, environ, workspace=None), home)


def test_the_environment_is_understood_or_refused(tmp_path: Path) -> None:
    home = {"TRUNKLINE_HOME": str(tmp_path)}
    plain = settings(home)
    assert (plain.admin_key, plain.app_origin, plain.writes_per_minute) == (None, None, 120)
    assert plain.home == str(tmp_path / "network")
    said = settings(
        home
        | {
            "ADMIN_API_KEY": "key",
            "SNS_APP_ORIGIN": "https://App.Example:8443/",
            "TRUNKLINE_NETWORK_RATE_LIMIT": "off",
            "TRUNKLINE_EXPLORER_URL": "http://127.0.0.1:9/v2/api",
            "ETHERSCAN_API_KEY": "secret",
        }
    )
    assert said.app_origin == "https://app.example:8443"
    assert (said.admin_key, said.writes_per_minute, said.explorer_key) == ("key", None, "secret")
    assert said.explorer_url == "http://127.0.0.1:9/v2/api"
    assert settings({"TRUNKLINE_NETWORK_RATE_LIMIT": "7", **home}).writes_per_minute == 7
    assert not plain.fixed_message_moderation
    switch = "TRUNKLINE_NETWORK_FIXED_MESSAGE_MODERATION"
    assert settings({switch: "1", **home}).fixed_message_moderation
    assert not settings({switch: "0", **home}).fixed_message_moderation
    names = {"TRUNKLINE_NETWORK_HOSTS": "Net.Example, other.example", "TRUNKLINE_NETWORK_PROXIES": "10.1.2.3/8,::1"}
    named = settings(home | names)
    assert (named.hosts, named.proxies) == (("net.example", "other.example"), ("10.0.0.0/8", "::1/128"))
    for variable, value in (
        (switch, "perhaps"),
        ("TRUNKLINE_NETWORK_HOSTS", "*"),
        ("TRUNKLINE_NETWORK_HOSTS", "net.example:443"),
        ("TRUNKLINE_NETWORK_PROXIES", "proxy"),
        ("SNS_APP_ORIGIN", "*"),
        ("SNS_APP_ORIGIN", "app.example"),
        ("SNS_APP_ORIGIN", "https://app.example/path"),
        ("SNS_APP_ORIGIN", "https://app.example:port"),
        ("SNS_APP_ORIGIN", "https://app.example\r\nx: y"),
        ("TRUNKLINE_NETWORK_RATE_LIMIT", "0"),
        ("TRUNKLINE_NETWORK_RATE_LIMIT", "-1"),
        ("TRUNKLINE_NETWORK_RATE_LIMIT", "many"),
        ("TRUNKLINE_EXPLORER_URL", "ftp://x"),
    ):
        with pytest.raises(ConfigError, match=variable):
            settings(home | {variable: value})


def test_the_files_say_what_the_environment_does_not(tmp_path: Path) -> None:
    home = {"TRUNKLINE_HOME": str(tmp_path)}
    file = tmp_path / "config" / "config.toml"
    file.parent.mkdir()
    file.write_text(
        '[network]\napp_origin = "https://App.Example/"\nadmin_key = "of the file"\nrate_limit = "off"\n'
        'hosts = ["Net.Example"]\nproxies = ["10.1.2.3/8"]\nprivate_webhooks = true\n'
    )
    found = settings(home)
    assert (found.app_origin, found.admin_key, found.writes_per_minute) == ("https://app.example", "of the file", None)
    assert (found.hosts, found.proxies, found.private_webhooks) == (("net.example",), ("10.0.0.0/8",), True)
    said = settings(home | {"ADMIN_API_KEY": "of the environment", "TRUNKLINE_NETWORK_PRIVATE_WEBHOOKS": "0"})
    assert (said.admin_key, said.private_webhooks, said.app_origin) == (
        "of the environment",
        False,
        "https://app.example",
    )
    file.write_text('[network]\nhosts = ["net.example:443"]\n')
    with pytest.raises(ConfigError, match=r"line 2: `network.hosts` must be a list of names of hosts"):
        settings(home)


def test_what_holds_without_any_configuration_is_what_the_schema_says(tmp_path: Path) -> None:
    assert settings({"TRUNKLINE_HOME": str(tmp_path)}) == NetworkSettings(home=str(tmp_path / "network"))


def test_wrong_usage_is_told_without_a_traceback(tmp_path: Path) -> None:
    wrong = (["--listen", "0.0.0.0:1"], ["--metrics", "0.0.0.0:1"], ["--metrics", "nowhere"])
    for arguments in (*wrong, ["--db", "mysql://x"], ["--db", "sqlite:////proc/no/where.db"]):
        result = CliRunner().invoke(network.command, ["serve", *arguments], env={"TRUNKLINE_HOME": str(tmp_path)})
        assert result.exit_code == 1, result.output
        assert result.output.startswith("Error: ")


def test_a_url_that_cannot_be_read_is_told_without_its_password(tmp_path: Path) -> None:
    for url in ("postgresql://u:hush-hush@[::1", "postgresql://u:hush-hush@h:port/db"):
        result = CliRunner().invoke(network.command, ["serve", "--db", url], env={"TRUNKLINE_HOME": str(tmp_path)})
        assert (result.exit_code, result.exception.__class__) == (1, SystemExit), result.output
        assert result.output.startswith("Error: The ")
        assert "hush" not in result.output


@pytest.mark.process
def test_it_serves_until_a_signal_and_keeps_everything_under_its_home(tmp_path: Path) -> None:
    environ = os.environ | {"TRUNKLINE_HOME": str(tmp_path / "home"), "ADMIN_API_KEY": "hush-hush"}
    command = [
        sys.executable,
        "-c",
        "from trunkline.cli.network import command; command()",
        "serve",
        "--listen",
        "127.0.0.1:0",
    ]
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline().decode()
            found = re.fullmatch(r"The network is ready: (http://127\.0\.0\.1:\d+)/ \(Ctrl-C ends it\.\)\n", line)
            assert found, line
            assert httpx.get(f"{found[1]}/readyz", timeout=PATIENCE_SECONDS).json() == {"ok": True}
            assert httpx.get(f"{found[1]}/communities", timeout=PATIENCE_SECONDS).status_code == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM
            assert process.stderr.read() == b""
        finally:
            process.kill()
    assert (tmp_path / "home/network/network.db").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.process
def test_figures_and_health_are_told_beside_the_network_until_it_has_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trunkline", "network", "serve", "--listen", "127.0.0.1:0"]
    environ = os.environ | {"TRUNKLINE_HOME": str(tmp_path)}
    with subprocess.Popen(
        [*command, "--metrics", "127.0.0.1:0"], env=environ, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            ready = re.search(r"(http://127\.0\.0\.1:\d+)/ ", process.stderr.readline())
            told = re.fullmatch(r"Its figures are at (http://(127\.0\.0\.1:\d+))/metrics\n", process.stderr.readline())
            assert ready
            assert told
            assert httpx.get(f"{told[1]}/healthz", timeout=PATIENCE_SECONDS).text == "ready\n"
            assert httpx.get(f"{ready[1]}/livez", timeout=PATIENCE_SECONDS).status_code == 200
            figures = httpx.get(f"{told[1]}/metrics", timeout=PATIENCE_SECONDS)
            assert figures.headers["content-type"] == "text/plain; version=0.0.4"
            assert "\ntrunkline_network_database_up 1\n" in figures.text
            assert '\ntrunkline_network_requests_total{status="2xx"} 1\n' in figures.text
            # They are nowhere else: what is public stays as it was.
            assert httpx.get(f"{ready[1]}/metrics", timeout=PATIENCE_SECONDS).status_code == 404
            second = subprocess.run(
                [*command, "--metrics", told[2]], env=environ | {"TRUNKLINE_HOME": str(tmp_path / "second")},
                capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
            )  # fmt: skip
            assert (second.returncode, "another address with `--metrics HOST:PORT`" in second.stderr) == (1, True)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM
        finally:
            process.kill()


async def test_without_its_packages_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trunkline.core import starting

    monkeypatch.setattr(starting, "missing", lambda extra: "starlette")
    with pytest.raises(ConfigError, match=r"needs a package that is not installed: `starlette`. Add it with `"):
        await network._serve(
            f"sqlite:///{tmp_path}/made/network.db",
            "127.0.0.1",
            0,
            settings({"TRUNKLINE_HOME": str(tmp_path / "home")}),
            FiguresDoor(),
            asyncio.Event(),
        )
    assert os.listdir(tmp_path) == []
