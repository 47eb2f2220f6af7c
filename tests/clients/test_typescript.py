"""The TypeScript client: what its package promises, and all that it does, with a real server."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from environments import INSTALL_SECONDS
from tests.conftest import require
from tests.support.npm import node, node_environment
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import served
from tests.support.typescript import CLIENT, built, package
from trunkline.wires.tryll.drive import turn

long = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(2 * INSTALL_SECONDS)]


def sources() -> dict[str, str]:
    folder = CLIENT / "src"
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*.ts")}


def imports(source: str) -> set[str]:
    return set(re.findall(r'^(?:import|export|}) [^"]*\bfrom "([^"]+)";$', source, re.MULTILINE))


def test_it_needs_no_other_package_when_it_runs() -> None:
    assert not {"dependencies", "peerDependencies", "optionalDependencies"} & set(package())
    for name, source in sources().items():
        for imported in imports(source):
            assert imported.startswith(("./", "../", "node:")), (name, imported)


def test_what_a_browser_loads_needs_nothing_of_node() -> None:
    found = {name: imports(source) for name, source in sources().items()}
    assert any("node:net" in imported for name, imported in found.items() if name.startswith("node/"))
    for name, imported in found.items():
        if not name.startswith("node/"):
            assert not [each for each in imported if each.startswith("node:") or "/node/" in each], name


def test_it_keeps_as_much_of_a_turn_as_python() -> None:
    limits = dict(re.findall(r"^export const (MAX_\w+) = ([\d_* ]+);$", sources()["turn.ts"], re.MULTILINE))
    found = {name: math.prod(int(factor) for factor in factors.split("*")) for name, factors in limits.items()}
    assert found == {
        "MAX_ANSWER": turn.MAX_ANSWER,
        "MAX_EVENTS": turn.MAX_EVENTS,
        "MAX_MARKS": turn.MAX_MARKS,
        # Of two bytes each.
        "MAX_SAMPLES": turn.MAX_SOUND // 2,
    }


def test_what_it_is_built_with_is_pinned() -> None:
    lock = json.loads((CLIENT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    for name, version in package()["devDependencies"].items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), name
        assert lock[f"node_modules/{name}"]["version"] == version


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("typescript"))


async def run(client: Path, *arguments: str, said: str = "", **environment: str) -> str:
    """What a program of node's writes. It must succeed."""
    child = await asyncio.create_subprocess_exec(
        str(node()), *arguments, cwd=client, env=node_environment(**environment),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            output, _ = await child.communicate(said.encode())
    finally:
        if child.returncode is None:
            child.kill()
    assert child.returncode == 0, output.decode()
    return output.decode()


class TestBuilt:
    """What needs the compiler, and node."""

    pytestmark = long

    @pytest.mark.parametrize("transport", ["tcp", "ws"])
    async def test_all_of_it_works_with_a_server(self, client: Path, tmp_path: Path, transport: str) -> None:
        async with served(tmp_path) as server:
            host, port = server.host, server.port
            if transport == "ws":
                host, port = await server.server.listen_websocket("127.0.0.1", 0)
            address = f"{'ws://' if transport == 'ws' else ''}{host}:{port}"
            await run(client, "--test", "dist/test/api.test.js", TRYLL=address)

    async def test_servers_that_are_not_what_they_should_be_are_refused(self, client: Path) -> None:
        await run(client, "--test", "dist/test/wrong.test.js")

    async def test_the_example_talks_with_a_server(self, client: Path, tmp_path: Path) -> None:
        async with served(tmp_path) as server:
            heard = await run(
                client, "dist/examples/chat.js", f"{server.host}:{server.port}", said="Good day!\nOpen the gate.\n\n"
            )
        assert "You said: Good day!" in heard
        assert "* The gate opens." in heard

    async def test_the_example_starts_a_server_of_its_own(self, client: Path) -> None:
        # The one that is tested, and no other that may be installed.
        path = os.pathsep.join((str(Path(sys.executable).parent), node_environment()["PATH"]))
        heard = await run(client, "dist/examples/chat.js", said="Open the gate.\n\n", PATH=path)
        assert "* The gate opens." in heard

    def test_the_game_of_the_readme_installs_it_from_any_clone_and_talks(self, tmp_path: Path) -> None:
        require("npm", shutil.which("npm") is not None, "apt-get install npm")
        readme = (CLIENT / "README.md").read_text(encoding="utf-8")
        installing = next(block for block in re.findall(r"```sh\n(.*?)```", readme, re.DOTALL) if "mkdir" in block)
        (program,) = re.findall(r"Save this as `game.mjs`:\n\n```js\n(.*?)```", readme, re.DOTALL)
        (tmp_path / "game.mjs").write_text(program, encoding="utf-8")
        folder = tmp_path / "any-clone" / "clients"
        folder.mkdir(parents=True)
        path = os.pathsep.join((str(Path(sys.executable).parent), node_environment()["PATH"]))
        done = subprocess.run(
            ["/bin/sh", "-ec", f"{installing}\ncp ../game.mjs .\nexec node game.mjs"],
            cwd=built(folder), env=node_environment(PATH=path, npm_config_offline="true", HOME=str(tmp_path)),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("You said: Can you mend my sword?\n7 tokens\n")
