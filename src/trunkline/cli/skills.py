"""`trunkline skills`: which skills the coding agent finds in a directory, what one of them says, and which are broken.

Exit codes: 0, or 1 when there is no such skill, or `check` has found a broken one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import click
from click.shell_completion import CompletionItem

from trunkline.agents.coder.extending.markdown import MarkdownFile, usable, whole
from trunkline.agents.coder.extending.skills import Skill, Skills, SkillSet
from trunkline.agents.coder.settings import load_config
from trunkline.base import jsontext
from trunkline.base.nearest import suggestion
from trunkline.base.paths import homely
from trunkline.base.printable import printable, printable_line
from trunkline.base.values import Value
from trunkline.cli import table
from trunkline.cli.explained import explained
from trunkline.core.faults import ConfigError

EXIT_BROKEN = 1

_workspace = click.option(
    "--workspace", metavar="PATH", default=".", show_default=True, help="The directory in which the agent would work."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")


class SkillReport(Value):
    """Something that is worth knowing about one skill."""

    file: str
    problem: str
    usable: bool = True


@click.group("skills")
def command() -> None:
    """List, read and check the skills of the coding agent.

    A skill is a folder with a `SKILL.md`. The user's own are in `skills` beside the configuration file, in
    `~/.trunkline/skills` and in `~/.claude/skills`; a workspace's in its `.trunkline/skills`, `.aionrs/skills` and
    `.claude/skills`. Of two with the same name, the one that comes first here counts.

    \b
    Examples:
      trunkline skills list
      trunkline skills show release
      trunkline skills check
    """


def found_in(workspace: str) -> SkillSet:
    """The skills that an agent finds there."""
    try:
        trusted = load_config(os.path.abspath(workspace)).trusted
    except ConfigError:
        # `trunkline config check` is there to say what is wrong. Until then nothing is trusted.
        trusted = False
    return Skills(os.path.abspath(workspace), trusted=trusted).look()


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    found = found_in(context.params.get("workspace") or ".").skills
    return [CompletionItem(name) for name in found if name.startswith(incomplete)]


@command.command("list")
@_workspace
@click.option("--wide", is_flag=True, help="Print everything, however wide the terminal is.")
@_json
@explained
def list_skills(workspace: str, wide: bool, as_json: bool) -> None:
    """List the skills there are, including those that are shadowed or broken."""
    found = found_in(workspace)
    if as_json:
        click.echo(jsontext.dumps(_records(found)))
        return
    rows = [[skill.name, _origin(skill), _state(skill, found), skill.description] for skill in _all(found)]
    rows += [[os.path.basename(each.folder), "", "broken", each.problem] for each in found.broken]
    if rows:
        table.show(["NAME", "OF", "STATE", "DESCRIPTION"], [list(map(printable_line, row)) for row in rows], wide=wide)
    else:
        click.echo("There are no skills here. `trunkline skills --help` says where they belong.", err=True)


@command.command("show")
@click.argument("name", shell_complete=_complete)
@_workspace
@_json
@explained
def show(name: str, workspace: str, as_json: bool) -> None:
    """Print what the skill NAME says of itself, and its text."""
    found = found_in(workspace)
    skill = found.find(name)
    if skill is None:
        _say_unknown(name, found)
        return
    body = usable(skill.file).body.strip()
    if as_json:
        click.echo(jsontext.dumps({**_record(skill, found), "body": body}))
        return
    facts = {
        "name": skill.name,
        "description": skill.description,
        "when to use": skill.when,
        "file": skill.file,
        "of": _origin(skill),
        "allowed tools": ", ".join(skill.allowed)
        + (" (without effect: the directory is not trusted)" * _unheeded(skill)),
        "models": "do not see it and cannot call it" if skill.hidden else "",
    }
    for key, value in facts.items():
        if value:
            click.echo(f"{key}: {printable_line(value)}")
    click.echo(f"\n{printable(body)}")


@command.command("check")
@_workspace
@_json
@explained
def check(workspace: str, as_json: bool) -> None:
    """Look for skills that are broken; the exit code is 1 if there is one.

    Skills that can be used here, but perhaps not by other programs, are named as well, and count for the exit code.
    Skills that are shadowed by others of the same name are listed as well; they are not broken.
    """
    found = found_in(workspace)
    faults = [*_faults(found)]
    broken = {report.file for report in faults if not report.usable}
    usable = sum(skill.file not in broken for skill in found.skills.values())
    shadowed = [SkillReport(skill.file, _shadow(skill, found), usable=False) for skill in found.shadowed]
    if as_json:
        told = {"skills": usable, "broken": [*map(_told, faults)], "shadowed": [*map(_told, shadowed)]}
        click.echo(jsontext.dumps(told))
    else:
        for report in (*faults, *shadowed):
            click.echo(f"{printable_line(report.file)}: {printable_line(report.problem)}.")
        flawed = len(faults) - len(broken)
        more = f" With a flaw for other programs: {flawed}." if flawed else ""
        click.echo(f"Skills that can be used: {usable}. Broken: {len(broken)}.{more}", err=True)
    if faults:
        sys.exit(EXIT_BROKEN)


def _broken(found: SkillSet) -> Iterator[SkillReport]:
    for each in found.broken:
        yield SkillReport(each.file, each.problem, usable=False)


def _faults(found: SkillSet) -> Iterator[SkillReport]:
    """Skills that are broken, and those that work here, and not everywhere."""
    yield from _broken(found)
    for skill in _all(found):
        contents = whole(skill.file)
        problem = contents.problem or skill.flaw or _yaml_problem(contents, skill.file)
        if problem:
            yield SkillReport(skill.file, problem, usable=not contents.problem)


def _yaml_problem(contents: MarkdownFile, file: str) -> str:
    """Why other programs may refuse a front matter that is understood here."""
    from trunkline.base.document_yaml import DocumentError, compose

    try:
        compose(contents.matter.source, file, "the front matter")
    except DocumentError as error:
        return f"other programs may not understand its front matter: {error.problem.rstrip('.')}"
    return ""


def _say_unknown(name: str, found: SkillSet) -> None:
    for each in found.broken:
        if os.path.basename(each.folder) == name:
            raise ConfigError(f"The skill `{name}` is broken. `{each.file}`: {each.problem}.")
    shown = printable_line(name)
    raise ConfigError(
        f"There is no skill `{shown}`.{suggestion(name, found.skills)}", hint="`trunkline skills list` lists them."
    )


def _all(found: SkillSet) -> tuple[Skill, ...]:
    return (*found.skills.values(), *found.shadowed)


def _origin(skill: Skill) -> str:
    return "user" if skill.own else "workspace"


def _state(skill: Skill, found: SkillSet) -> str:
    if skill in found.shadowed:
        return "shadowed"
    return "/ only" if skill.hidden else "ok"


def _shadow(skill: Skill, found: SkillSet) -> str:
    by = found.find(skill.name)
    return f"`{skill.name}` is shadowed by `{homely(by.file) if by else ''}`"


def _unheeded(skill: Skill) -> bool:
    return bool(skill.allowed) and not skill.granted


def _records(found: SkillSet) -> dict[str, Any]:
    return {
        "skills": [_record(skill, found) for skill in found.skills.values()],
        "shadowed": [_record(skill, found) for skill in found.shadowed],
        "broken": [_told(report) for report in _broken(found)],
    }


def _record(skill: Skill, found: SkillSet) -> dict[str, Any]:
    return {
        "name": skill.name,
        "description": skill.description,
        "when_to_use": skill.when,
        "folder": skill.folder,
        "file": skill.file,
        "of": _origin(skill),
        "allowed_tools": list(skill.allowed),
        "allowed_tools_count": bool(skill.granted),
        "disable_model_invocation": skill.hidden,
        "shadowed": skill in found.shadowed,
    }


def _told(report: SkillReport) -> dict[str, Any]:
    return {"file": report.file, "problem": report.problem, "usable": report.usable}
