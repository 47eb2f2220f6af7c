"""What `[lsp.NAME]` says."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.agents.coder.settings_lsp import lsp_settings
from trunkline.tools.lsp.server import LanguageServer


@pytest.mark.parametrize(
    ("table", "server"),
    [
        ({"command": ["pylsp"], "extensions": [".py"]}, LanguageServer("a", ("pylsp",), (".py",))),
        (
            {"command": "pyright-langserver --stdio 'a b'", "extensions": ["py", ".pyi"], "root": "sub"},
            LanguageServer("a", ("pyright-langserver", "--stdio", "a b"), (".py", ".pyi"), "sub"),
        ),
        ({"command": ["${BIN}/x"], "extensions": [".x"]}, LanguageServer("a", ("/bin/x",), (".x",))),
    ],
)
def test_a_server_is_read_from_its_table(table: dict[str, Any], server: LanguageServer) -> None:
    found = lsp_settings({"a": table}, {"BIN": "/bin"})
    assert (found.servers, found.warnings) == ((server,), ())


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"extensions": [".py"]}, "`command` must be a string or a list of strings"),
        ({"command": [1], "extensions": [".py"]}, "`command` must be a string or a list of strings"),
        ({"command": "", "extensions": [".py"]}, "`command` is empty"),
        ({"command": "'", "extensions": [".py"]}, "No closing quotation"),
        ({"command": "pylsp"}, "no `extensions`"),
        ({"command": "${NONE}", "extensions": [".py"]}, "`NONE` is not set"),
    ],
)
def test_a_server_that_cannot_work_is_left_out_with_a_word(table: dict[str, Any], said: str) -> None:
    found = lsp_settings({"a": table, "b": {"command": "x", "extensions": [".x"]}}, {})
    assert [server.name for server in found.servers] == ["b"]
    assert said in found.warnings[0]
    assert found.warnings[0].startswith("The language server `a` is left out: ")


def test_one_that_is_switched_off_is_not_started() -> None:
    assert lsp_settings({"a": {"command": "x", "extensions": [".x"], "enabled": False}}, {}).servers == ()
