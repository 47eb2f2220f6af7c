"""Checks of what a server offers: tools, resources, prompts, completions."""

from __future__ import annotations

import re
from typing import Any

from trunkline.conform.expect import expect, same, short
from trunkline.conform.kit import Broken, NotApplicable
from trunkline.conform.mcp.stage import Stage
from trunkline.conform.mcp.suite import SUITE
from trunkline.conform.mcp.vocabulary import INVALID_PARAMS, RESOURCE_NOT_FOUND, Json, content_problem

NOBODY = "conform_no_such_thing"
NO_URI = "conform://no/such/thing"
#: The most values that a completion may have.
COMPLETED = 100
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def _members(found: list[Any], what: str, **kinds: type[Any]) -> list[Json]:
    """Each has members of those types."""
    for each in found:
        for name, kind in kinds.items():
            value = each.get(name) if isinstance(each, dict) else None
            expect(isinstance(value, kind), f"`{name}` of {what} is {short(value)}, not of the type {kind.__name__}")
    return found


async def _pages(stage: Stage, capability: str, method: str, member: str) -> None:
    link = await stage.ready()
    await stage.listed(link, capability, method, member)
    answer = await link.ask(method, {"cursor": NOBODY}, stage.target.timeout)
    expect("error" in answer, f"`{method}` with a cursor that nobody gave was answered as usual, not with an error")
    same(f"the error of `{method}` with a cursor that nobody gave", (answer["error"] or {}).get("code"), INVALID_PARAMS)


# Tools


@SUITE.check("mcp.tools.shape", "MUST", "Tools: data types")
async def tools_have_their_shape(stage: Stage) -> None:
    """Each tool has a name and an input schema of the type `object`."""
    link = await stage.ready()
    tools = await stage.listed(link, "tools", "tools/list", "tools")
    for tool in _members(tools, "a tool", name=str, inputSchema=dict):
        same(f"the type of the input schema of `{tool['name']}`", tool["inputSchema"].get("type"), "object")


@SUITE.check("mcp.tools.names", "SHOULD", "Tools: tool names")
async def tools_have_good_names(stage: Stage) -> None:
    """Names of tools are unique, and have 1 to 128 letters, digits, `_`, `-` and `.`."""
    link = await stage.ready()
    names = [str(tool.get("name")) for tool in await stage.tools(link)]
    same("the number of different names", len(set(names)), len(names))
    bad = [name for name in names if not _NAME.fullmatch(name)]
    expect(not bad, f"these names have other characters: {short(bad)}")


@SUITE.check("mcp.tools.cursor", "SHOULD", "Pagination")
async def cursors_of_tools_are_checked(stage: Stage) -> None:
    """`tools/list` with a cursor that the server never gave is answered with the error -32602."""
    await _pages(stage, "tools", "tools/list", "tools")


@SUITE.check("mcp.tools.unknown", "MUST", "Tools: error handling")
async def unknown_tools_are_refused(stage: Stage) -> None:
    """A call of an unknown tool is an error, and the connection lives on."""
    link = await stage.ready()
    stage.offers(link, "tools")
    answer = await link.ask("tools/call", {"name": NOBODY, "arguments": {}}, stage.target.timeout)
    result = answer.get("result")
    failed = "error" in answer or (isinstance(result, dict) and result.get("isError") is True)
    expect(failed, f"the call of an unknown tool was answered with {short(answer)}")
    await stage.lives(link, "the call of an unknown tool")


@SUITE.check("mcp.tools.call", "MUST", "Tools: tool result")
async def results_have_their_shape(stage: Stage) -> None:
    """The result of a tool has a list of blocks of content, each of a known type and whole."""
    link = await stage.ready()
    tool, arguments = await stage.harmless(link)
    result = await stage.result(link, "tools/call", {"name": tool["name"], "arguments": dict(arguments)})
    content = result.get("content")
    if not isinstance(content, list):
        raise Broken(f"`content` of the result is {short(content)}, not a list")
    problem = next((found for block in content if (found := content_problem(block))), None)
    expect(problem is None, problem or "")
    expect(isinstance(result.get("isError", False), bool), f"`isError` is {short(result.get('isError'))}")


@SUITE.check("mcp.tools.structured", "MUST", "Tools: output schema")
async def structured_results_keep_their_schema(stage: Stage) -> None:
    """A tool with an output schema that succeeds gives structured content with all members which that requires."""
    link = await stage.ready()
    tool, arguments = await stage.harmless(link)
    schema = tool.get("outputSchema")
    if not isinstance(schema, dict):
        raise NotApplicable(f"the tool `{tool['name']}` has no output schema")
    result = await stage.result(link, "tools/call", {"name": tool["name"], "arguments": dict(arguments)})
    found = result.get("structuredContent")
    expect(isinstance(found, dict), f"`structuredContent` is {short(found)}, not an object")
    missing = [name for name in schema.get("required", ()) if name not in (found or {})]
    expect(not missing, f"`structuredContent` lacks {short(missing)}, which the schema requires")


@SUITE.check("mcp.tools.arguments", "SHOULD", "Tools: error handling")
async def wrong_arguments_are_refused(stage: Stage) -> None:
    """A call without the arguments that a tool requires is an error, and does not succeed."""
    link = await stage.ready()
    needy = [tool for tool in await stage.tools(link) if (tool.get("inputSchema") or {}).get("required")]
    if not needy:
        raise NotApplicable("no tool requires an argument")
    answer = await link.ask("tools/call", {"name": needy[0]["name"], "arguments": {}}, stage.target.timeout)
    result = answer.get("result")
    failed = "error" in answer or (isinstance(result, dict) and result.get("isError") is True)
    expect(failed, f"`{needy[0]['name']}` without its arguments was answered with {short(answer)}")


# Resources


@SUITE.check("mcp.resources.shape", "MUST", "Resources: data types")
async def resources_have_their_shape(stage: Stage) -> None:
    """Each resource has a URI and a name."""
    link = await stage.ready()
    resources = await stage.listed(link, "resources", "resources/list", "resources")
    _members(resources, "a resource", uri=str, name=str)


@SUITE.check("mcp.resources.templates", "MUST", "Resources: data types")
async def templates_have_their_shape(stage: Stage) -> None:
    """Each template has a URI template and a name."""
    link = await stage.ready()
    stage.offers(link, "resources")
    answer = await link.ask("resources/templates/list", {}, stage.target.timeout)
    if "error" in answer:
        raise NotApplicable("the server has no templates")
    found = (answer.get("result") or {}).get("resourceTemplates")
    if not isinstance(found, list):
        raise Broken(f"`resourceTemplates` is {short(found)}, not a list")
    _members(found, "a template", uriTemplate=str, name=str)


@SUITE.check("mcp.resources.read", "MUST", "Resources: reading")
async def resources_are_read(stage: Stage) -> None:
    """A resource of the list can be read: its contents have a URI, and a text or a blob."""
    link = await stage.ready()
    resources = await stage.listed(link, "resources", "resources/list", "resources")
    if not resources:
        raise NotApplicable("the server lists no resources")
    result = await stage.result(link, "resources/read", {"uri": resources[0].get("uri")})
    contents = result.get("contents")
    if not isinstance(contents, list):
        raise Broken(f"`contents` of the result is {short(contents)}, not a list")
    for each in _members(contents, "the contents", uri=str):
        expect("text" in each or "blob" in each, f"the contents have neither a text nor a blob: {short(each)}")


@SUITE.check("mcp.resources.unknown", "MUST", "Resources: error handling")
async def unknown_resources_are_refused(stage: Stage) -> None:
    """Reading an unknown resource is an error, and the connection lives on."""
    link = await stage.ready()
    stage.offers(link, "resources")
    answer = await link.ask("resources/read", {"uri": NO_URI}, stage.target.timeout)
    expect("error" in answer, f"an unknown resource was answered with {short(answer)}")
    await stage.lives(link, "an unknown resource")


@SUITE.check("mcp.resources.code", "SHOULD", "Resources: error handling")
async def unknown_resources_have_their_code(stage: Stage) -> None:
    """Reading an unknown resource is the error -32002, or -32602 as later revisions have it."""
    link = await stage.ready()
    stage.offers(link, "resources")
    answer = await link.ask("resources/read", {"uri": NO_URI}, stage.target.timeout)
    code = (answer.get("error") or {}).get("code")
    expect(code in (RESOURCE_NOT_FOUND, INVALID_PARAMS), f"the error is {short(code)}, not {RESOURCE_NOT_FOUND}")


# Prompts


@SUITE.check("mcp.prompts.shape", "MUST", "Prompts: data types")
async def prompts_have_their_shape(stage: Stage) -> None:
    """Each prompt has a name, and its arguments have names."""
    link = await stage.ready()
    prompts = await stage.listed(link, "prompts", "prompts/list", "prompts")
    for prompt in _members(prompts, "a prompt", name=str):
        _members(prompt.get("arguments") or [], f"an argument of `{prompt['name']}`", name=str)


@SUITE.check("mcp.prompts.get", "MUST", "Prompts: getting a prompt")
async def prompts_are_had(stage: Stage) -> None:
    """A prompt of the list can be had: each of its messages has a role and a block of content."""
    link = await stage.ready()
    prompts = await stage.listed(link, "prompts", "prompts/list", "prompts")
    if not prompts:
        raise NotApplicable("the server lists no prompts")
    given = {each["name"]: "conform" for each in prompts[0].get("arguments") or []}
    result = await stage.result(link, "prompts/get", {"name": prompts[0].get("name"), "arguments": given})
    found = result.get("messages")
    if not isinstance(found, list):
        raise Broken(f"`messages` of the result is {short(found)}, not a list")
    for each in found:
        role = each.get("role") if isinstance(each, dict) else None
        expect(role in ("user", "assistant"), f"the role of a message is {short(role)}")
        problem = content_problem(each.get("content"))
        expect(problem is None, problem or "")


@SUITE.check("mcp.prompts.unknown", "MUST", "Prompts: error handling")
async def unknown_prompts_are_refused(stage: Stage) -> None:
    """An unknown prompt is an error, and the connection lives on."""
    link = await stage.ready()
    stage.offers(link, "prompts")
    answer = await link.ask("prompts/get", {"name": NOBODY}, stage.target.timeout)
    expect("error" in answer, f"an unknown prompt was answered with {short(answer)}")
    await stage.lives(link, "an unknown prompt")


@SUITE.check("mcp.prompts.arguments", "SHOULD", "Prompts: error handling")
async def missing_arguments_are_refused(stage: Stage) -> None:
    """A prompt without the arguments that it requires is the error -32602."""
    link = await stage.ready()
    prompts = await stage.listed(link, "prompts", "prompts/list", "prompts")
    needy = [each for each in prompts if any(one.get("required") for one in each.get("arguments") or [])]
    if not needy:
        raise NotApplicable("no prompt requires an argument")
    answer = await link.ask("prompts/get", {"name": needy[0]["name"]}, stage.target.timeout)
    same("the error", (answer.get("error") or {}).get("code"), INVALID_PARAMS)


# Completions


@SUITE.check("mcp.complete.shape", "MUST", "Utilities: completion")
async def completions_have_their_shape(stage: Stage) -> None:
    """A completion has a list of at most 100 values, all of them strings."""
    link = await stage.ready()
    stage.offers(link, "completions")
    prompts = await stage.listed(link, "prompts", "prompts/list", "prompts")
    named = [(each["name"], one["name"]) for each in prompts for one in each.get("arguments") or []]
    if not named:
        raise NotApplicable("no prompt has an argument")
    prompt, argument = named[0]
    asked = {"ref": {"type": "ref/prompt", "name": prompt}, "argument": {"name": argument, "value": ""}}
    found = (await stage.result(link, "completion/complete", asked)).get("completion")
    values = found.get("values") if isinstance(found, dict) else None
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise Broken(f"`completion.values` is {short(values)}, not a list of strings")
    expect(len(values) <= COMPLETED, f"there are {len(values)} values, more than {COMPLETED}")
