"""Where a platform's token comes from, and that a token in the wrong place is not shown."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.chat.credentials import secret
from trunkline.chat.matrix.platform import make as matrix
from trunkline.chat.telegram.platform import make as telegram
from trunkline.core.faults import ConfigError

TOKENS = ["123456:AAH-abc_DEF", "syt_Ym90_aBcDeFgHiJkLmNoP_1a2B3c", "hunter2"]


def test_it_is_written_down_or_in_a_variable() -> None:
    environ = {"MINE": " from-mine\n", "TELEGRAM_BOT_TOKEN": "from-usual", "lower": "from-lower"}
    for table, found in (
        ({"token": "here", "token_env": "MINE"}, "here"),
        ({"token_env": "MINE"}, "from-mine"),
        ({"token_env": "lower"}, "from-lower"),
        ({}, "from-usual"),
    ):
        assert secret("telegram", table, "token", environ) == found
    assert secret("telegram", {}, "token", {}) is None
    with pytest.raises(ConfigError, match=r"names `MINE`, which is not set\. Set `MINE` to the token"):
        secret("telegram", {"token_env": "MINE"}, "token", {})


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize(
    ("make", "table", "key"),
    [
        (telegram, {}, "bridge.telegram.token_env"),
        (matrix, {"homeserver": "https://here"}, "bridge.matrix.token_env"),
        (matrix, {"homeserver": "https://here", "user": "me"}, "bridge.matrix.password_env"),
    ],
)
def test_a_secret_in_the_place_of_a_name_is_refused_and_not_shown(
    make: Any, table: dict[str, str], key: str, token: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        make({**table, key.rpartition(".")[2]: token}, {})
    assert token not in str(raised.value)
    assert f"`{key}` is not the name of a variable that is set. Write a name there" in str(raised.value)
