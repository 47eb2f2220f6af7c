"""The commands and options that our own texts tell people to type are ones that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from trunkline.cli import agent, agentproc_run_options
from trunkline.cli.app import app
from trunkline.cli.arguments import Parser
from trunkline.cli.program_command import ProgramCommand

SOURCE = Path(__file__).parents[2] / "src/trunkline"
#: What stands for a value that is put in while the program runs.
_VALUE = "VALUE"
#: A command to type, as a text has it: in backticks, or alone on a line or behind a colon.
_COMMAND = re.compile(r"`trunkline (?P<quoted>[^`]+)`|(?:^[ $]*|: )trunkline (?P<line>[^`\n]+)$", re.M)
#: What begins a comment behind an example, another command, or what is passed on to one.
_END = re.compile(r" {2,}| [<>|&]| -- ")
_OPTION = re.compile(r"`(--[a-z][a-z-]+)\b")
#: What follows the program's name and is no command: its version, its name in a heading.
NO_COMMANDS = {"%(version)s", "embedded chain, account VALUE", "agentproc: VALUE", "sandbox:"}


def texts(tree: ast.AST, *, docstrings: bool = True) -> Iterator[str]:
    """All literals of a module, with something in the place of each value that is put in."""
    nodes = list(ast.walk(tree))
    inner = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    inner |= {id(node.value) for node in nodes if isinstance(node, ast.Expr) and not docstrings}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else _VALUE for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value


def advice(tree: ast.AST) -> Iterator[str]:
    """What is behind `trunkline` in each command that a module names."""
    for text in texts(tree):
        for found in _COMMAND.finditer(text):
            yield _END.split(found["quoted"] or found["line"], maxsplit=1)[0].rstrip(" .\\")


def wrong(command: str) -> str | None:
    """What of a command does not exist; None if all of it does."""
    words, path = command.split(), list[str]()
    here: click.Command = app
    while words and isinstance(here, click.Group):
        if words[0].startswith("-") or words[0].isupper():
            break
        # What is put in may begin with a space.
        name = words.pop(0).removesuffix(_VALUE)
        following = here.get_command(click.Context(here), name)
        if following is None:
            return name
        path.append(name)
        here = following
    known = options(tuple(path))
    return next((word for word in words if word.startswith("--") and word.partition("=")[0] not in known), None)


def of_parser(parser: Parser) -> frozenset[str]:
    return frozenset(name for action in parser.actions for name in action.option_strings) | {"--help"}


@cache
def options(path: tuple[str, ...]) -> frozenset[str]:
    """Those of a command."""
    parsers = {
        ("agent",): agent._parser,
        # It takes the options of `agentproc run`.
        ("agentproc", "hub", "run"): agentproc_run_options.make_parser,
    }
    if path in parsers:
        return of_parser(parsers[path]())
    here: click.Command = app
    for name in path:
        assert isinstance(here, click.Group)
        following = here.get_command(click.Context(here), name)
        assert following is not None
        here = following
    if isinstance(here, ProgramCommand):
        return of_parser(here.parser())
    return frozenset(name for each in here.params for name in (*each.opts, *each.secondary_opts)) | {"--help"}


@cache
def trees() -> dict[str, ast.Module]:
    """The modules that could name a command or an option."""
    sources = {str(file.relative_to(SOURCE)): file.read_bytes() for file in sorted(SOURCE.rglob("*.py"))}
    return {file: ast.parse(text) for file, text in sources.items() if b"trunkline " in text or b"`--" in text}


def test_every_command_that_a_text_names_exists_with_its_options() -> None:
    found = [(file, command) for file, tree in trees().items() for command in advice(tree)]
    assert [each for each in found if each[1] not in NO_COMMANDS and wrong(each[1]) is not None] == []


def test_every_option_that_a_text_names_is_one_of_some_command() -> None:
    known = {name for path in paths(app) for name in options(path)}
    # Docstrings tell of other programs' options as well.
    found = [
        (file, name)
        for file, tree in trees().items()
        for text in texts(tree, docstrings=False)
        for name in _OPTION.findall(text)
    ]
    assert [each for each in found if each[1] not in known] == []


def paths(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Those of all commands, groups included."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from paths(found, (*path, name))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Say `trunkline chat echo --resume`.", None),
        ("Say `trunkline chat --agent echo`.", "--agent"),
        ("Say `trunkline sessions lst`.", "lst"),
        ("  trunkline agent --json-stream --agnt echo    be an agent", "--agnt"),
        ("  trunkline conform jsonstream -- agent --any", None),
        ("  trunkline agentproc serve AGENT --attach", None),
    ],
)
def test_a_command_that_does_not_exist_is_found(text: str, problem: str | None) -> None:
    (command,) = advice(ast.parse(repr(text)))
    assert wrong(command) == problem
