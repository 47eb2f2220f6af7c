"""The optional parts of this program, and how to get one that is missing, on this very installation."""

from __future__ import annotations

import os
import sys

import trunkline


def install_hint(extra: str) -> str:
    """The command that adds an extra such as `local` to the Python that runs us, ready for a shell.

    It names that Python, so that it does not matter which environment is active, whoever made it (`venv`, pipx, uv).
    Of an installed trunkline it asks for the extra alone: no index need have trunkline itself.
    """
    import shlex
    from importlib.util import find_spec

    python = shlex.quote(sys.executable)
    # uv makes environments without pip, and fills them from outside.
    installer = f"uv pip install --python {python}" if find_spec("pip") is None else f"{python} -m pip install"
    root = _checkout()
    return f"{installer} 'trunkline[{extra}]'" if root is None else f"{installer} -e {shlex.quote(f'{root}[{extra}]')}"


def _checkout() -> str | None:
    """The directory of the sources, if they are what runs."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(trunkline.__file__))))
    return root if os.path.isfile(os.path.join(root, "pyproject.toml")) else None
