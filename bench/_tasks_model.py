"""The recorded model of a task: a server that answers what `answers.yaml` says, and writes down what it is asked.

    main:
      - say: I look at the test first.
        call:
          - Read: {file_path: stats.py}
      - say: It is solved.
    "Find every caller of parse":
      - say: There are two.

Answers are given in their order. A request belongs to the sub-agent whose task begins with the key; all others are
`main`. `$REPO` stands for the directory in which the task is done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from bench._tasks import BrokenTask, Task
from bench._tasks_requests import (
    CHANGED_PROMPT,
    OTHER_PROMPT,
    Entry,
    Wording,
    answered,
    changed_lines,
    new_in,
    read,
)

from tests.support import conversations
from tests.support.provider import Reply, Request
from tests.support.provider_streams import (
    Event,
    anthropic_sse,
    anthropic_text,
    anthropic_tool_calls,
    openai_sse,
    openai_text,
    openai_tool_calls,
)

MAIN = "main"

#: No provider tells the number before it has counted; about as many characters make a token.
_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True)
class Answer:
    """Words, calls of tools, or both."""

    say: str = ""
    call: tuple[tuple[str, Any], ...] = ()


Script = Mapping[str, tuple[Answer, ...]]


def script_of(task: Task, repo: str) -> Script:
    """What a task's `answers.yaml` says, for one that is done in the directory `repo`.

    Raises:
        BrokenTask: it cannot be read, or has something that is no answer.
    """
    try:
        text = (task.folder / "answers.yaml").read_text(encoding="utf-8")
        found = yaml.safe_load(text.replace("$REPO", repo))
        script = {opening: tuple(map(_answer, answers)) for opening, answers in found.items()}
    except (OSError, yaml.YAMLError, TypeError, ValueError, AttributeError) as error:
        raise BrokenTask(f"`{task.name}`: `answers.yaml` cannot be used: {error}") from error
    if MAIN not in script:
        raise BrokenTask(f"`{task.name}`: `answers.yaml` has no `{MAIN}`. Put the model's answers there.")
    return script


def _answer(given: Any) -> Answer:
    if strange := given.keys() - {"say", "call"}:
        raise ValueError(f"an answer has `say` and `call`, not `{strange.pop()}`")
    calls = [pair for call in given.get("call", ()) for pair in call.items()]
    return Answer(given.get("say", "").strip(), tuple(calls))


@dataclass
class _Conversation:
    """What was said in one, and what it looks like as text."""

    prompt: str
    """The system prompt and the tools of the last request; before the first, the usual ones."""
    said: list[Entry] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    answers: int = 0


class RecordedModel:
    """Answers by a script. `prompt` is the system prompt and the tools that a request has as a rule."""

    def __init__(self, script: Script, plain: Wording, prompt: str = "") -> None:
        self._script = {plain(opening): answers for opening, answers in script.items()}
        self._plain = plain
        self._usual_prompt = prompt
        self._conversations = {opening: _Conversation(prompt) for opening in self._script}
        self.prompt = ""
        """That of the first request."""
        self.left: list[str] = []
        """What is wrong with the number of requests, or with one that a provider would refuse."""

    def answer(self, request: Request) -> Reply:
        """The reply to a request, in its format."""
        asked = read(request.json, self._plain)
        self.prompt = self.prompt or asked.prompt
        others = (name for name in self._script if name != MAIN)
        name = next((name for name in others if asked.opening.startswith(name)), MAIN)
        conversation = self._conversations[name]
        changed = changed_lines(conversation.prompt, asked.prompt, self._usual_prompt)
        head = [CHANGED_PROMPT if conversation.requests else OTHER_PROMPT, changed] if changed else []
        conversation.requests.append("\n".join([*head, new_in(asked, conversation.said)]))
        conversation.prompt = asked.prompt
        try:
            conversations.read(request.json)
        except AssertionError as error:
            self.left.append(f"`{name}`: a provider would refuse request {len(conversation.requests)}: {error}")
        if conversation.answers == len(self._script[name]):
            self.left.append(f"`{name}`: there is no answer to request {len(conversation.requests)}")
            refusal = {"error": {"message": "the recorded model has no answer left"}}
            # A status that nobody tries again.
            return Reply([json.dumps(refusal).encode()], status=418, headers={"content-type": "application/json"})
        answer = self._script[name][conversation.answers]
        conversation.answers += 1
        conversation.said = [*asked.said, *answered(answer.say, answer.call, self._plain)]
        number = [*self._script].index(name)
        return Reply([_stream(request, answer, f"{number}-{conversation.answers}")])

    def requests(self) -> str:
        """All that it was asked, as it is recorded."""
        return "\n".join(
            f"===== {name}: request {number}\n{text}\n"
            for name, conversation in self._conversations.items()
            for number, text in enumerate(conversation.requests, 1)
        )

    def complaints(self) -> list[str]:
        """What is wrong, besides the words: answers that nobody wanted, requests that no answer is for."""
        unused = [
            f"`{name}`: {len(self._script[name]) - conversation.answers} answers were not asked for"
            for name, conversation in self._conversations.items()
            if conversation.answers < len(self._script[name])
        ]
        return [*self.left, *unused]


def _stream(request: Request, answer: Answer, answer_id: str) -> bytes:
    ids = [f"call-{answer_id}-{number}" for number, _ in enumerate(answer.call, 1)]
    sent, made = len(request.body) // _CHARACTERS_PER_TOKEN, len(str(answer)) // _CHARACTERS_PER_TOKEN
    if request.is_anthropic:
        events = anthropic_tool_calls(answer.call, text=answer.say, ids=ids) if ids else anthropic_text(answer.say)
        _at(events, "message_start")["message"]["usage"]["input_tokens"] = sent
        _at(events, "message_delta")["usage"]["output_tokens"] = made
        return anthropic_sse(events)
    chunks = openai_tool_calls(answer.call, text=answer.say, ids=ids) if ids else openai_text(answer.say)
    chunks[-1]["usage"] |= {"prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made}
    return openai_sse(chunks)


def _at(events: list[Event], kind: str) -> Event:
    return next(event for event in events if event["type"] == kind)
