"""How a bundle starts: `trunkline tryll serve` with the models and the configuration of its own folder, and no others.

What the environment says of other installations does not count; what it says of the server does, such as
`TRUNKLINE_TRYLL_TOKEN`. `TRUNKLINE_BUNDLE_STATE` names the folder to write in, by default `state` in the bundle.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

#: The program of a bundle, in its folder.
PROGRAM = "tryll-server"
STATE = "TRUNKLINE_BUNDLE_STATE"
_KEPT = ("TRUNKLINE_TRYLL_", "TRUNKLINE_LOG_FORMAT")


def environment(root: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What the server of a bundle in that folder is told."""
    kept = {
        name: value for name, value in environ.items() if not name.startswith("TRUNKLINE_") or name.startswith(_KEPT)
    }
    state = os.path.abspath(environ.get(STATE) or os.path.join(root, "state"))
    ours = {"TRUNKLINE_HOME": state, "TRUNKLINE_CACHE": root, "TRUNKLINE_CONFIG": os.path.join(root, "tryll.toml")}
    return {"TRUNKLINE_TRYLL_VECTORS_DIR": os.path.join(state, "vectors")} | kept | ours


def command_line(arguments: Sequence[str]) -> list[str]:
    """What `trunkline` is told."""
    return ["trunkline", "tryll", "serve", *arguments]


def name_program() -> None:
    """Have the help, and what is said of mistakes, name the program that is there: a bundle has no `trunkline`."""
    import click

    from trunkline.cli.tryll_serve import command

    class Context(click.Context):
        @property
        def command_path(self) -> str:
            return PROGRAM

    command.context_class = Context
    command.help = (command.help or "").replace("trunkline tryll serve", PROGRAM)


def main() -> None:
    """Start it."""
    # The Python of a bundle is a folder in it.
    ours = environment(os.path.dirname(sys.prefix), os.environ)
    for name in [name for name in os.environ if name not in ours]:
        del os.environ[name]
    os.environ.update(ours)
    sys.argv = command_line(sys.argv[1:])
    from trunkline.base.extras import mark_bundle
    from trunkline.cli import main as run

    mark_bundle()
    name_program()
    run()


if __name__ == "__main__":
    main()
