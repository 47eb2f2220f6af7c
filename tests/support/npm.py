"""Programs of other people from npm, and the node that runs them. A test that cannot have its program does not go on.

Their installation scripts are not run: where the program itself is in a package for the machine, it is taken from
there.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import environments
from tests.conftest import require

#: The node that today's programs need; the system's may be older.
NODE_VERSION = "24.21.0"

ACPX = "acpx@0.19.1"
ACP_SDK = "@agentclientprotocol/sdk@2.4.0"
OPENCODE = "opencode-ai@1.18.33"
GOOSE = "@aaif/goose@0.20.1"
QWEN = "@qwen-code/qwen-code@0.24.4"

_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


def modules(*packages: str) -> Path:
    """The folder `node_modules` that holds these packages, such as `acpx@0.19.1`."""
    problem = ""
    place = Path()
    try:
        place = environments.npm_environment(packages)
    except environments.NotInstalled as error:
        problem = str(error)
    require(", ".join(packages), not problem, f"npm could not install it: {problem}")
    return place


def node() -> Path:
    """The program `node`, version 24."""
    package = f"node-{_system()}"
    return modules(f"{package}@{NODE_VERSION}") / package / "bin" / "node"


def script(package: str, name: str = "") -> list[str]:
    """The command of a package's program that is written for node: `name`, or the package's own."""
    place = modules(package)
    bare = package.rpartition("@")[0]
    return [str(node()), str((place / ".bin" / (name or bare.rpartition("/")[2])).resolve())]


def opencode() -> Path:
    """The program `opencode`, out of the package for this machine."""
    return modules(OPENCODE) / f"opencode-{_system()}" / "bin" / "opencode"


def goose() -> Path:
    """The program `goose`, out of the package for this machine."""
    return modules(GOOSE) / "@aaif" / f"goose-binary-{_system()}" / "bin" / "goose"


def node_environment(**more: str) -> dict[str, str]:
    """What a program of npm's is given as its environment: node 24 first, and no way to the network but loopback."""
    nowhere = "http://127.0.0.1:9"
    return {
        "PATH": f"{node().parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "http_proxy": nowhere,
        "https_proxy": nowhere,
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        **more,
    }


def _system() -> str:
    """This machine, as packages of npm name it: `linux-x64`."""
    system = {"linux": "linux", "darwin": "darwin"}.get(sys.platform, sys.platform)
    return f"{system}-{_MACHINES.get(platform.machine().lower(), platform.machine())}"
