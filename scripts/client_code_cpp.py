"""Writes the C++ client's structs, into its header, and how their fields stand in a frame, into its source.

For each table there is one function, `visit`, that shows all fields with their positions and names to a visitor: one
reads, one writes, and one of the tests prints. What a field is, its C++ type says.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from client_code import EnumCode, Schema, TableCode, UnionCode
    from trunkline.wires.tryll.codec.shapes import Field

FILES = ("cpp/tryll.hpp", "cpp/tryll.cpp")

SCALARS = {
    "Q": "std::uint64_t",
    "I": "std::uint32_t",
    "i": "std::int32_t",
    "H": "std::uint16_t",
    "B": "std::uint8_t",
    "f": "float",
    "?": "bool",
}
#: Names of fields that are words of the language.
RESERVED = frozenset({"default", "delete", "namespace", "new", "operator", "private", "public", "template", "this"})


def write(schema: Schema) -> dict[str, str]:
    """Both texts."""
    return {FILES[0]: "".join(_header(schema)), FILES[1]: "".join(_source(schema))}


def _header(schema: Schema) -> Iterator[str]:
    yield f"\nconstexpr std::uint32_t protocol_version = {schema.protocol_version};\n"
    yield "/// The longest payload of a frame, in bytes; the length in front of it does not count.\n"
    yield f"constexpr std::size_t max_frame = {schema.max_frame};\n"
    for enum in schema.enums:
        yield from _enum(enum)
    yield "\n/// The numbers of errors. A server may send others.\nstruct Code {\n  enum : int {\n"
    for error in schema.errors:
        yield f"    {error.name} = {error.code},  ///< {error.text}\n"
    yield "  };\n};\n"
    unions = {union.name: union for union in schema.unions}
    written: set[str] = set()
    for table in schema.tables:
        for field in table.fields:
            if field.kind == "union" and field.of not in written:
                written.add(field.of)
                yield from _union(unions[field.of])
        yield from _struct(table)
    for union in schema.unions:
        if union.name not in written:
            yield from _union(union)
    yield "\n"


def _enum(enum: EnumCode) -> Iterator[str]:
    yield f"\n{_doc(enum.doc)}struct {enum.name} {{\n  enum : std::uint8_t {{\n"
    for name, value in enum.values:
        yield f"    {_camel(name)} = {value},\n"
    yield "  };\n};\n"


def _union(union: UnionCode) -> Iterator[str]:
    yield f"\n/// One of the following, or nothing. Its index is its tag.\nusing {union.name} = std::variant<\n"
    yield "".join(_wrapped(", ".join(("std::monostate", *union.members)) + ">;"))


def _struct(table: TableCode) -> Iterator[str]:
    yield f"\n{_doc(table.doc)}struct {table.name} {{\n"
    for field in table.fields:
        yield f"  {_type(field)} {_name(field)}{_initial(field)};\n"
    yield "};\n"


def _type(field: Field) -> str:
    plain = {
        "scalar": SCALARS[field.code],
        "string": "std::string",
        "strings": "std::vector<std::string>",
        "samples": "std::vector<std::int16_t>",
        "tables": f"std::vector<{field.of}>",
        "table": field.of,
        "union": field.of,
    }[field.kind]
    return f"std::optional<{plain}>" if _optional(field) else plain


def _optional(field: Field) -> bool:
    """Whether absence is a value of its own. A union has one already."""
    return field.default is None and field.kind in ("scalar", "string", "table")


def _initial(field: Field) -> str:
    if field.kind != "scalar" or _optional(field):
        # Said for the sake of warnings: so that a value can be made of its first fields alone.
        return "{}"
    if isinstance(field.default, bool):
        return f" = {str(field.default).lower()}"
    return f" = {field.default}{'f' if field.code == 'f' else ''}"


def _source(schema: Schema) -> Iterator[str]:
    yield "\n"
    for table in schema.tables:
        yield f"TRYLL_TABLE({table.name}, {table.positions}, {str(table.sparse).lower()})\n"
    for table in schema.tables:
        named = "t" if table.fields else ""
        yield f"\ntemplate <class V, class T> void visit(V &v, T &{named}, Of<{table.name}>) {{\n"
        for field in table.fields:
            yield f'  v({field.position}, "{field.name}", t.{_name(field)});\n'
        yield "}\n"
    yield "\nconstexpr Meaning meanings[] = {\n"
    for error in schema.errors:
        yield f'    {{{error.code}, "{error.name}", {_text(error.text)}}},\n'
    yield "};\n\nconstexpr Advice advices[] = {\n"
    for first, last, text in schema.recovery:
        yield f"    {{{first}, {last},\n     {_text(text)}}},\n"
    yield "};\n\nconstexpr Brought brought[] = {\n"
    for name, extension in schema.extensions:
        yield f'    {{"{name}", "{extension}"}},\n'
    yield "};\n\n"


def _text(text: str) -> str:
    lines = textwrap.wrap(text, 100, drop_whitespace=False)
    return "\n     ".join('"' + line.replace("\\", "\\\\").replace('"', '\\"') + '"' for line in lines)


def _name(field: Field) -> str:
    return f"{field.name}_" if field.name in RESERVED else field.name


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _doc(text: str) -> str:
    return "".join(f"/// {line}\n" for line in textwrap.wrap(text, 114))


def _wrapped(text: str) -> Iterator[str]:
    for line in textwrap.wrap(text, 112):
        yield f"    {line}\n"
