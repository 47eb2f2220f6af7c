"""Mustache templates: variables, sections, inverted sections, comments and other delimiters, as its specification has
them.

Of our own making, for three reasons. The text that comes out is a prompt, so that nothing is ever escaped. Names that
are not known are empty, and partials and lambdas do not exist. And the template comes from a stranger: what it nests,
what it repeats and what it writes has limits, which no library at hand offers.

    Template("Facts:{{#chunks}} {{text}}{{/chunks}}").render({"chunks": [{"text": "a"}, {"text": "b"}]})
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

from trunkline.agents.graph.errors import GraphTextError

#: Sections within sections.
MAX_DEPTH = 32
#: Tags of one template.
MAX_TAGS = 10_000
#: Characters of templates that are read on the spot, which takes two milliseconds at most. Those of a whole frame take
#: a hundred times as long: a thread reads them.
QUICK_TEMPLATES = 4096
#: Characters of a name, and names in it that are joined by dots: what a template can speak of is nowhere as deep.
MAX_NAME = 1024
MAX_DOTTED = 16
#: Characters that a template may become: no prompt of more fits into a model.
MAX_RENDERED = 1024 * 1024
#: Steps that it may take to get there: one for each part and each section around it, since names are looked for in all
#: of them. Sections within sections multiply, even if they write nothing. So many take 20 ms, and nobody else on the
#: server gets on meanwhile.
MAX_STEPS = 100_000

_SIGILS = "#^/!>&={"
#: What begins a tag that names nothing.
_NAMELESS = ("!", ">", "=")


class TemplateError(GraphTextError):
    """It is not a template, or becomes too much."""


class _Variable:
    """`{{name}}`. `names` are those between the dots, if there are any."""

    __slots__ = ("name", "names")

    def __init__(self, name: str) -> None:
        self.name = name
        self.names = tuple(name.split(".")) if "." in name and name != "." else ()


class _Section(_Variable):
    """`{{#name}}...{{/name}}`, or `{{^name}}...{{/name}}`."""

    __slots__ = ("inverted", "parts")

    def __init__(self, name: str, inverted: bool) -> None:
        super().__init__(name)
        self.inverted = inverted
        self.parts: list[_Part] = []


_Part = str | _Variable


class Template:
    """A template that was read once and can be rendered often.

    Raises:
        TemplateError: it is malformed. The text says what and in which line.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._parts = _Reader(source).read()

    @property
    def has_sections(self) -> bool:
        """Whether anything in it can repeat."""
        return any(isinstance(part, _Section) for part in self._parts)

    def render(self, context: dict[str, Any]) -> str:
        """The text that it becomes.

        Raises:
            TemplateError: that would be more than `MAX_RENDERED` characters or take more than `MAX_STEPS` steps.
        """
        return self.measured(context)[0]

    def measured(self, context: dict[str, Any]) -> tuple[str, int]:
        """The same, and the steps that it took."""
        writer = _Writer()
        writer.write(self._parts, [context], context)
        return "".join(writer.out), writer.steps


# What nobody uses any more is gone: they are strangers' templates, and take many times their length.
_READ: WeakValueDictionary[str, Template] = WeakValueDictionary()


def read_template(source: str) -> Template:
    """The template of a source; one that many nodes share is read once. For any thread.

    Raises:
        TemplateError: it is malformed.
    """
    found = _READ.get(source)
    return found if found is not None else _READ.setdefault(source, Template(source))


class _Reader:
    """Makes a tree of a source. A section, a comment or the like that is alone in its line leaves no line behind."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._position = 0
        self._tags = 0
        self._root = _Section("", inverted=False)
        self._open = [self._root]
        self._delimit("{{", "}}")

    def read(self) -> list[_Part]:
        source = self._source
        while (start := source.find(self._begin, self._position)) >= 0:
            self._text(source[self._position : start])
            self._tag(start)
        self._text(source[self._position :])
        if len(self._open) > 1:
            raise TemplateError(f"the section `{self._open[-1].name}` has no end")
        return self._root.parts

    def _delimit(self, begin: str, end: str) -> None:
        self._begin, self._end = begin, end

    def _text(self, text: str) -> None:
        if text:
            self._open[-1].parts.append(text)

    def _wrong(self, start: int, problem: str) -> TemplateError:
        return TemplateError(f"line {self._source.count(chr(10), 0, start) + 1}: {problem}")

    def _tag(self, start: int) -> None:
        self._tags += 1
        if self._tags > MAX_TAGS:
            raise TemplateError(f"more than {MAX_TAGS} tags")
        source = self._source
        inside = start + len(self._begin)
        sigil = source[inside] if source[inside : inside + 1] and source[inside] in _SIGILS else ""
        closing = {"{": "}" + self._end, "=": "=" + self._end}.get(sigil, self._end)
        stop = source.find(closing, inside + len(sigil))
        if stop < 0:
            raise self._wrong(start, "a tag has no end")
        inner = source[inside + len(sigil) : stop].strip()
        self._position = stop + len(closing)
        if sigil and sigil not in "{&":
            self._drop_line(start)
        if sigil not in _NAMELESS and (len(inner) > MAX_NAME or inner.count(".") >= MAX_DOTTED):
            raise self._wrong(start, f"a name of more than {MAX_NAME} characters, or {MAX_DOTTED} parts")
        if sigil == "=":
            self._change_delimiters(inner, start)
        elif sigil in ("#", "^"):
            self._open_section(_Section(inner, sigil == "^"), start)
        elif sigil == "/":
            self._close_section(inner, start)
        elif sigil not in _NAMELESS:
            self._open[-1].parts.append(_Variable(inner))

    def _drop_line(self, start: int) -> None:
        """Leave out the line that a tag stands in, if there is nothing else in it."""
        source = self._source
        line = start
        while line and source[line - 1] in " \t":
            line -= 1
        rest = _REST_OF_LINE.match(source, self._position)
        if rest is None or (line and source[line - 1] != "\n"):
            return
        self._position = rest.end()
        # The blanks before the tag were kept as text a moment ago.
        if start > line:
            self._text(str(self._open[-1].parts.pop())[: line - start])

    def _change_delimiters(self, inner: str, start: int) -> None:
        both = inner.split()
        if len(both) != 2 or any("=" in mark for mark in both):
            raise self._wrong(start, "delimiters are changed by two marks, as in `{{=<% %>=}}`")
        self._delimit(*both)

    def _open_section(self, section: _Section, start: int) -> None:
        if len(self._open) > MAX_DEPTH:
            raise self._wrong(start, f"more than {MAX_DEPTH} sections within each other")
        self._open[-1].parts.append(section)
        self._open.append(section)

    def _close_section(self, name: str, start: int) -> None:
        if len(self._open) == 1 or self._open[-1].name != name:
            expected = f"; `{self._open[-1].name}` is open" if len(self._open) > 1 else ""
            raise self._wrong(start, f"`{name}` ends here and is not open{expected}")
        self._open.pop()


_REST_OF_LINE = re.compile(r"[ \t]*(?:\r?\n|\Z)")


class _Writer:
    """Renders one tree once. `levels` are the objects around a part, innermost last, and `here` is what `.` names."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.steps = 0
        self._chars = 0

    def write(self, parts: Sequence[_Part], levels: list[dict[str, Any]], here: Any) -> None:
        self.steps += len(parts) * len(levels)
        if self.steps > MAX_STEPS:
            raise TemplateError(f"the template takes more than {MAX_STEPS} steps")
        for part in parts:
            if isinstance(part, str):
                self._say(part)
            elif isinstance(part, _Section):
                self._section(part, _find(part, levels, here), levels, here)
            else:
                self._say(_spelled(_find(part, levels, here)))

    def _say(self, text: str) -> None:
        self._chars += len(text)
        if self._chars > MAX_RENDERED:
            raise TemplateError(f"the template becomes more than {MAX_RENDERED} characters")
        self.out.append(text)

    def _section(self, section: _Section, value: Any, levels: list[dict[str, Any]], here: Any) -> None:
        holds = value is not None and value is not False and value != "" and value != []
        if section.inverted:
            if not holds:
                self.write(section.parts, levels, here)
            return
        if not holds:
            return
        for each in value if isinstance(value, list) else [value]:
            # An empty section that repeats is work, too.
            self.steps += len(levels)
            self.write(section.parts, [*levels, each] if isinstance(each, dict) else levels, each)


def _find(named: _Variable, levels: Sequence[dict[str, Any]], here: Any) -> Any:
    if named.name == ".":
        return here
    found = _look_up(named.name, levels)
    if found is not None or not named.names:
        return found
    found = _look_up(named.names[0], levels)
    for name in named.names[1:]:
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found


def _look_up(name: str, levels: Sequence[dict[str, Any]]) -> Any:
    for level in reversed(levels):
        if name in level:
            return level[name]
    return None


def _spelled(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, dict | list):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
