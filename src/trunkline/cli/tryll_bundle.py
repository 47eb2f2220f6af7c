"""`trunkline tryll bundle`: a folder with the server, its Python and its models, for a game to bring along.

Exit codes: 0; 1 when it could not be made, 2 for wrong usage, 130 after Ctrl-C. Nothing half made is left behind.
"""

from __future__ import annotations

import os

import click

from trunkline.base import jsontext
from trunkline.base.sizes import size_text
from trunkline.cli.bundling import build, written
from trunkline.cli.explained import explained


def _folder(context: click.Context, parameter: click.Parameter, said: str) -> str:
    if not said.strip():
        # The system would take it for the current one.
        raise click.BadParameter("Name the folder to make.")
    return said


@click.command("bundle")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False), callback=_folder)
@click.option(
    "--model",
    "models",
    metavar="NAME",
    multiple=True,
    help="A model that goes along, as `trunkline models list` has it, or a GGUF file; can be given several times.",
)
@click.option(
    "--graph",
    "graphs",
    metavar="FILE",
    multiple=True,
    help="A graph that goes along, with the files beside it and all models that it names; can be given several times.",
)
@click.option("--force", is_flag=True, help="Replace the bundle that is there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object about it.")
@explained
def command(folder: str, models: tuple[str, ...], graphs: tuple[str, ...], force: bool, as_json: bool) -> None:
    """Make a folder DIR that serves graph agents on another Linux machine, without an installation.

    It has the Python that runs this command, the packages that the models need, in the versions that are installed
    here, the libraries of this system that they need, and the models. The other machine must be of the same
    architecture, and its glibc at least as new as `DIR/manifest.json` says. `DIR/tryll-server` takes the flags of
    `trunkline tryll serve`.

    Speech output (Piper, eSpeak NG) is under the GPL. It goes along only if you name a model that speaks.

    \b
    Examples:
      trunkline tryll bundle server --model smollm2-135m
      trunkline tryll bundle server --graph npc.yaml --model whisper-base
      trunkline tryll bundle server --model hero.gguf --force --json
    """

    def report(text: str) -> None:
        click.echo(text, err=True)

    build.check_place(os.path.abspath(folder), force=force)
    plan = build.planned(models, graphs)
    gpl = [each.name for each in plan.packages if each.copyleft]
    if gpl:
        report(
            f"Under the GPL, for the models that you named: {', '.join(gpl)}. `LICENSES` says what that asks of you."
        )
    told = build.build(plan, folder, report, force=force)
    if not plan.models:
        report(written.NO_MODELS)
    if as_json:
        found = {key: told[key] for key in ("version", "machine", "glibc", "python", "bytes", "gpl")}
        listed = {"models": [each["name"] for each in told["models"]], "files": len(told["files"])}
        click.echo(jsontext.dumps({"folder": os.path.abspath(folder), **found, **listed}))
        return
    size, where = size_text(told["bytes"]), os.path.join(folder, written.LAUNCHER)
    click.echo(f"`{folder}` has {size}, and needs glibc {told['glibc']} or newer on {told['machine']}. Try `{where}`.")
