"""What people type to use what extends the agent: `/skills`, `/memory`, `/output-style`, and `/name` of each skill and
of each command of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from trunkline.agents.coder.commands import AsMessage, Run, TypedCommand, listed
from trunkline.agents.coder.compaction import Say
from trunkline.agents.coder.extending import own_commands
from trunkline.agents.coder.extending.extensions import Extensions
from trunkline.agents.coder.extending.markdown import typed
from trunkline.agents.coder.extending.shelf import ShelfFile
from trunkline.agents.coder.extending.skills import Skill
from trunkline.base.nearest import suggestion
from trunkline.base.printable import printable_line
from trunkline.base.programs import as_typed
from trunkline.base.redact import Redactor
from trunkline.core.faults import Mistyped

#: What stands behind a command that does not say itself what its arguments look like.
ARGUMENTS = "[ARGUMENTS]"
#: What of the memory is shown; the file is there for the rest.
MOST_SHOWN = 20_000


class TypedExtensions:
    """The commands for one conversation's extensions."""

    def __init__(self, extensions: Extensions, redactor: Redactor, on_style: Callable[[str], None]) -> None:
        """`on_style` hears of the output style that somebody chooses."""
        self._extensions = extensions
        self._on_style = on_style
        self._clean = redactor.text
        self._offered_now: tuple[object, object, Mapping[str, TypedCommand]] = (None, None, {})

    def offered(self) -> Mapping[str, TypedCommand]:
        """What can be typed, as the extensions are now."""
        skills, files, found = self._offered_now
        if skills is not self._extensions.skills or files is not self._extensions.commands:
            skills, files, found = self._extensions.skills, self._extensions.commands, self._made()
            self._offered_now = skills, files, found
        return found

    def _made(self) -> Mapping[str, TypedCommand]:
        found: dict[str, TypedCommand] = {}
        for file in self._extensions.commands.values():
            if not file.contents.problem:
                hint = file.contents.matter.text("argument-hint")
                _offer(found, file.name, own_commands.about(file), partial(self._own, file), hint)
        for skill in self._extensions.skills.skills.values():
            _offer(found, skill.name, skill.description, partial(self._skill, skill), skill.hint)
        return {
            **found,
            "/skills": TypedCommand("the skills there are", self._skills),
            "/memory": TypedCommand(
                "what is remembered of this workspace", self._memory, "[add TEXT]", needs_approver=bool
            ),
            "/output-style": TypedCommand("how the agent answers, or another way", self._style, "[NAME]"),
        }

    async def _skill(self, skill: Skill, args: str, say: Say) -> AsMessage:
        text = await self._extensions.use(skill, args)
        return AsMessage(self._clean(f"[The user calls the skill `{skill.name}`. Do what it says.]\n\n{text}"))

    async def _own(self, file: ShelfFile, args: str, say: Say) -> AsMessage:
        return AsMessage(self._clean(await self._extensions.use_command(file, args)))

    async def _skills(self, args: str, say: Say) -> str:
        found = self._extensions.skills
        if not found.skills:
            return "There are no skills. A skill is a folder with a `SKILL.md`, such as `.trunkline/skills/NAME`."
        told = [f"/{typed(name)}  {skill.description}" for name, skill in found.skills.items()]
        return listed(told, where=as_typed("; `trunkline skills list` lists them all"))

    async def _memory(self, args: str, say: Say) -> str:
        verb, _, text = args.partition(" ")
        if verb.lower() == "add" and text.strip():
            return f"Remembered: {await self._extensions.remember(text)}"
        if args:
            raise Mistyped(
                f"`/memory {printable_line(verb)}` was not understood.", hint="Say `/memory`, or `/memory add TEXT`."
            )
        memory = self._extensions.memory
        text = (await self._extensions.recall()).strip()
        if memory is None or not text:
            return "Nothing is remembered of this workspace yet. `/memory add TEXT` adds a line."
        cut = f"{text[:MOST_SHOWN]}\n[...]" if len(text) > MOST_SHOWN else text
        return f"{memory.file}:\n\n{cut}"

    async def _style(self, args: str, say: Say) -> str:
        known = self._extensions.styles
        if not args:
            now = self._extensions.style.name
            return f"The output style is `{now}`. There are:\n" + listed([*map("  ".join, known.items())])
        if not await self._extensions.use_style(args):
            names = ", ".join(f"`{name}`" for name in known)
            raise Mistyped(
                f"There is no output style `{printable_line(args)}`.{suggestion(args, known)}",
                hint=f"There are {names}.",
            )
        self._on_style(self._extensions.style.name)
        return f"The output style is `{self._extensions.style.name}` now, in this conversation."


def _offer(found: dict[str, TypedCommand], name: str, about: str, run: Run, hint: str) -> None:
    found[f"/{typed(name)}"] = TypedCommand(about, run, printable_line(hint.strip()) or ARGUMENTS)
