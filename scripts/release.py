"""Makes a release, and its notes.

    python3 scripts/release.py prepare 0.2.0     makes the commit and the tag; also: make release VERSION=0.2.0
    python3 scripts/release.py notes v0.2.0      what CHANGELOG.md says about it, for the page of the release

The version is the tag: the build reads it from git (`hatch-vcs`), and no file has to be changed for it. `prepare` gives
what stands under "Unreleased" in CHANGELOG.md to the version, commits that, and tags the commit. Nothing is pushed; the
tag that is pushed makes the release.
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNRELEASED = "## [Unreleased]\n"

#: As PyPA's specification has them: a release, or one before it.
_VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")


class ReleaseError(Exception):
    """Something that the reader has to put right; the text says what."""


def main(arguments: list[str] | None = None) -> int:
    """Entry point: 0, or 1 with a text on stderr."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("prepare", "notes"))
    parser.add_argument("version", help="such as 0.2.0; for `notes` also as the tag is called, v0.2.0")
    options = parser.parse_args(arguments)
    version = options.version.removeprefix("v")
    try:
        if options.verb == "notes":
            print(notes(ROOT, version), end="")
        else:
            prepare(ROOT, version, datetime.datetime.now(datetime.UTC).date())
            print(f"Look at it with `git show v{version}`; `git push --follow-tags` releases it.")
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def notes(root: Path, version: str) -> str:
    """What the changelog says about a version.

    Raises:
        ReleaseError: it says nothing about it.
    """
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(?P<notes>.*?)(?=^## |\Z)", changelog, re.M | re.S)
    if found is None or not found["notes"].strip():
        raise ReleaseError(f"CHANGELOG.md has nothing under `## [{version}]`; `make release` writes it.")
    return found["notes"].strip() + "\n"


def prepare(root: Path, version: str, today: datetime.date) -> None:
    """The commit and the tag of a version.

    Raises:
        ReleaseError: it is no version, there is nothing to release, or the tree has changes of its own.
    """
    if not _VERSION.fullmatch(version):
        raise ReleaseError(f"`{version}` is not a version such as 0.2.0 or 0.2.0rc1.")
    if git(root, "status", "--porcelain"):
        raise ReleaseError("there are changes that are not committed; commit or stash them.")
    if git(root, "tag", "--list", f"v{version}"):
        raise ReleaseError(f"the tag v{version} is there already.")
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    before, heading, after = text.partition(UNRELEASED)
    if not heading or not after.partition("\n## ")[0].strip():
        raise ReleaseError("CHANGELOG.md has nothing under `## [Unreleased]`.")
    changelog.write_text(f"{before}{UNRELEASED}\n## [{version}] - {today.isoformat()}\n{after}", encoding="utf-8")
    git(root, "commit", "--quiet", "--all", "--message", f"Release {version}")
    git(root, "tag", "--annotate", f"v{version}", "--message", f"Trunkline {version}")


def git(root: Path, *arguments: str) -> str:
    """What git prints.

    Raises:
        ReleaseError: it failed.
    """
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"`git {' '.join(arguments)}` failed: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
