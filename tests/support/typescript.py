"""The TypeScript client, built in a folder of its own with the compiler that its package pins."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import cast

from tests.support.npm import modules, node, node_environment
from tests.support.patience import PATIENCE_SECONDS

CLIENT = Path(__file__).parents[2] / "clients" / "typescript"


def package() -> dict[str, dict[str, str]]:
    """Its `package.json`."""
    return cast("dict[str, dict[str, str]]", json.loads((CLIENT / "package.json").read_text(encoding="utf-8")))


def compiler() -> tuple[Path, list[str]]:
    """The folder of what it is built with, and the command of the compiler."""
    installed = modules(*(f"{name}@{version}" for name, version in sorted(package()["devDependencies"].items())))
    return installed, [str(node()), str((installed / ".bin" / "tsc").resolve())]


def built(folder: Path) -> Path:
    """The client with its examples and tests, built in a new folder. What people have built is left alone."""
    place = folder / "client"
    shutil.copytree(CLIENT, place, ignore=shutil.ignore_patterns("node_modules", "dist"))
    installed, tsc = compiler()
    (place / "node_modules").symlink_to(installed, target_is_directory=True)
    for project in (".", "tsconfig.programs.json"):
        done = subprocess.run(
            [*tsc, "-p", project],
            cwd=place, env=node_environment(), capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip
        assert not done.returncode, done.stdout + done.stderr
    return place
