"""Renews `requirements-dev.lock`: one version of every package that development uses, as pip chooses them today.

    python3 scripts/lock.py          or: make lock

pip works the versions out without installing anything, with the Python that runs this; use the oldest that we support,
since what still has a release for it has one for the others, too. `scripts/bootstrap.py` installs these versions and no
others.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements-dev.lock"
EXTRAS = "all,docs"
HEADER = """\
# Every package that development uses, in the version that the tests were run with. Made by `make lock`; do not edit.
# It is a file of constraints: a package that a platform or another Python does not need is not installed there.
"""


def main() -> int:
    """Entry point: 0 when the file is written, pip's own code when it found no answer."""
    command = [
        sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-",
        f"{ROOT}[{EXTRAS}]",
    ]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return done.returncode
    LOCK.write_text(locked(json.loads(done.stdout)), encoding="utf-8")
    print(f"{LOCK.name} is up to date; the next `make` installs what it says.")
    return 0


def locked(report: dict[str, Any]) -> str:
    """The file's content, for what pip would install."""
    packages = [item["metadata"] for item in report["install"]]
    found = {package["name"].lower().replace("_", "-"): package["version"] for package in packages}
    found.pop("trunkline", None)
    return HEADER + "".join(f"{name}=={version}\n" for name, version in sorted(found.items()))


if __name__ == "__main__":
    sys.exit(main())
