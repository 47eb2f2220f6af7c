"""Language servers that we did not write: each finds what is wrong, and then that it is right."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.mcp_environment import INSTALL_SECONDS, environment
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.redact import Redactor
from trunkline.tools.client_side import ClientSide
from trunkline.tools.lsp import server
from trunkline.tools.lsp.server import LanguageServer
from trunkline.tools.lsp.servers import LanguageServers, told
from trunkline.tools.workspace import Workspace

# The first run makes the environments.
pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(2 * INSTALL_SECONDS)]

SERVERS = {
    "pylsp": (("python-lsp-server==1.15.0", "pyflakes==4.1.0"), ("pylsp",)),
    "basedpyright": (("basedpyright==1.40.2",), ("basedpyright-langserver", "--stdio")),
    "jedi": (("jedi-language-server==0.47.0",), ("jedi-language-server",)),
}


@pytest.mark.parametrize("name", SERVERS)
async def test_a_real_server_tells_what_is_wrong_and_when_it_is_right_again(
    name: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "START_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(server, "DIAGNOSTICS_SECONDS", PATIENCE_SECONDS)
    requirements, command = SERVERS[name]
    program = str(environment(requirements) / command[0])
    problems: list[str] = []
    servers = LanguageServers(
        [LanguageServer(name, (program, *command[1:]), (".py",))],
        Workspace(workspace),
        ClientSide(),
        env=lambda: os.environ,
        redactor=Redactor(),
        on_problem=problems.append,
    )
    file = workspace / "a.py"
    try:
        file.write_text("def f(:\n    pass\n")
        (found,) = await servers.changed(str(file))
        assert any(each.severity == "error" and each.line == 1 for each in found.diagnostics)
        file.write_text('print("fine")\n')
        findings = await servers.changed(str(file))
        assert told("a.py", findings) == f"{name}: no errors or warnings in a.py any more."
    finally:
        await servers.close()
    assert problems == []
