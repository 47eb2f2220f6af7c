"""What the documentation says, happens."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator

from tests.docs.examples import DOCUMENTS, ROOT, Block, Command, Save, blocks, commands, matches, steps
from trunkline.base import config
from trunkline.cli.app import app
from trunkline.models import catalog
from trunkline.wires.jsonstream import schema

pytestmark = pytest.mark.docs

#: For one document. The longest certifies an agent, which takes as long as the protocol's own deadlines.
PATIENCE_SECONDS = 240

#: What may stand in a block that is not run: it would install something, or run this very suite; or it is a key, or a
#: model, for the `trunkline` commands beside it.
_NOT_RUN = re.compile(
    r"(make( \w+)*|git clone \S+|cd \S+|(pip|pipx|uv tool) install( --force)? \S+|eval .*"
    r"|export \w+_API_KEY=\.\.\.|ollama pull \S+)(\s+#.*)?"
)

_names = [str(path.relative_to(ROOT)) for path in DOCUMENTS]


def run(command: Command, folder: Path, groups: list[int]) -> None:
    """Run one, and see whether it does what is said. Its process group is noted: it may leave something running."""
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "TRUNKLINE_HOME": str(folder / ".trunkline"),
        "TZ": "UTC",
    }
    # Its own directory is not in the way of the examples, and not in sight of `ls`.
    with subprocess.Popen(
        command.argv,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        groups.append(process.pid)
        try:
            printed, _ = process.communicate(timeout=PATIENCE_SECONDS)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    what = f"line {command.line}: {command.argv[-1]}\n--- printed, exit code {process.returncode} ---\n{printed}"
    assert process.returncode == command.exit_code, what
    if command.expected is not None:
        assert matches(command.expected, printed), f"{what}\n--- expected ---\n{command.expected}"


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(PATIENCE_SECONDS)
@pytest.mark.parametrize("path", DOCUMENTS, ids=_names)
def test_every_command_and_program_in_it_does_what_it_says(path: Path, tmp_path: Path) -> None:
    groups: list[int] = []
    try:
        for step in steps(path.read_text(encoding="utf-8"), sys.executable):
            if isinstance(step, Save):
                (tmp_path / step.name).write_text(step.content, encoding="utf-8")
            else:
                run(step, tmp_path, groups)
    finally:
        # What a page starts in one command and ends in a later one, if it did not come to that.
        for group in groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


def every(language: str) -> list[Any]:
    """The blocks of a language in all documents, with their places."""
    return [
        pytest.param(block, id=f"{name}:{block.line}")
        for name, path in zip(_names, DOCUMENTS, strict=True)
        for block in blocks(path.read_text(encoding="utf-8"))
        if block.language == language
    ]


@pytest.mark.parametrize("block", every("sh"))
def test_what_is_not_run_installs_something_or_is_a_verb_of_the_makefile(block: Block) -> None:
    verbs = re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for line in filter(None, block.body.splitlines()):
        if line.startswith("trunkline "):
            assert_understood(shlex.split(line, comments=True)[1:])
            continue
        found = _NOT_RUN.fullmatch(line)
        assert found, f"`{line}` belongs in a console block"
        if line.startswith("make "):
            assert line.split()[1] in verbs, line


def assert_understood(arguments: list[str]) -> None:
    """Whether a command line of ours, without the program's name, says what can be done. Nothing is done."""
    command: click.Command = app
    context = click.Context(app, info_name="trunkline")
    while isinstance(command, click.Group):
        name, *arguments = arguments
        found = command.get_command(context, name)
        assert found, f"there is no command `{name}`"
        command = found
    # Complains of options that do not exist and of values that cannot be; runs nothing.
    context = command.make_context(command.name, arguments)
    if "name" in context.params:
        assert context.params["name"] in [entry.name for entry in catalog.entries()]


@pytest.mark.parametrize("command", ["chta", "chat --modell x", "chat --mode yoloo", "models pull nothing"])
def test_a_command_that_could_not_be_run_is_found_out(command: str) -> None:
    with pytest.raises((AssertionError, click.ClickException)):
        assert_understood(command.split())


@pytest.mark.parametrize("block", every("toml"))
def test_every_configuration_file_is_one_without_a_warning(block: Block, tmp_path: Path) -> None:
    own = Path(config.user_file())
    own.parent.mkdir(parents=True)
    own.write_text(block.body, encoding="utf-8")
    assert config.load(str(tmp_path)).all_warnings() == ()


def json_texts(body: str) -> list[Any]:
    """What a block says: one JSON text over several lines, or one on each line."""
    try:
        return [json.loads(body)]
    except ValueError:
        return [json.loads(text) for text in filter(None, body.splitlines())]


@pytest.mark.parametrize("block", every("json"))
def test_every_json_example_is_json_and_every_line_of_the_wire_is_valid(block: Block) -> None:
    lines = Draft202012Validator(schema.document())
    for data in json_texts(block.body):
        if "type" in data:
            lines.validate(data)


@pytest.mark.parametrize("path", DOCUMENTS, ids=_names)
def test_nothing_is_installed_from_an_index_that_has_no_trunkline(path: Path) -> None:
    assert re.findall(r"install[^`\n]*'trunkline\[", path.read_text(encoding="utf-8")) == []


def links(text: str) -> list[str]:
    """The targets of a document's links, code left out."""
    prose = re.sub(r"^(`{3,}).*?^\1|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def anchors(text: str) -> set[str]:
    """What a link into a document may name, by GitHub's rule."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^(`{3,}).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=_names)
def test_no_link_leads_nowhere(path: Path) -> None:
    for link in links(path.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        there = path.parent / target if target else path
        assert there.exists(), link
        if anchor:
            assert anchor in anchors(there.read_text(encoding="utf-8")), link


def test_every_document_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        path = waiting.pop().resolve()
        if path in seen or path.suffix != ".md":
            continue
        seen.add(path)
        targets = (link.partition("#")[0] for link in links(path.read_text(encoding="utf-8")) if "://" not in link)
        waiting += [path.parent / target for target in targets if target]
    assert {path.resolve() for path in DOCUMENTS} <= seen


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\nb", "a\nb\n", True),
        ("a\nb", "a\nc\n", False),
        ("a\n...\nd", "a\nb\nc\nd\n", True),
        ("a\n...\nd", "a\nd\n", True),
        ("a\n...", "a\n", True),
        ("a\n...", "b\n", False),
        ('{"id":"..."}', '{"id":"01a1-7"}\n', True),
        ('{"id":"..."}', '{"id":"01a1\n7"}\n', False),
        ("a", "a\nb\n", False),
        ("", "a\n", False),
        ("a", "village: 60 %\nvillage: 100 %\na\n", True),
        ("a", "a fall of 60 %\na\n", False),
    ],
)
def test_dots_stand_for_any_text_in_a_line_and_alone_for_any_lines(expected: str, printed: str, same: bool) -> None:
    assert matches(expected, printed) is same


def test_a_console_block_is_commands_and_what_they_print() -> None:
    body = "$ echo a\na\n$ cat <<END\n> b\n> END\n$ false  # exits with 1\n"
    found = list(commands(Block("console", body, 10, None, False)))
    assert [(command.argv[-1], command.expected, command.exit_code, command.line) for command in found] == [
        ("echo a", "a\n", 0, 10),
        ("cat <<END\nb\nEND", None, 0, 12),
        ("false", None, 1, 15),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ exit 3\n```\n",
        "```console\n$ echo a\nb\n```\n",
        "```python\nraise SystemExit(1)\n```\n",
        "```python\nprint(1)\n```\n\nIt prints:\n\n```text\n2\n```\n",
    ],
)
def test_a_document_that_does_not_tell_the_truth_is_found_out(text: str, tmp_path: Path) -> None:
    (step,) = steps(text, sys.executable)
    assert isinstance(step, Command)
    with pytest.raises(AssertionError, match="line "):
        run(step, tmp_path, [])


def test_a_saved_block_is_a_file_for_the_commands_after_it(tmp_path: Path) -> None:
    save, command = steps("Save this as `a.txt`:\n\n```yaml\nhello\n```\n\n```console\n$ cat a.txt\nhello\n```\n", "")
    assert save == Save("a.txt", "hello\n")
    assert isinstance(command, Command)
    (tmp_path / "a.txt").write_text("hello\n")
    run(command, tmp_path, [])
