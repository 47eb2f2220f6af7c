"""The body of a form with files, `multipart/form-data` (RFC 7578). Sans-IO: the whole body goes in.

form = parse(body, request.headers["content-type"])
form["file"].data
"""

from __future__ import annotations

from trunkline.base.values import Value

#: Fields of one form: more than any of ours has.
MAX_FIELDS = 100
#: Bytes of what stands in front of a field.
MAX_HEAD = 8 * 1024
#: What a boundary has at most, by RFC 2046.
MAX_BOUNDARY = 70


class FormField(Value):
    """One field of a form. `filename` is None where it is no file."""

    name: str
    data: bytes
    filename: str | None = None
    media_type: str = ""

    @property
    def text(self) -> str:
        """What it says."""
        return self.data.decode("utf-8", "replace")


def parse(body: bytes, content_type: str) -> dict[str, FormField]:
    """The fields of a form by their names; of several with one name, the last.

    Raises:
        ValueError: it is none, or has too many fields; the text says why.
    """
    kind, parameters = _header(content_type)
    boundary = parameters.get("boundary", "")
    if kind != "multipart/form-data" or not 0 < len(boundary) <= MAX_BOUNDARY:
        raise ValueError("the content type must be multipart/form-data with a boundary")
    mark = b"--" + boundary.encode("utf-8", "replace")
    # What is in front of the first mark does not count.
    start = body.find(mark)
    if start < 0:
        raise ValueError("the boundary does not occur in the body")
    fields: dict[str, FormField] = {}
    at = start + len(mark)
    for _ in range(MAX_FIELDS + 1):
        if body.startswith(b"--", at):
            return fields
        end = body.find(b"\r\n" + mark, at)
        if end < 0:
            raise ValueError("the last field does not end")
        field = _field(body, at, end)
        fields[field.name] = field
        at = end + 2 + len(mark)
    raise ValueError(f"there are more than {MAX_FIELDS} fields")


def _field(body: bytes, at: int, end: int) -> FormField:
    start = body.find(b"\r\n", at, at + MAX_HEAD)
    blank = body.find(b"\r\n\r\n", at, min(end, at + MAX_HEAD))
    if start < 0 or blank < 0:
        raise ValueError("a field has no head")
    heads = dict(_line(line) for line in body[start + 2 : blank].split(b"\r\n"))
    kind, parameters = _header(heads.get("content-disposition", ""))
    if kind != "form-data" or "name" not in parameters:
        raise ValueError("a field has no name")
    media_type, _ = _header(heads.get("content-type", ""))
    return FormField(parameters["name"], body[blank + 4 : end], parameters.get("filename"), media_type)


def _line(line: bytes) -> tuple[str, str]:
    name, _, value = line.partition(b":")
    return name.decode("latin-1").strip().lower(), value.decode("utf-8", "replace").strip()


def _header(value: str) -> tuple[str, dict[str, str]]:
    """A value and its parameters; quotes may hold semicolons."""
    kind, _, rest = value.partition(";")
    parameters: dict[str, str] = {}
    while rest:
        name, equals, rest = rest.partition("=")
        if not equals:
            break
        rest = rest.lstrip()
        if rest.startswith('"'):
            found, rest = _quoted(rest[1:])
            rest = rest.partition(";")[2]
        else:
            found, _, rest = rest.partition(";")
            found = found.strip()
        parameters.setdefault(name.strip().lower(), found)
    return kind.strip().lower(), parameters


def _quoted(rest: str) -> tuple[str, str]:
    """A text up to its closing quote, and what follows. Browsers and clients escape nothing but the quote."""
    said: list[str] = []
    at = 0
    while at < len(rest) and rest[at] != '"':
        if rest[at] == "\\" and rest[at + 1 : at + 2] in ('"', "\\"):
            at += 1
        said.append(rest[at])
        at += 1
    return "".join(said), rest[at + 1 :]
