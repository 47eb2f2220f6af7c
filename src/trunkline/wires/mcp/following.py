"""A client that waits for an answer: it is told how it goes, and asked what must be asked."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from trunkline.base import jsontext
from trunkline.base.cutting import cut_between_words
from trunkline.core.agent import Deny
from trunkline.core.events import ToolRequested
from trunkline.wires.mcp import messages
from trunkline.wires.mcp.asking import AskRun
from trunkline.wires.mcp.messages import Json
from trunkline.wires.mcp.offer import Caller

#: How soon after the last one a new word of progress is told, in seconds: faster than people read is no use.
PROGRESS_SECONDS = 0.2
#: After how much silence progress is told again: clients that give up after a while wait on when they hear of it.
ALIVE_SECONDS = 10.0
#: What is shown of a call's arguments in a question.
ARGUMENT_CHARS = 2000

NOBODY_TO_ASK = (
    "This needs approval, and this MCP client cannot be asked. Allow the tool where the agent is served, with "
    "`--allow` or `--mode`."
)


class Following:
    """One request that waits for a run."""

    def __init__(self, run: AskRun, caller: Caller) -> None:
        self._run = run
        self._caller = caller
        self._asked: dict[str, asyncio.Task[Json | None]] = {}
        """The questions that the client was asked, also those that have their answer."""
        self._told = ""
        self._told_at = 0.0

    async def end(self) -> tuple[ToolRequested, ...]:
        """Wait until it is over; or give the questions that the request's result must be."""
        try:
            while not self._run.over:
                self._run.news.clear()
                questions = {each.call_id: each for each in self._run.questions}
                if questions and self._may_ask and self._caller.answers_by_asking_again:
                    return tuple(questions.values())
                self._see_to(questions)
                await self._tell(questions)
                await self._news()
        finally:
            for task in self._asked.values():
                task.cancel()
        return ()

    @property
    def _may_ask(self) -> bool:
        return self._run.may_answer and self._caller.can_be_asked

    def _see_to(self, questions: Mapping[str, ToolRequested]) -> None:
        """Ask what was not asked, take the answers, and withdraw what somebody else has answered."""
        if self._may_ask:
            for call_id in questions.keys() - self._asked.keys():
                asking = self._caller.ask(question_text(self._run, questions[call_id]), messages.decision_form())
                self._asked[call_id] = asyncio.create_task(asking, name=f"ask about `{call_id}`")
        for call_id, task in self._asked.items():
            if call_id not in questions:
                task.cancel()
            elif task.done() and not task.cancelled() and (answer := task.result()) is not None:
                self._run.answer(call_id, messages.decision_of(answer))
        if not self._caller.keeper.is_shared:
            for call_id in questions:
                if call_id not in self._asked or _came_to_nothing(self._asked[call_id]):
                    self._run.answer(call_id, Deny(NOBODY_TO_ASK))

    async def _tell(self, questions: Collection[str]) -> None:
        status = self._run.status
        if waiting := [call_id for call_id in questions if call_id not in self._asked]:
            status = f"{len(waiting)} tool calls wait for approval by somebody else"
            if len(waiting) == 1:
                status = "A tool call waits for approval by somebody else"
        elif questions:
            status = "A tool call waits for your approval"
        now = asyncio.get_running_loop().time()
        if status != self._told or now - self._told_at >= ALIVE_SECONDS:
            # Of the run, not of the request: one that is made again with answers goes on counting.
            self._run.told += 1
            await self._caller.progress(self._run.told, self._run.clean(status))
            self._told, self._told_at = status, asyncio.get_running_loop().time()

    async def _news(self) -> None:
        """Wait for something new, and a little longer if something was told just now."""
        open_questions = {task for task in self._asked.values() if not task.done()}
        news = asyncio.ensure_future(self._run.news.wait())
        try:
            await asyncio.wait(
                {news, self._run.task, *open_questions}, timeout=ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            news.cancel()
        rest = self._told_at + PROGRESS_SECONDS - asyncio.get_running_loop().time()
        if rest > 0 and not self._run.questions:
            await asyncio.wait({self._run.task}, timeout=rest)


def question_text(run: AskRun, request: ToolRequested) -> str:
    """What a client's user is asked about a tool call."""
    lines = [f"The agent `{run.agent}` wants to use the tool `{request.name}`."]
    if request.description:
        lines.append(cut_between_words(request.description, ARGUMENT_CHARS))
    if request.args:
        lines.append(cut_between_words(jsontext.dumps(dict(request.args)).decode(), ARGUMENT_CHARS))
    if request.outside:
        lines.append("It reaches beyond the session's directory.")
    return run.clean("\n\n".join(lines))


def _came_to_nothing(task: asyncio.Task[Json | None]) -> bool:
    """Whether a client that was asked could not be."""
    return task.done() and not task.cancelled() and task.result() is None
