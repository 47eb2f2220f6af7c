"""The parts of the documentation that are made from the code.

    python -m tests.docs.generated      write them anew

They stand between `<!-- generated: NAME -->` and `<!-- end -->`. A test fails when one is not what the code says.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import click

from tests.docs.examples import DOCUMENTS, ROOT
from tests.docs.public_names import name_tables
from trunkline.agents.coder import commands as coder_commands
from trunkline.base import jsontext
from trunkline.base.chat_platforms import PLATFORMS, remote
from trunkline.base.config_services import SECTIONS as SERVICE_SECTIONS
from trunkline.base.config_services import settings_of
from trunkline.cli import agent as agent_cli
from trunkline.cli.app import COMMANDS, app
from trunkline.cli.program_command import ProgramCommand
from trunkline.cli.terminal import commands as chat_commands
from trunkline.conform.acp import suite as acp_checks
from trunkline.conform.agentproc.agent import suite as agentproc_checks
from trunkline.conform.agentproc.bridge import suite as bridge_checks
from trunkline.conform.jsonstream import suite as jsonstream_checks
from trunkline.conform.jsonstream_host import suite as host_checks
from trunkline.conform.kit import Check
from trunkline.conform.mcp import suite as mcp_checks
from trunkline.conform.openai import suite as openai_checks
from trunkline.conform.sns import suite as sns_checks
from trunkline.conform.tryll import suite as tryll_checks
from trunkline.core import events, faults
from trunkline.core.agent import Capabilities
from trunkline.core.fault_table import TABLE
from trunkline.core.faults import Fault
from trunkline.core.turns import TRANSITIONS, State
from trunkline.models import catalog
from trunkline.models.catalog_entry import EMBEDDING, LLM, CatalogEntry
from trunkline.models.providers import PROVIDERS, SERVICES
from trunkline.tools.bash import BashTool
from trunkline.tools.bash_background import BashOutput, KillBash
from trunkline.tools.exit_plan import ExitPlanMode
from trunkline.tools.files import FileMemory
from trunkline.tools.skill import SkillTool
from trunkline.tools.spawn import SpawnTool, SubAgentOutcome, Task
from trunkline.tools.todo_write import TodoWrite
from trunkline.tools.tool import Report, Tool
from trunkline.tools.tool_search import ToolSearch
from trunkline.tools.toolbox import standard_tools
from trunkline.tools.web_fetch import WebFetch
from trunkline.tools.web_search import SearchEngine, WebSearch
from trunkline.tools.workspace import Workspace
from trunkline.wires import ledger_matrix
from trunkline.wires.jsonstream import messages
from trunkline.wires.ledger import CONCEPTS, WIRES
from trunkline.wires.ledger_matrix import AGENTS, MATRIX, SCENARIOS, WAYS, WORDS
from trunkline.wires.tryll import errors as tryll_errors

_MARKED = re.compile(r"(?<=<!-- generated: )(?P<name>[\w-]+) -->\n.*?(?=<!-- end -->)", re.DOTALL)


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    headings = list(headings)
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def fault_table() -> str:
    """Every kind of fault, and its form on all four wires."""
    kinds: dict[str, type[Fault]] = {}
    for fault in _faults(Fault):
        kinds.setdefault(fault.kind, fault)
    rows = []
    for name, form in TABLE.items():
        raised = kinds[name]
        meaning = (raised.__doc__ or "").split("\n")[0].rstrip(".")
        rows.append(
            [
                f"`{name}`",
                f"`{raised.__name__}`",
                meaning,
                f"`{form.jsonstream}`",
                "yes" if form.retryable else "no",
                str(form.agentproc_exit),
                str(form.http),
                str(form.tryll),
                str(form.jsonrpc),
            ]
        )
    wires = ("`jsonstream` code", "retryable", "`agentproc` exit", "HTTP", "`tryll`", "JSON-RPC")
    headings = ("kind", "raised as", "meaning", *wires)
    return table(headings, rows)


def _faults(kind: type[Fault]) -> Iterable[type[Fault]]:
    for child in kind.__subclasses__():
        if child.__module__ == faults.__name__:
            yield child
            yield from _faults(child)


def fault_tree() -> str:
    """The tree as the module draws it."""
    drawn = re.search(r"^    Fault .*?(?=\n\n)", faults.__doc__ or "", re.MULTILINE | re.DOTALL)
    if drawn is None:
        raise LookupError("`core.faults` draws no tree")
    lines = [line.removeprefix("    ") for line in drawn[0].splitlines()]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def event_table() -> str:
    """Every event, with its fields."""
    rows = []
    for kind in events.EVENTS:
        fields = [f"`{field}`{'' if field not in kind.__defaults__ else '?'}" for field in kind.__fields__]
        meaning = " ".join((kind.__doc__ or "").split())
        rows.append([f"`{kind.__name__}`", ", ".join(fields) or "none", meaning])
    return table(("event", "fields", "meaning"), rows)


def capability_table() -> str:
    """What an agent may say of itself."""
    wire = {"approval": "tool_approval", "thinking": "thinking", "mcp": "mcp", "images": "image_input"}
    wire |= {name: name for name in ("effort_levels", "sandbox")}
    rows = [(f"`{name}`", f"`{wire[name]}`" if name in wire else "not announced") for name in Capabilities.__fields__]
    return table(("capability", "on the JSON stream"), rows)


def state_diagram() -> str:
    """The turn state machine."""
    names = {state: state.value.replace("_", " ") for state in State}
    lines = ["stateDiagram-v2", *(f'    state "{names[state]}" as {state.name}' for state in State)]
    lines.append(f"    [*] --> {State.IDLE.name}")
    lines += [f"    {start.name} --> {end.name}: {step.value}" for (start, step), end in TRANSITIONS.items()]
    lines.append(f"    {State.CLOSED.name} --> [*]")
    return "```mermaid\n" + "\n".join(lines) + "\n```\n"


def ledger_overview() -> str:
    """All columns of the ledger side by side."""
    parts = []
    for group, concepts in groupby(CONCEPTS, key=lambda concept: concept.group):
        rows = [(concept.name, *(WIRES[wire][concept.name].fate for wire in WIRES)) for concept in concepts]
        parts.append(table((group, *WIRES), rows))
    return "\n".join(parts)


def ledger_table(wire: str = "jsonstream") -> str:
    """A wire's column of the ledger."""
    rows = []
    for concept in CONCEPTS:
        cell = WIRES[wire][concept.name]
        lines = ", ".join(f"`{line}`" for line in cell.lines)
        how = f"{lines}: {cell.how}" if lines else cell.how
        rows.append((concept.name, concept.what, cell.fate, how + (f". **Lost:** {cell.lost}" if cell.lost else "")))
    return table(("concept", "what it is", "fate", "how"), rows)


def matrix_tables() -> str:
    """What every kind of agent does on every way into an exchange."""
    parts = []
    for scenario, what in SCENARIOS.items():
        rows = [(agent, *(MATRIX[agent, way][scenario].word for way in WAYS)) for agent in AGENTS]
        limits = [
            f"- {f'the agent `{limit.agent}`' if limit.agent else f'the way `{limit.way}`'}, **{limit.outcome.word}**: "
            f"{limit.outcome.why}\n"
            for limit in ledger_matrix.limits(scenario)
        ]
        told = "\n" + "".join(limits) if limits else ""
        parts.append(f"### {scenario}: {what}\n\n{table(('agent', *WAYS), rows)}{told}")
    return "\n".join(parts)


def message_table(vocabulary: dict[str, type[messages.Message]]) -> str:
    """Every message of a direction, with its members."""
    rows = []
    for name, kind in vocabulary.items():
        members = [f"`{field}`{'?' if field in kind.__defaults__ else ''}" for field in kind.__fields__]
        section, _, meaning = " ".join((kind.__doc__ or "").split()).partition(": ")
        rows.append(
            (f"`{name}`", "dialect" if section == "Dialect" else section, ", ".join(members) or "none", meaning)
        )
    return table(("type", "section", "members", "meaning"), rows)


def agent_options() -> str:
    """The flags of `trunkline agent`."""
    rows = []
    for action in _agent_actions():
        shown = " ".join(filter(None, (action.option_strings[-1], _metavar(action))))
        rows.append((f"`{shown}`", f"`{variable}`" if (variable := _variable(action)) else "", _help(action)))
    return table(("flag", "or the variable", "meaning"), rows)


def agent_variables() -> str:
    """The variables that stand for flags of `trunkline agent`."""
    rows = [
        (f"`{variable}`", f"`{action.option_strings[-1]}`")
        for action in _agent_actions()
        if (variable := _variable(action))
    ]
    return table(("variable", "stands for"), rows)


def _agent_actions() -> list[argparse.Action]:
    return [action for action in agent_cli._parser()._actions if action.dest != "help"]


def _metavar(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    return "|".join(action.choices) if action.choices else str(action.metavar)


def _variable(action: argparse.Action) -> str:
    return "" if action.dest in agent_cli.FLAGS_ONLY else f"TRUNKLINE_{action.dest.upper()}"


def _help(action: argparse.Action) -> str:
    told = action.help or ""
    is_told = action.default in (None, False, "") or action.default == [] or "default" in told
    return told if is_told else f"{told} (default: {action.default})"


def command_options() -> str:
    """The commands for people, with their options."""
    context = click.Context(app, info_name="trunkline")
    sections = [_command(app.get_command(context, name), f"trunkline {name}") for name in sorted(COMMANDS)]
    return "\n".join(sections)


def _command(command: click.Command | None, path: str) -> str:
    """Not from `click`'s own help texts, whose form differs from version to version."""
    if command is None:
        raise LookupError(path)
    if isinstance(command, ProgramCommand):
        return _program(command.parser(), path)
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    usage = [path, *(["[OPTIONS]"] if options else []), *map(_placeholder, arguments)]
    inner: list[click.Command | None] = []
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        inner = [command.get_command(context, name) for name in command.list_commands(context)]
        usage.append("COMMAND ...")
    text = f"### `{path}`\n\n`{' '.join(usage)}`\n\n{_purpose(command)}\n"
    if options:
        text += "\n" + table(
            ("option", "meaning"), ((f"`{_spelling(option)}`", _meaning(option)) for option in options)
        )
    return text + "".join("\n" + _command(child, f"{path} {child.name}") for child in inner if child is not None)


def _program(parser: argparse.ArgumentParser, path: str) -> str:
    """A command that bypasses `click`, in the same form."""
    actions = [action for action in parser._actions if action.dest != "help"]
    options = [action for action in actions if action.option_strings]
    arguments = [action for action in actions if not action.option_strings]
    required = [_written(action) for action in options if action.required]
    usage = [path, *required, "[OPTIONS]", *(_optional(action) for action in arguments)]
    rows = [(f"`{_optional(action)}`", _help(action)) for action in arguments]
    rows += [(f"`{_written(action)}`", _help(action)) for action in options]
    text = f"### `{path}`\n\n`{' '.join(usage)}`\n\n{parser.description}\n"
    return text + "\n" + table(("option", "meaning"), rows)


def _written(action: argparse.Action) -> str:
    return " ".join(filter(None, (", ".join(action.option_strings), _metavar(action))))


def _optional(action: argparse.Action) -> str:
    return f"[{action.metavar}]" if action.nargs == "?" else str(action.metavar)


def _purpose(command: click.Command) -> str:
    return " ".join((command.help or "").strip().split("\n\n")[0].split())


def _placeholder(parameter: click.Parameter) -> str:
    if isinstance(parameter.type, click.Choice):
        return "|".join(map(str, parameter.type.choices))
    return parameter.metavar or parameter.type.name.upper()


def _spelling(option: click.Option) -> str:
    return ", ".join(option.opts) + ("" if option.is_flag else f" {_placeholder(option)}")


def _meaning(option: click.Option) -> str:
    default = f" (default: {option.default})" if option.show_default else ""
    return (option.help or "").rstrip(".") + default


def tools() -> list[Tool]:
    """The coding agent's own tools; none of them will be used."""
    # Named, so that the table is the same on every machine.
    bash = BashTool("/", shell="/bin/bash")
    return [
        *standard_tools(Workspace("/"), FileMemory()),
        *(bash, BashOutput(bash.background), KillBash(bash.background)),
        SpawnTool(_Nobody()),
        TodoWrite(print),
        ExitPlanMode(_Nobody()),
        WebFetch(),
        WebSearch(SearchEngine("brave", "")),
        ToolSearch((), print),
        SkillTool(_Nobody()),
    ]


class _Nobody:
    """No sub-agents, no skills, and no plan."""

    is_on = is_known = False

    def approved(self) -> None:
        pass

    async def spawn(self, tasks: Sequence[Task], report: Report) -> Sequence[SubAgentOutcome]:
        return ()

    async def call(self, name: str, args: str) -> str:
        raise LookupError(name)


def tool_table() -> str:
    """Every tool, with its category and limits."""
    rows = []
    for tool in tools():
        beside = "beside others" if tool.concurrent else "by itself"
        rows.append((f"`{tool.name}`", f"`{tool.category}`", beside, f"{tool.limit:,}", _first_sentence(tool)))
    return table(("tool", "category", "runs", "longest result, characters", "meaning"), rows)


def _first_sentence(tool: Tool) -> str:
    return re.split(r"(?<=[.:])\s", tool.description, maxsplit=1)[0].rstrip(".:")


def parameter_table() -> str:
    """What each tool takes."""
    rows = []
    for tool in tools():
        aliases: Mapping[str, str] = getattr(tool, "aliases", {})
        for name, schema in _parameters(tool.parameters):
            other = [alias for alias, meant in aliases.items() if meant == name]
            accepted = "".join(f"; `{alias}` is understood, too" for alias in other)
            needed = "" if name.split("[")[0] in tool.parameters["required"] else "?"
            meaning = str(schema.get("description", "")).rstrip(".") + accepted
            rows.append((f"`{tool.name}`", f"`{name}`{needed}", schema["type"], meaning))
    return table(("tool", "parameter", "type", "meaning"), rows)


def _parameters(schema: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for name, inner in schema["properties"].items():
        if inner["type"] == "array":
            yield from ((f"{name}[].{member}", each) for member, each in inner["items"]["properties"].items())
        else:
            yield name, inner


def provider_table() -> str:
    """Every provider, with its variables and its default model."""
    rows = []
    for name, provider in PROVIDERS.items():
        listed = ", ".join(f"`{variable}`" for variable in provider.variables.values())
        rows.append((f"`{name}`", listed or "none", f"`{provider.model}`"))
    return table(("provider", "variables", "model, unless you name one"), rows)


def discovery_table() -> str:
    """The keys that `trunkline chat` looks for, in order."""
    rows = [
        (f"`{service.variable}`", f"`{name}`", f"`{service.model}`", f"`{service.base_url}`")
        for name, service in SERVICES.items()
        if service.variable is not None
    ]
    return table(("variable", "provider", "model", "address"), rows)


def catalog_table() -> str:
    """The models that answer and that embed."""
    rows = [
        (
            *_of_model(entry),
            f"{entry.context:,}" if entry.context else "",
            entry.licence,
            ", ".join(entry.languages),
            "yes" if entry.is_pinned else "no",
        )
        for entry in catalog.ENTRIES
        if entry.kind in (LLM, EMBEDDING)
    ]
    return table(("model", "size", "memory", "good for", "window, tokens", "licence", "languages", "run here"), rows)


def voice_table() -> str:
    """The models that hear, speak, and tell speech from noise."""
    rows = [
        (
            f"`{entry.name}`",
            f"`{entry.kind}`",
            *_of_model(entry)[1:],
            entry.description,
            entry.licence,
            ", ".join(entry.languages),
            "yes" if entry.is_pinned else "no",
        )
        for entry in catalog.ENTRIES
        if entry.kind not in (LLM, EMBEDDING)
    ]
    return table(
        ("model", "kind", "size", "memory", "good for", "what it is", "licence", "languages", "run here"), rows
    )


def _of_model(entry: CatalogEntry) -> tuple[str, str, str, str]:
    """Its name, size and memory, and what it is good for. Of what is a part of a package, the size is the package's."""
    size = "" if entry.packaged else f"{'about ' * entry.is_about}{entry.expected / 1e6:,.0f} MB"
    memory = f"{entry.memory / 1e6:,.0f} MB{'' if entry.measured else ', estimated'}"
    return f"`{entry.name}`", size, memory, entry.good_for


def slash_commands() -> str:
    """What can be typed with a slash, and who understands it."""
    own = {f"/{name} {usage}".rstrip(): words for name, (usage, words, _) in chat_commands.COMMANDS.items()}
    rows = [(f"`{usage}`", "`trunkline chat`", words) for usage, words in own.items()]
    taken = {usage.split()[0] for usage in own}
    for name, words in coder_commands.HELP.items():
        where = "the coding agent, for hosts and with `-p`" if name in taken else "the coding agent"
        rows.append((f"`{name}`", where, words))
    return table(("command", "understood by", "what it does"), rows)


def settings_table(service: str) -> str:
    """The keys of a service, with what says the same."""
    rows = []
    for key, setting in settings_of(service).items():
        value = "" if setting.default in (None, []) else f"`{jsontext.dumps(setting.default).decode()}`"
        flag = f"`{setting.flag}`" if setting.flag else ""
        narrows = "yes" if setting.narrows else ""
        rows.append([f"`{key}`", setting.about, value or setting.otherwise, flag, f"`{setting.variable}`", narrows])
    return table(("key", "meaning", "default", "flag", "variable", "a workspace may narrow it"), rows)


def unit(name: str) -> str:
    """A systemd unit, whose home is `deploy/systemd`."""
    return f"```ini\n{(ROOT / 'deploy' / 'systemd' / name).read_text(encoding='utf-8')}```\n"


def platform_table() -> str:
    """The tables of the chat platforms that need an account."""
    rows = []
    for name in remote():
        entry = PLATFORMS[name]
        keys = ", ".join(f"`{key}`" for key in entry.table)
        variables = ", ".join(f"`{variable}`" for variable in entry.secrets.values())
        rows.append((f"`[bridge.{name}]`", keys, variables, f"[{entry.title}](../{entry.page})"))
    return table(("table", "keys", "usual variables", "how to get an account"), rows)


def check_table(checks: Mapping[str, Check]) -> str:
    """The requirements that a conformance kit checks."""
    rows = [(f"`{check.id}`", check.tier, check.section, check.requirement) for check in checks.values()]
    return table(("check", "tier", "section", "requirement"), rows)


def recovery_table() -> str:
    """What to do about the errors of the Tryll wire."""
    rows = []
    for (first, last), text in tryll_errors.RECOVERY.items():
        codes = [code for code in tryll_errors.CATALOGUE if first <= code <= last]
        shown = str(codes[0]) if len(codes) == 1 else f"{codes[0]} to {codes[-1]}"
        rows.append((shown, text))
    return table(("code", "what to do"), rows)


SECTIONS: dict[str, Callable[[], str]] = {
    "faults": fault_table,
    "fault-tree": fault_tree,
    "events": event_table,
    "capabilities": capability_table,
    "states": state_diagram,
    "ledger": ledger_table,
    "ledger-overview": ledger_overview,
    **{f"ledger-{wire}": partial(ledger_table, wire) for wire in WIRES if wire != "jsonstream"},
    "matrix": matrix_tables,
    "matrix-agents": lambda: table(("agent", "in the exchange's file"), AGENTS.items()),
    "matrix-ways": lambda: table(("way in", "what it is"), WAYS.items()),
    "matrix-words": lambda: table(("word", "meaning"), WORDS.items()),
    "jsonstream-events": lambda: message_table(dict(messages.EVENTS)),
    "jsonstream-commands": lambda: message_table(dict(messages.COMMANDS)),
    "agent-options": agent_options,
    "agent-variables": agent_variables,
    "commands": command_options,
    "tools": tool_table,
    "tool-parameters": parameter_table,
    "providers": provider_table,
    "discovered-keys": discovery_table,
    "catalog": catalog_table,
    "voices": voice_table,
    **{f"{service}-settings": partial(settings_table, service) for service in SERVICE_SECTIONS},
    "bridge-platforms": platform_table,
    "unit-exchange": partial(unit, "trunkline.service"),
    "unit-runner": partial(unit, "trunkline-runner.service"),
    "slash-commands": slash_commands,
    "jsonstream-checks": lambda: check_table(jsonstream_checks.SUITE.checks),
    "host-checks": lambda: check_table(host_checks.SUITE.checks),
    "agentproc-checks": lambda: check_table(agentproc_checks.SUITES["0.1"].checks),
    "agentproc-04-checks": lambda: check_table(agentproc_checks.SUITES["0.4"].checks),
    "bridge-checks": lambda: check_table(bridge_checks.SUITE.checks),
    "acp-checks": lambda: check_table(acp_checks.SUITE.checks),
    "mcp-checks": lambda: check_table(mcp_checks.SUITE.checks),
    "openai-checks": lambda: check_table(openai_checks.SUITE.checks),
    "sns-checks": lambda: check_table(sns_checks.SUITE.checks),
    "python-names": name_tables,
    "tryll-recovery": recovery_table,
    "tryll-checks": lambda: check_table(tryll_checks.SUITE.checks),
}


def renewed(text: str) -> str:
    """A document with its generated parts as the code has them now."""
    return _MARKED.sub(lambda found: f"{found['name']} -->\n\n{SECTIONS[found['name']]()}\n", text)


def names_in(text: str) -> list[str]:
    """The generated parts of a document."""
    return [found["name"] for found in _MARKED.finditer(text)]


def main() -> None:
    """Write all generated parts anew."""
    for path in DOCUMENTS:
        old = path.read_text(encoding="utf-8")
        new = renewed(old)
        if new != old:
            path.write_text(new, encoding="utf-8")
            print(path)


if __name__ == "__main__":
    main()
