"""Whether the sandbox can be had here: found out by trying, once in a process."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from contextlib import suppress

from trunkline.base.own_python import script_command
from trunkline.tools.sandbox import launcher_path, seccomp
from trunkline.tools.sandbox.launcher import COMPLAINT

#: How long the trial may take: a hundred times what it takes.
TRIAL_SECONDS = 20.0


@functools.cache
def problem() -> str:
    """Why there is no sandbox here, for people; empty where there is one."""
    if not sys.platform.startswith("linux"):
        return "it needs Linux"
    if not seccomp.is_supported():
        return "its filter of system calls is not made for this processor"
    with tempfile.TemporaryDirectory(prefix="trunkline-sandbox-") as place:
        options = [f"--cwd={place}", f"--write={place}", f"--seccomp={seccomp.program().hex()}"]
        # It is one if the directory can be written to, and nothing else.
        trial = 'true > "$0/in" && ! true 2>/dev/null > "$1"'
        argv = script_command(launcher_path(), ["run", *options, "--", "/bin/sh", "-c", trial, place, f"{place}.out"])
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL_SECONDS, check=False, cwd="/"
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        finally:
            with suppress(OSError):
                os.unlink(f"{place}.out")
    if done.returncode == 0:
        return ""
    said = done.stderr.decode("utf-8", "replace").strip()
    return said.removeprefix(COMPLAINT) or f"a trial ended with exit code {done.returncode}"
