"""ToolCall: a model chooses tools. It is told which calls were chosen; nobody here carries them out."""

from __future__ import annotations

import asyncio

from trunkline.agents.graph.dialog import Dialog
from trunkline.agents.graph.host import Host
from trunkline.agents.graph.nodes.base import ModelNode
from trunkline.agents.graph.turn import GraphTurn, NodeNotice
from trunkline.base import jsontext
from trunkline.core.faults import BadParameter
from trunkline.core.graph.description import NodeDescription, ToolCallParams
from trunkline.models import tool_calls
from trunkline.models.engines import ChatMessage, Prompt

#: Tools of one node, and parameters of one tool: a grammar has a rule for each.
MAX_TOOLS = 128
MAX_PARAMETERS = 64

TOOL_EVENT = "tool_call"

_NOTHING_SAID = Dialog()


class ToolCallNode(ModelNode[ToolCallParams]):
    """Calls never enter a prompt, and what is no call is no error."""

    def __init__(self, description: NodeDescription, params: ToolCallParams) -> None:
        super().__init__(description, params)
        self.tools = params.tools or description.tools
        self.format = params.tool_call_format or tool_calls.DEFAULT_FORMAT
        self._grammar: dict[tuple[bool, int, str], str] = {}

    def check(self) -> None:
        if self.format not in tool_calls.FORMATS:
            known = ", ".join(tool_calls.FORMATS)
            raise self.wrong(f"`tool_call_format` is `{self.format}`, and must be one of {known}")
        if len(self.tools) > MAX_TOOLS:
            raise self.wrong(f"more than {MAX_TOOLS} tools")
        names = [tool.name for tool in self.tools]
        for tool in self.tools:
            if not tool.name or names.count(tool.name) > 1:
                raise self.wrong(f"the name of the tool `{tool.name}` is empty, or there twice")
            parameters = [parameter.name for parameter in tool.parameters]
            if len(parameters) > MAX_PARAMETERS or len(set(parameters)) != len(parameters) or not all(parameters):
                raise self.wrong(
                    f"a parameter of the tool `{tool.name}` is empty or there twice, or there are too many"
                )

        self._see_to_schema(self.params)

    def _see_to_schema(self, params: ToolCallParams) -> None:
        sampling = params.sampling
        if sampling is not None and sampling.json_schema and not params.generate_on_no_tool:
            raise self.wrong(
                "`sampling.json_schema` is the form of its answer, and without `generate_on_no_tool` it gives none",
                BadParameter,
            )

    async def change(self, params: ToolCallParams, host: Host) -> None:
        self._see_to_schema(params)
        await super().change(params, host)

    async def open(self, host: Host, default_model: str) -> None:
        await super().open(host, default_model)
        if not self.params.tool_call_format and self.engine.tool_call_format in tool_calls.FORMATS:
            self.format = self.engine.tool_call_format

    def prompt(self, turn: GraphTurn, dialog: Dialog) -> Prompt:
        may_answer = self.params.generate_on_no_tool
        parts = [self.params.system_prompt or ""]
        if self.tools:
            parts.append(tool_calls.described(self.tools, self.format, may_answer=may_answer))
        begin = ChatMessage("system", "\n\n".join(part for part in parts if part))
        user = ChatMessage("user", turn.text)
        # The history has answers, and never a call: a model that has only to choose would go on like that.
        said = self.window.history(dialog if may_answer else _NOTHING_SAID, (begin, user))
        return Prompt((begin, *said, user), 1 + len(said), self.tools, self.format)

    async def _answer_grammar(self) -> str | None:
        if not self.tools:
            return None
        may_answer, most = self.params.generate_on_no_tool, self.params.max_calls
        schema = (self.sampling(self.params).json_schema or "") if may_answer else ""
        wanted = may_answer, most, schema
        if wanted not in self._grammar:
            # Many tools, or a long schema, take some 100 ms.
            self._grammar = {wanted: await asyncio.to_thread(self._made_grammar, *wanted)}
        return self._grammar[wanted]

    def _made_grammar(self, may_answer: bool, most: int, schema: str) -> str:
        form = jsontext.loads(schema.encode("utf-8", "replace")) if schema else None
        return tool_calls.grammar(self.tools, self.format, may_answer=may_answer, most=most, schema=form)

    async def run(self, turn: GraphTurn, dialog: Dialog) -> str:
        if not self.tools and not self.params.generate_on_no_tool:
            return "no_tool_called"
        before = turn.tokens
        answer = await self.answer(turn, dialog, await self._answer_grammar())
        declared = {tool.name for tool in self.tools}
        # An engine without grammars may make up names, and a message may hold what looks like a call.
        calls = [call for call in tool_calls.read_calls(answer, self.format) if call.name in declared]
        if turn.data is not None:
            turn.data |= {
                "tool_call_format": self.format,
                "tool_count": str(len(self.tools)),
                "generate_on_no_tool": "true" if self.params.generate_on_no_tool else "false",
                "answer": answer,
                "calls": ", ".join(call.name for call in calls),
            }
        denied = False
        if turn.approve is not None and calls:
            about = {tool.name: tool.description for tool in self.tools}
            asked, calls = calls, [call for call in calls if await turn.approve(call, about[call.name])]
            denied = len(calls) < len(asked)
        turn.tool_calls += calls
        if calls:
            if self.params.notify_client:
                for call in calls:
                    pairs = (("tool_name", call.name), ("arguments_json", call.arguments_json))
                    turn.events.append(NodeNotice(self.name, TOOL_EVENT, pairs))
            return "tool_called"
        if self.params.generate_on_no_tool and not denied:
            self.see_to_form(answer, turn.tokens - before)
            turn.tell(answer, final=not self.exits["no_tool_called"])
        return "no_tool_called"
