"""Makes `.venv` hold the project and what it needs, and does nothing when it already does.

    python3 scripts/bootstrap.py                              what `trunkline` needs to run
    python3 scripts/bootstrap.py --extras all --system        what the tests need, too

Needs only the standard library of Python 3.11 or newer. Promises:
- A second run with nothing changed costs a few small file reads. A change is another content of pyproject.toml's
  packaging tables or of `requirements-dev.lock` (never a file's date), a `.venv` copied or moved from another place, or
  another Python in $PYTHON.
- An environment left half-made (interrupted, killed, power cut) is thrown away and made again by the next run.
- Two runs at once in one clone wait for each other, even when one of them was killed and its pip still works.
- pip's configuration is the user's: index, proxy, certificates and cache are never overridden.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import system_packages

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
# One version of each package: what the tests were run with. `make lock` renews it.
CONSTRAINTS = ROOT / "requirements-dev.lock"
# Outside .venv, which may be removed while the lock is held.
LOCK = ROOT / ".venv.lock"
# Written last: says what is installed. Its absence means "install again", which is cheap where all is there.
STAMP = VENV / "trunkline-installed.json"
# There while venv or pip works. Found at the start of a run, it means that the last one was cut off midway, when a
# package may look installed and have half of its files; only a fresh environment is known to be good then.
UNFINISHED = VENV / "trunkline-unfinished"
# Raise it when bootstrap itself installs differently, so that environments made before are brought up to date.
FORMAT = 1
# Whoever waits longer without a sign of life thinks that nothing happens.
SIGN_SECONDS = 10.0
PYTHON_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
# Where .venv is activated we may run from it, and it may have to be thrown away: then the Python that it was made with.
MAKER = str(Path(sys.base_prefix, "bin", f"python{PYTHON_VERSION}")) if Path(sys.prefix) == VENV else sys.executable


class BootstrapError(Exception):
    """Something the reader has to put right; the text says what."""


def main(arguments: list[str] | None = None) -> int:
    """Entry point: 0 when the environment is ready, 1 with a text on stderr when it could not be made."""
    parser = argparse.ArgumentParser(description="Make .venv hold the project and what it needs.")
    parser.add_argument("--extras", default="", help="extras to install, separated by commas (default: none)")
    parser.add_argument("--system", action="store_true", help="also see to the system packages that the tests need")
    options = parser.parse_args(arguments)
    extras = {name for name in options.extras.split(",") if name}
    try:
        if options.system:
            system_packages.ensure(system_packages.TEST_NEEDS)
        ensure(extras)
    except BootstrapError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted; the next run makes the environment again from the start.")
        return 130
    return 0


def ensure(extras: set[str]) -> None:
    """Makes `.venv` hold the project with `extras`; returns at once when it does."""
    wanted = fingerprint()
    if is_current(wanted, extras):
        return
    with locked() as lock:
        if is_current(wanted, extras):  # another run made it while we waited
            return
        extras = extras | (installed_extras(wanted) or set())
        if VENV.exists() and not is_sound():
            say("throwing away .venv, which is half-made or belongs to another Python.")
            shutil.rmtree(VENV)
        fresh = not VENV.exists()
        VENV.mkdir(exist_ok=True)
        UNFINISHED.touch()
        STAMP.unlink(missing_ok=True)
        if fresh:
            say(f"making .venv with Python {PYTHON_VERSION} ...")
            make_venv(lock)
        install(extras, lock)
        write_stamp(wanted, extras)
        UNFINISHED.unlink()


def fingerprint() -> str:
    """What the environment depends on: the packaging tables, the locked versions, and the place that it stands in."""
    import tomllib  # not at the top: an older Python gets as far as find-python's message only without it

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parts = [FORMAT, str(VENV), project["build-system"], project["project"], project.get("tool", {}).get("hatch")]
    parts += [CONSTRAINTS.read_text(encoding="utf-8")]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def is_current(wanted: str, extras: set[str]) -> bool:
    """True when nothing has to be done."""
    have = installed_extras(wanted)
    return have is not None and extras <= have


def installed_extras(wanted: str) -> set[str] | None:
    """The extras that `.venv` holds; None when it is missing, unfinished, of another content or another Python."""
    if UNFINISHED.exists() or not os.access(VENV_PYTHON, os.X_OK):
        return None
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
        if stamp["fingerprint"] != wanted or not is_wanted_python(stamp["python"]):
            return None
        return set(stamp["extras"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_sound() -> bool:
    """True when `.venv` was finished, and its Python runs, has pip, and is the one asked for."""
    version = None if UNFINISHED.exists() else venv_version()
    return version is not None and is_wanted_python(version)


def venv_version() -> str | None:
    """The version of `.venv`'s Python, such as `3.11`; None when it does not run or has no pip."""
    probe = "import pip, sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([VENV_PYTHON, "-I", "-c", probe], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def is_wanted_python(version: str) -> bool:
    """True unless the user named a Python in $PYTHON and it is of another version than the environment's."""
    return not os.environ.get("PYTHON") or version == PYTHON_VERSION


def make_venv(lock: int) -> None:
    """Makes a virtual environment with pip in it, in the first of four ways that this machine allows.

    Raises:
        BootstrapError: none of them works here.
    """
    if not has_ensurepip() and system_packages.may_install():
        system_packages.apt_install([f"python{PYTHON_VERSION}-venv"])
    if has_ensurepip():
        run([MAKER, "-m", "venv", str(VENV)], lock)
    elif has_module("pip") and has_module("venv"):
        run([MAKER, "-m", "venv", "--without-pip", str(VENV)], lock)
        run([MAKER, "-m", "pip", "--python", str(VENV_PYTHON), "install", "--no-input", "pip"], lock)
    elif has_module("virtualenv"):
        run([MAKER, "-m", "virtualenv", str(VENV)], lock)
    else:
        raise BootstrapError(
            f"`{MAKER}` cannot make a virtual environment: it has neither ensurepip nor pip nor virtualenv. "
            f"Install one of them (Debian: apt-get install python{PYTHON_VERSION}-venv) and run this again."
        )


def install(extras: set[str], lock: int) -> None:
    """Installs the project, editable, with `extras`, and compiles its source so that the first start is quick."""
    names = ",".join(sorted(extras))
    say(f"installing the project{f' with {names}' if names else ''} (a minute or so when nothing is cached) ...")
    target = f"{ROOT}[{names}]" if names else str(ROOT)
    try:
        run(
            [
                str(VENV_PYTHON),
                "-I",
                "-m",
                "pip",
                "install",
                "--no-input",
                "--constraint",
                str(CONSTRAINTS),
                "--editable",
                target,
            ],
            lock,
        )
    except BootstrapError:
        # pip said why and undid its work: the environment that stood before still stands.
        UNFINISHED.unlink()
        raise
    run([str(VENV_PYTHON), "-I", "-m", "compileall", "-q", str(ROOT / "src")], lock)


def write_stamp(wanted: str, extras: set[str]) -> None:
    """Records what is installed, whole or not at all."""
    stamp = {"fingerprint": wanted, "extras": sorted(extras), "python": venv_version()}
    draft = STAMP.with_suffix(".draft")
    draft.write_text(json.dumps(stamp), encoding="utf-8")
    draft.replace(STAMP)


@contextmanager
def locked() -> Iterator[int]:
    """Holds the clone's installation lock; yields its descriptor."""
    descriptor = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another installation in this clone ...")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def run(command: list[str], lock: int) -> None:
    """Runs a command that keeps the lock as long as it lives; its output appears only when it fails.

    While it takes its time, a line now and then says that it does.

    Raises:
        BootstrapError: it failed.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=[lock],
        text=True,
        errors="replace",
    ) as done:
        try:
            output = output_of(done)
        except BaseException:
            done.kill()
            raise
    if done.returncode != 0:
        sys.stderr.write(output)
        raise BootstrapError(
            f"`{' '.join(command)}` failed (exit code {done.returncode}), see above. It needs a package index: check "
            f"the network and pip's own settings (`pip config list`), then run this again; `make clean` starts afresh."
        )


def output_of(process: subprocess.Popen[str]) -> str:
    """All that it prints, once it is at its end."""
    begun = time.monotonic()
    while True:
        try:
            return process.communicate(timeout=SIGN_SECONDS)[0]
        except subprocess.TimeoutExpired:
            say(f"... still at it, {time.monotonic() - begun:.0f} s so far")


def has_module(name: str) -> bool:
    """True when the Python that runs this has the module `name`; a folder left by an uninstalled one does not count."""
    importlib.invalidate_caches()
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.origin is not None


def has_ensurepip() -> bool:
    """True when venv can put pip into what it makes."""
    return has_module("venv") and has_module("ensurepip")


def say(text: str) -> None:
    """One line for the person who waits; stdout stays free for what is run next."""
    print(f"trunkline: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
