"""Director: characters talk with each other about the user's message, under a budget of lines and of tokens.

They speak in their order, or a model chooses who is next. The scene ends with the budget, with an empty line, or when a
character says `[END]`. Each line goes out when it is complete.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from string import ascii_uppercase

from trunkline.agents.graph.dialog import Dialog
from trunkline.agents.graph.host import Host
from trunkline.agents.graph.nodes.base import ModelNode, Node
from trunkline.agents.graph.scene import END_WORD, Line, cleaned, is_complete, lines_of, seen_by, whole_sentences
from trunkline.agents.graph.turn import Delta, GraphTurn, NodeNotice, TurnEvent
from trunkline.core.faults import ProviderError
from trunkline.core.graph.description import CharacterDefinition, DirectorParams, NodeDescription
from trunkline.core.graph.models import SamplingParams
from trunkline.core.graph.ordinals import DirectorStrategy
from trunkline.models.engines import ChatMessage, Prompt

#: Characters of one scene: each has a place of its own in its engine, which a server has few of.
MAX_CHARACTERS = 8
#: Letters of a character's name, which stands before each of its lines.
MAX_NAME = 64
#: What is told of each line.
LINE_EVENT = "line"

#: Letters of a character's instructions by which a model chooses who is next.
_ABOUT = 200
_GO_ON = "Go on."
_CHOOSE = "Who speaks next? Answer with one letter."


class Director(Node[DirectorParams]):
    """A node of several models: one for each character, and one that chooses if it is asked to."""

    def __init__(self, description: NodeDescription, params: DirectorParams) -> None:
        super().__init__(description, params)
        self.names = [each.name for each in params.characters]
        self._actors = [_Actor(description, params, each, self.names) for each in params.characters]
        self._chooser = _Chooser(description, params) if params.strategy == DirectorStrategy.MODEL else None
        self._default_model = ""

    def check(self) -> None:
        if not 1 <= len(self.names) <= MAX_CHARACTERS:
            raise self.wrong(f"{len(self.names)} `characters`, and there must be 1 to {MAX_CHARACTERS}")
        folded = [name.casefold() for name in self.names]
        for name in self.names:
            if not name.strip() or name != name.strip() or len(name) > MAX_NAME or folded.count(name.casefold()) > 1:
                raise self.wrong(
                    f"the name of one of its `characters`, `{name[:MAX_NAME]}`, is empty, longer than {MAX_NAME} "
                    "characters, there twice, or has a blank at its end"
                )
            if ":" in name or not name.isprintable():
                raise self.wrong(f"the name of one of its `characters`, {name!a}, has a colon or is not printable")

    @property
    def _parts(self) -> list[ModelNode[DirectorParams]]:
        return [*self._actors, *([self._chooser] if self._chooser is not None else [])]

    async def open(self, host: Host, default_model: str) -> None:
        self._default_model = default_model
        for part in self._parts:
            await part.open(host, default_model)

    async def change(self, params: DirectorParams, host: Host) -> None:
        for actor in self._actors:
            actor.see_to_sampling(params)
        chooser = None
        if params.strategy == DirectorStrategy.MODEL:
            chooser = self._chooser or _Chooser(NodeDescription(self.name, params), params)
            if chooser is not self._chooser:
                await chooser.open(host, self._default_model)
        elif self._chooser is not None:
            self._chooser.close()
        self.params, self._chooser = params, chooser
        for part in self._parts:
            part.params = params

    def close(self) -> None:
        for part in self._parts:
            part.close()

    @property
    def streams(self) -> bool:
        return True

    async def stream(self, turn: GraphTurn, dialog: Dialog) -> AsyncGenerator[TurnEvent, None]:
        """Let them speak, one after the other.

        Raises:
            NodeFailed, ProviderError: a model failed.
        """
        said: list[Line] = []
        before = turn.tokens
        spent = choices = 0
        ended = ""
        while not ended:
            actor, was_chosen = await self._next(turn, dialog, said)
            line, end = await actor.line(turn, dialog, said, self.params.max_tokens - spent)
            choices += was_chosen
            # To choose takes one letter, which no engine tells as a token. It counts once the line is said.
            spent = turn.tokens - before + choices
            if line.text:
                yield Delta(f"\n{line.told}" if said else line.told)
                if self.params.notify_client:
                    pairs = (("speaker", line.speaker), ("text", line.text))
                    yield NodeNotice(self.name, LINE_EVENT, pairs)
                said.append(line)
            ended = self._ended(line, end, len(said), spent)
            if turn.data is not None:
                turn.data |= {
                    "lines": str(len(said)),
                    "speakers": ", ".join(each.speaker for each in said),
                    "tokens": str(spent),
                    "ended_by": ended,
                }
        turn.settle()

    def _ended(self, line: Line, end: bool, lines: int, spent: int) -> str:
        if end:
            return f"{line.speaker} said {END_WORD}"
        if not line.text:
            return f"{line.speaker} said nothing"
        if lines >= self.params.max_lines:
            return f"max_lines ({self.params.max_lines})"
        return f"max_tokens ({self.params.max_tokens})" if spent >= self.params.max_tokens else ""

    async def _next(self, turn: GraphTurn, dialog: Dialog, said: Sequence[Line]) -> tuple[_Actor, bool]:
        """Who is next, and whether a model was asked."""
        last = self.names.index(said[-1].speaker) if said else -1
        in_order = self._actors[(last + 1) % len(self._actors)]
        others = [actor for actor in self._actors if not said or actor.character.name != said[-1].speaker]
        if self._chooser is None or len(others) < 2:
            return in_order, False
        chosen = await self._chooser.choose(turn, dialog, said, [actor.character for actor in others])
        return in_order if chosen is None else others[chosen], True


class _Actor(ModelNode[DirectorParams]):
    """One character."""

    def __init__(
        self,
        description: NodeDescription,
        params: DirectorParams,
        character: CharacterDefinition,
        names: Sequence[str],
    ) -> None:
        super().__init__(description, params)
        self.character = character
        self._names = names
        self._said: Sequence[Line] = ()
        self._room = params.max_tokens

    async def open(self, host: Host, default_model: str) -> None:
        await self.open_model(host, self.character.model_name or self.params.model_name or default_model)

    async def line(self, turn: GraphTurn, dialog: Dialog, said: Sequence[Line], room: int) -> tuple[Line, bool]:
        """What the character says next, in so many tokens; and whether that ends the scene."""
        self._said, self._room = said, room
        begun, text = turn.tokens, ""
        cut = False
        async with aclosing(self.pieces(turn, dialog)) as pieces:
            async for piece in pieces:
                text += piece
                cut = turn.tokens - begun >= room
                if cut or is_complete(text, self.character.name):
                    break
        spoken, end = cleaned(text, self.character.name)
        if cut and not is_complete(text, self.character.name):
            spoken = whole_sentences(spoken)
        return Line(self.character.name, spoken), end

    def sampling(self, params: DirectorParams) -> SamplingParams:
        found = super().sampling(params)
        return found if found.max_tokens <= self._room else found.replace(max_tokens=self._room)

    def prompt(self, turn: GraphTurn, dialog: Dialog) -> Prompt:
        name = self.character.name
        begin = ChatMessage("system", self._told())
        current = seen_by(name, [Line("", turn.text), *self._said])
        if current[-1].role == "assistant":
            # Somebody who is alone on the stage.
            current.append(ChatMessage("user", _GO_ON))
        history = seen_by(name, lines_of(self.window.history(dialog, (begin, *current)), self._names))
        return Prompt((begin, *history, *current), 1 + len(history))

    def _told(self) -> str:
        others = [name for name in self._names if name != self.character.name]
        beside = f" You talk with {_listed(others)}." if others else ""
        manner = (
            f"You are {self.character.name}.{beside} Say what {self.character.name} says next, in one line and without "
            f"a name before it. If there is nothing left to say, write {END_WORD}."
        )
        return "\n".join(part for part in (self.params.system_prompt, self.character.system_prompt, manner) if part)


class _Chooser(ModelNode[DirectorParams]):
    """Who decides who speaks."""

    _said: Sequence[Line] = ()
    _characters: Sequence[CharacterDefinition] = ()

    async def choose(
        self, turn: GraphTurn, dialog: Dialog, said: Sequence[Line], characters: Sequence[CharacterDefinition]
    ) -> int | None:
        """The place of the one who is next. None if the model does not say."""
        self._said, self._characters = said, characters
        letters = list(ascii_uppercase[: len(characters)])
        try:
            scores = await self.scores(turn, dialog, letters)
        except ProviderError:
            return None
        except Exception as error:
            raise self.failed(error) from error
        if len(scores) != len(letters):
            return None
        return max(range(len(scores)), key=lambda at: (scores[at], -at))

    def prompt(self, turn: GraphTurn, dialog: Dialog) -> Prompt:
        about = "\n".join(
            f"{letter}) {each.name}: {' '.join(each.system_prompt.split())[:_ABOUT]}"
            for letter, each in zip(ascii_uppercase, self._characters, strict=False)
        )
        begin = ChatMessage("system", "\n".join(filter(None, (self.params.system_prompt, _CHOOSE, about))))
        user = ChatMessage("user", "\n".join(line.told for line in (Line("", turn.text), *self._said)))
        history = self.window.history(dialog, (begin, user))
        return Prompt((begin, *history, user), 1 + len(history))


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
