"""What extends one conversation: its skills, its commands, its output style and its memory, as they are on the disk.

All of it is looked at before each message, and what has not changed is not read again. What the system prompt says of
it stays the same words as long as nothing has changed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from trunkline.agents.coder.extending import own_commands, skills, styles
from trunkline.agents.coder.extending.broken import BrokenFiles
from trunkline.agents.coder.extending.memory import ProjectMemory
from trunkline.agents.coder.extending.shelf import MarkdownShelf, ShelfFile
from trunkline.agents.coder.extending.skills import Skill, Skills, SkillSet
from trunkline.agents.coder.extending.styles import OutputStyle
from trunkline.base.nearest import suggestion
from trunkline.base.paths import HomeUnknown, is_within, unusable
from trunkline.base.printable import printable_line
from trunkline.base.redact import Redactor
from trunkline.core.events import ToolRequested
from trunkline.core.faults import ConfigError
from trunkline.core.rules import first_match
from trunkline.tools.read import Read
from trunkline.tools.skill import SkillTool
from trunkline.tools.threads import in_thread
from trunkline.tools.workspace import Workspace

#: Names of skills that are told where one is asked for that there is not.
MOST_NAMED = 50


class Extensions:
    """See the module. Before `look` there is nothing but the built-in output styles."""

    def __init__(
        self,
        workspace: Workspace,
        environ: Mapping[str, str],
        redactor: Redactor,
        *,
        trusted: bool = False,
        style: str | None = None,
    ) -> None:
        root = workspace.root
        self._workspace = workspace
        self._redactor = redactor
        self._environ = environ
        self._skills = Skills(root, environ, trusted=trusted)
        self._commands = MarkdownShelf("commands", root, environ, trusted=trusted)
        self._styles = MarkdownShelf("output-styles", root, environ, trusted=trusted)
        self._wanted_style = style or styles.DEFAULT
        self.style = OutputStyle(styles.DEFAULT, "", "")
        self.memory: ProjectMemory | None = None
        """None where nobody says where this user's files belong."""
        self._memory_section = ""
        self._listed = ""
        self._told: SkillSet | None = None
        self._broken_skills = BrokenFiles("Skills", "`trunkline skills check` looks at all of them.")
        self._allowed: list[str] = []
        self.notes: list[str] = []
        """What people should be told, once."""
        self.tool = SkillTool(self)

    # Looking

    async def refresh(self) -> None:
        """Look at what is there now, beside the event loop."""
        await in_thread(lambda stop: self.look())

    def look(self) -> None:
        """Look at what is there now. Blocks for as long as the disk needs."""
        found = self._skills.look()
        if found is not self._told:
            self.notes += self._broken_skills.news({each.file: each.problem for each in found.broken})
            self._told = found
            self._listed = skills.listed(found, self._redactor.text)
            self._workspace.readable = tuple(self._readable(found))
        for shelf in (self._commands, self._styles):
            shelf.look()
            self.notes += shelf.news()
        self._take_style()
        if self.memory is None:
            self._begin_memory()

    def _take_style(self) -> None:
        found = styles.find(self._wanted_style, self._styles.files)
        if found is not None:
            self.style = found.replace(text=self._redactor.text(found.text))
        elif self._wanted_style != self.style.name:
            known = ", ".join(f"`{name}`" for name in self.styles)
            name = printable_line(self._wanted_style)
            self.notes.append(f"There is no output style `{name}`: `{self.style.name}` is used. There are {known}.")
            self._wanted_style = self.style.name

    def _begin_memory(self) -> None:
        try:
            self.memory = ProjectMemory(self._workspace.root, self._environ, self._redactor.text)
        except HomeUnknown:
            return
        self._workspace.kept = os.path.realpath(self.memory.directory)
        self._workspace.clean = self.memory.fit
        self._memory_section = self.memory.section()

    def _readable(self, found: SkillSet) -> Collection[str]:
        """The folders of the skills. One that holds the home directory or the workspace is a trick, or a slip."""
        home = os.path.realpath(os.path.expanduser("~"))
        root = os.path.realpath(self._workspace.root)
        real = {os.path.realpath(skill.folder) for skill in found.skills.values()}
        return sorted(folder for folder in real if not any(is_within(place, folder) for place in (home, root)))

    # What the model is told

    def sections(self, tools: Collection[str]) -> Mapping[str, str]:
        """What the system prompt says of it, to a model that has these tools, by what it is."""
        listed = self._listed if SkillTool.name in tools else ""
        said = {"output style": self.style.section, "memory": self._memory_section, "skills": listed}
        return {name: section for name, section in said.items() if section}

    @property
    def has_skills(self) -> bool:
        """Whether there is a skill that a model could call."""
        return bool(self._listed)

    async def call(self, name: str, args: str) -> str:
        """See `tools.skill.SkillShelf`."""
        skill = self.skills.find(name)
        if skill is None:
            offered = [each.name for each in self.skills.skills.values() if not each.hidden]
            told = ", ".join(offered[:MOST_NAMED]) + (", ..." if len(offered) > MOST_NAMED else "")
            shown = printable_line(name)
            raise LookupError(f"There is no skill `{shown}`.{suggestion(name, offered)} There are: {told or 'none'}.")
        if skill.hidden:
            raise LookupError(f"The skill `{skill.name}` is for the user alone, who calls it as `/{skill.name}`.")
        return await self.use(skill, args)

    # What people call

    @property
    def skills(self) -> SkillSet:
        """As they were found last."""
        return self._skills.found

    @property
    def commands(self) -> Mapping[str, ShelfFile]:
        """The user's and the workspace's, as they were found last; those too that cannot be used."""
        return self._commands.files

    @property
    def styles(self) -> Mapping[str, str]:
        """The output styles, with what each is for."""
        return styles.names(self._styles.files)

    async def use(self, skill: Skill, args: str) -> str:
        """What a skill says, for the model. What it allows counts from now on, to the end of the turn.

        Raises:
            ConfigError: it cannot be read any more.
        """
        text = await in_thread(lambda stop: skills.text_of(skill, args))
        self._allow(skill.granted)
        return text

    async def use_command(self, file: ShelfFile, args: str) -> str:
        """What a command says, for the model. What it allows counts as a skill's does.

        Raises:
            ConfigError: it cannot be read any more.
        """
        text = await in_thread(lambda stop: own_commands.text_of(file, args))
        if file.trusted:
            self._allow(file.contents.matter.words("allowed-tools"))
        return text

    async def use_style(self, name: str) -> bool:
        """Answer in another style from now on; whether there is one of that name."""
        found = await in_thread(lambda stop: styles.find(name, self._styles.look()))
        if found is not None:
            self._wanted_style, self.style = found.name, found.replace(text=self._redactor.text(found.text))
        return found is not None

    async def remember(self, line: str) -> str:
        """Keep one more line in the memory; the model is told at once. Gives the line as it is kept.

        Raises:
            ConfigError: it cannot be kept.
        """
        memory = self.memory
        try:
            if memory is None:
                raise HomeUnknown("There is no home directory. Set `HOME` or `TRUNKLINE_HOME` to an absolute path.")
            kept = await in_thread(lambda stop: memory.add(line))
        except OSError as error:
            raise ConfigError(unusable(error)) from None
        await self.recall()
        return kept

    async def recall(self) -> str:
        """All that is remembered. What the model is told of it is brought up to date."""
        memory = self.memory
        if memory is None:
            return ""
        self._memory_section = await in_thread(lambda stop: memory.section())
        return await in_thread(lambda stop: memory.text())

    # What need not be asked

    def _allow(self, rules: Collection[str]) -> None:
        self._allowed += [rule for rule in rules if rule not in self._allowed]

    def begin_turn(self) -> None:
        """What a skill or a command allowed was for the turn that called it."""
        self._allowed.clear()

    def allows(self, request: ToolRequested) -> bool:
        """Whether nobody needs to be asked about a call: a skill or a command that this turn has called says so, or it
        reads a file beside a skill."""
        if request.name == Read.name and self._workspace.is_lent(str(request.args.get("file_path", ""))):
            return True
        return bool(self._allowed) and first_match("allow", self._allowed, request, self._workspace.root) is not None
