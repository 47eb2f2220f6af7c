"""How a tool call looks in an editor: its title, its kind, the files that it is about, and the change that it makes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, get_args

from trunkline.base.values import Value
from trunkline.base.visible import inline
from trunkline.base.vocabulary import EXIT_PLAN
from trunkline.core.events import Category, ToolFinished, ToolJudged, ToolRequested
from trunkline.core.preview import PreviewSize, changed_texts, is_change, preview
from trunkline.wires.acp.messages_content import (
    ContentBlock,
    ImageBlock,
    ShownContent,
    ShownDiff,
    TextBlock,
    ToolCallContent,
    ToolCallLocation,
    ToolKind,
)

#: A title is one line of a narrow panel.
TITLE_CHARS = 200
#: A file up to this size is told whole, before and after; of a larger one the stretches that change.
DIFFED_BYTES = 1024 * 1024

Call = ToolRequested | ToolJudged

#: What our own tools do. Those of others are told by their category.
_KINDS: Mapping[str, ToolKind] = {
    "Read": "read",
    "Write": "edit",
    "Edit": "edit",
    "Glob": "search",
    "Grep": "search",
    "Bash": "execute",
    "Spawn": "think",
    "TodoWrite": "think",
    "ToolSearch": "search",
    EXIT_PLAN: "switch_mode",
    "WebFetch": "fetch",
    "WebSearch": "fetch",
}
_CATEGORIES: Mapping[Category, ToolKind] = {"info": "read", "edit": "edit", "exec": "execute", "mcp": "other"}

#: Calls of which the editor shows all there is by itself, below or as its plan: the argument, and the title.
_SHOWN_BELOW = {"TodoWrite": ("todos", "Update the to-do list"), EXIT_PLAN: ("plan", "Plan")}

_PATHS = ("file_path", "notebook_path", "path")
#: Files of one call that are listed.
MAX_PATHS = 100
_ABOUT = PreviewSize(lines=1, chars=TITLE_CHARS, parts=1)


class CallShown(Value):
    """What an agent behind another program of this protocol has shown of its call (`core.events.CALL_SHOWN`)."""

    title: str = ""
    kind: ToolKind | None = None
    locations: tuple[ToolCallLocation, ...] = ()
    changes: tuple[ToolCallContent, ...] = ()
    args: Mapping[str, Any] | None = None


def shown(data: Mapping[str, Any]) -> CallShown:
    """Read what was shown; what is not as it should be is left out."""
    title, kind, args = data.get("title"), data.get("kind"), data.get("args")
    paths = dict.fromkeys(each for each in _listed(data, "paths") if isinstance(each, str) and each)
    changes = [each for each in _listed(data, "changes") if isinstance(each, Mapping)]
    return CallShown(
        inline(title, TITLE_CHARS) if isinstance(title, str) else "",
        kind if kind in get_args(ToolKind) else None,
        tuple(ToolCallLocation(path) for path in tuple(paths)[:MAX_PATHS]),
        tuple(
            ShownDiff(each["path"], each["new"], old if isinstance(old := each.get("old"), str) else None)
            for each in changes
            if isinstance(each.get("path"), str) and isinstance(each.get("new"), str)
        ),
        args if isinstance(args, Mapping) else None,
    )


def _listed(data: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    found = data.get(name)
    return tuple(found) if isinstance(found, list | tuple) else ()


def kind_of(call: Call) -> ToolKind:
    """What the call does, by the protocol's words."""
    return _KINDS.get(call.name) or _CATEGORIES.get(call.category, "other")


def title_of(call: Call) -> str:
    """The call in one line: the tool, and what it is about."""
    argument, title = _SHOWN_BELOW.get(call.name, ("", ""))
    if title and set(call.args) == {argument}:
        return title
    about = preview(call.name, call.args, _ABOUT, category=call.category).about.text
    return inline(f"{call.name} {about}".rstrip(), TITLE_CHARS) or call.name


def locations_of(call: Call, workspace: str) -> tuple[ToolCallLocation, ...]:
    """The files that the call is about."""
    for name in _PATHS:
        path = call.args.get(name)
        if isinstance(path, str) and path and "\0" not in path:
            line = call.args.get("offset")
            return (ToolCallLocation(_absolute(path, workspace), line if type(line) is int and line > 0 else None),)
    return ()


def changed_file(call: Call, workspace: str) -> str | None:
    """The file that the call would change. None if it is no change, or of one outside of the workspace, which was not
    opened to whoever may look at the session."""
    if call.outside or not is_change(call.name, call.args, call.category):
        return None
    path = call.args["file_path"]
    return _absolute(path, workspace) if isinstance(path, str) and "\0" not in path else None


def change_of(
    call: Call, workspace: str, clean: Callable[[str], str], before: str | None
) -> tuple[ToolCallContent, ...]:
    """The change that the call would make of a file, or has made of it; nothing if it is no change.

    `before` is what the file has, if that is known. `clean` takes secrets out of it: of the call's own arguments, they
    were taken before.
    """
    if not is_change(call.name, call.args, call.category):
        return ()
    path = call.args["file_path"]
    texts = changed_texts(call.name, call.args, before)
    if texts is None or not isinstance(path, str) or "\0" in path:
        return ()
    old, new = texts
    return (ShownDiff(_absolute(path, workspace), clean(new), None if old is None else clean(old)),)


def output_of(finished: ToolFinished) -> tuple[ToolCallContent, ...]:
    """What a call has brought, for people."""
    if not finished.output:
        return ()
    return (ShownContent(_output_block(finished)),)


def raw_output_of(finished: ToolFinished) -> dict[str, Any]:
    """What a call has brought, for programs. A picture is in the content, and is not told twice."""
    raw: dict[str, Any] = {} if finished.output_type == "image" else {"output": finished.output}
    if finished.metadata:
        raw["metadata"] = dict(finished.metadata)
    return raw


def _output_block(finished: ToolFinished) -> ContentBlock:
    if finished.output_type != "image":
        return TextBlock(finished.output)
    from base64 import b64decode

    media = (finished.metadata or {}).get("media_type")
    try:
        return ImageBlock(b64decode(finished.output), media if isinstance(media, str) else "image/png")
    except ValueError:
        return TextBlock("[A picture that cannot be shown.]")


def _absolute(path: str, workspace: str) -> str:
    """As the tools find it."""
    return os.path.normpath(os.path.join(workspace, os.path.expanduser(path)))
