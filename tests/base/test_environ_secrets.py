"""Which parts of an environment are secret."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trunkline.base.environ_secrets import environment_secrets, names_a_secret, url_secrets
from trunkline.base.redact import MASK, Redactor

VALUE = "q7Zp-91_xW3v"


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "KEY",
        "token",
        "GITHUB_TOKEN",
        "MY_SECRET_THING",
        "DB_PASSWORD",
        "PGPASSWORD",
        "MYSQL_PWD",
        "AWS_SECRET_ACCESS_KEY",
        "GOOGLE_CREDENTIALS",
        "SENTRY_DSN",
        "NPM_AUTH",
        "BITBUCKET_PAT",
        "openai_apikey",
        "SSH_PASSPHRASE",
        "SMTP_PASS",
        "accessToken",
        "BEARER_VALUE",
        "CI_JOB_JWT",
        "AUTHORIZATION",
        "WALLET_MNEMONIC",
    ],
)
def test_a_variable_whose_name_says_so_holds_a_secret(name: str) -> None:
    assert environment_secrets({name: VALUE}) == {VALUE}


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "HOME",
        "LANG",
        "PWD",
        "OLDPWD",
        "MONKEY",
        "KEYBOARD",
        "TOKENIZERS_PARALLELISM",
        "AWS_ACCESS_KEY_ID",
        "SSH_AUTH_SOCK",
        "TURKEY",
        "GOOGLE_SECRET_FILE",
        "TOKEN_PATH",
        "AUTHOR",
        "PATTERN",
        "COMPASS",
    ],
)
def test_other_variables_do_not(name: str) -> None:
    assert environment_secrets({name: VALUE}) == set()


def test_short_values_common_words_and_paths_are_no_secrets(tmp_path: Path) -> None:
    for value in [
        "",
        "1234567",
        "password",
        "ChangeMe",
        "disabled",
        "/etc/keys/id.pem",
        "~/.config/token.json",
        "/usr/bin",
    ]:
        assert environment_secrets({"API_KEY": value}) == set(), value
    assert environment_secrets({"API_KEY": str(tmp_path)}) == set()


def test_a_random_value_that_begins_with_a_slash_is_a_secret() -> None:
    value = "/Kx9s+2mQ/81bTz0aPqLw"
    assert environment_secrets({"AWS_SECRET_ACCESS_KEY": value}) == {value}


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("postgres://ada:correct-horse@db.example:5432/app", "correct-horse"),
        ("postgres://ada:p%40ss%2Fword9@db.example/app", "p@ss/word9"),
        ("https://ghp_0123456789abcdef@github.example/x.git", "ghp_0123456789abcdef"),
        ("https://mainnet.rpc.example/v3/0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef"),
        ("https://hooks.example/services/T0/B0/abcDEF0123456789abcDEF01", "abcDEF0123456789abcDEF01"),
        ("https://api.example/v1?api_key=abcdef123456&page=2", "abcdef123456"),
        ("https://blob.example/f?sv=1&sig=abcdef123456%3D", "abcdef123456="),
        ("redis://:correct-horse@cache.example", "correct-horse"),
    ],
)
def test_a_url_gives_up_its_secret_part_whatever_the_variable_is_called(url: str, secret: str) -> None:
    redactor = Redactor.from_environ({"SERVICE_URL": url})
    assert secret in environment_secrets({"SERVICE_URL": url})
    assert secret in environment_secrets({"API_KEY": url})
    shown = redactor.text(f"cannot reach {url}")
    assert MASK in shown
    assert ".example" in shown
    assert secret not in shown


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8080/a/b?page=2",
        "https://example.org/a-rather-long-path-without-digits/index",
        "https://user@example.org/",
        "https://example.org/?q=keyboards",
    ],
)
def test_a_url_without_secrets_has_none(url: str) -> None:
    assert environment_secrets({"SERVICE_URL": url}) == set()


def test_every_url_of_a_value_is_looked_at() -> None:
    assert set(url_secrets("http://a:secret-one@x http://b:secret-two@y")) == {"secret-one", "secret-two"}


def test_a_plural_may_hold_a_list() -> None:
    assert {"first-key-1", "second-key-2"} <= environment_secrets({"API_KEYS": "first-key-1, second-key-2"})
    assert "123456789" not in environment_secrets({"SIZES_OF_KEYS": "123456789 x"})


def test_a_json_object_gives_up_its_secret_members() -> None:
    value = '{"type": "account", "private_key": "line-one\\nline-two", "n": 1}'
    found = environment_secrets({"SERVICE_CREDENTIALS": value})
    assert found == {value, "line-one\nline-two"}
    assert environment_secrets({"SERVICE_CREDENTIALS": "{not json at all"}) == {"{not json at all"}


def test_a_redactor_of_an_environment_masks_its_secrets_alone() -> None:
    redactor = Redactor.from_environ({"ANTHROPIC_API_KEY": VALUE, "LANG": "en_GB.UTF-8", "DEBUG_TOKEN": "true"})
    assert redactor.text(f"{VALUE} en_GB.UTF-8 true") == f"{MASK} en_GB.UTF-8 true"


def test_bytes_that_are_not_utf8_do_not_disturb() -> None:
    value = b"caf\xe9-secret".decode("utf-8", "surrogateescape")
    redactor = Redactor.from_environ({"A_TOKEN": value, "B_URL": f"http://u:{value}%41@h/"})
    assert redactor.text(f"<{value}>") == f"<{MASK}>"
    assert redactor.text("caf%E9-secret") == MASK


@pytest.mark.parametrize(("name", "secret"), [("token", True), ("apiKey", True), ("sortKeys", False), ("page", False)])
def test_names_of_members_are_judged_alike(name: str, secret: bool) -> None:
    assert names_a_secret(name) is secret


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has it")
def test_a_process_that_hides_is_not_looked_into_by_others_of_its_user() -> None:
    # What others see is up to the kernel: here it is enough that it knows. 3 is `PR_GET_DUMPABLE`.
    told = "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    code = f"import ctypes; from trunkline.base.environ_secrets import hide_process; {told}; hide_process(); {told}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "0"]
