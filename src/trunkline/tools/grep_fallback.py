"""A search in files, for where there is no ripgrep: a program of its own, so that it can be killed.

    python -m trunkline.tools.grep_fallback PATTERN PATH GLOB case|ignore-case

Prints what `rg --null --line-number --sort=path` would, by the same rules: what git ignores and hidden files are left
out, binary files are not searched, links to directories not followed; a glob overrides the rules for what it matches.
Exits with 0 if something was found, 1 if not, 2 if the pattern or the glob has no meaning.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from trunkline.base.patterns import BadPattern, expand_braces, match_path
from trunkline.tools.files import LARGEST_FILE, is_binary, open_regular
from trunkline.tools.gitignore import REPOSITORY, Ignore, Rule, parse_rule

EXIT_FOUND, EXIT_NOTHING, EXIT_BAD = 0, 1, 2

#: A longer line is searched in pieces of this size: memory is bounded.
_LONGEST_LINE = 1024 * 1024

_BOMS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
#: A group with a name, as ripgrep also knows it; Python wants a `P` there.
_NAMED_GROUP = re.compile(r"(?<!\\)\(\?<(?![=!])")

Search = Callable[[str], object]


class Globs:
    """The files that were asked for, by a pattern as in `.gitignore`, from the working directory."""

    def __init__(self, pattern: str) -> None:
        negated = pattern.startswith("!")
        self._rules: list[Rule] = []
        for alternative in expand_braces(pattern[negated:]) if pattern else ():
            rule = parse_rule(alternative)
            if rule is None:
                raise BadPattern(f"the glob `{pattern}` has no meaning")
            self._rules.append(rule)
        self._wants = not negated
        self._names = {rule.name: re.compile(rule.name).fullmatch for rule in self._rules if rule.name is not None}

    def verdict(self, path: str, is_dir: bool) -> bool | None:
        """Whether it is wanted: a file is one way or the other, a directory may be neither."""
        if any(self._matches(rule, path, is_dir) for rule in self._rules):
            return self._wants
        return False if self._rules and self._wants and not is_dir else None

    def _matches(self, rule: Rule, path: str, is_dir: bool) -> bool:
        if rule.only_directories and not is_dir:
            return False
        names = os.path.relpath(path).split("/")
        if rule.name is not None:
            return self._names[rule.name](names[-1]) is not None
        return rule.path is not None and match_path(rule.path, names)


def main(arguments: list[str]) -> int:
    """Search, and print what is found."""
    pattern, path, glob, case = arguments
    try:
        search = _compiled(pattern, case == "ignore-case")
        globs = Globs(glob)
    except (re.error, BadPattern, OverflowError) as error:
        sys.stderr.write(f"{error}")
        return EXIT_BAD
    found = False
    output = sys.stdout.buffer
    for file in _files(path, globs):
        for number, line in _matches(file, search):
            output.write(b"%s\0%d:%s\n" % (os.fsencode(file), number, line.encode("utf-8", "replace")))
            found = True
        # Whoever reads may have enough after the first file.
        output.flush()
    return EXIT_FOUND if found else EXIT_NOTHING


def _compiled(pattern: str, ignore_case: bool) -> Search:
    if "\n" in pattern or re.search(r"(?<!\\)(?:\\\\)*\\n", pattern):
        raise BadPattern("a line break cannot be searched for: the search goes line by line")
    return re.compile(_NAMED_GROUP.sub("(?P<", pattern), re.IGNORECASE if ignore_case else 0).search


def _files(path: str, globs: Globs) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    # Without recursion: the deepest tree is deeper than Python likes.
    levels = [_entries(path, globs, Ignore.above(path))]
    while levels:
        entry = next(levels[-1], None)
        if entry is None:
            levels.pop()
        elif isinstance(entry, tuple):
            levels.append(_entries(*entry))
        else:
            yield entry


def _entries(directory: str, globs: Globs, ignore: Ignore) -> Iterator[str | tuple[str, Globs, Ignore]]:
    """The files of a directory, and its directories with what holds there, by name."""
    # Rules are about whole paths; what is printed begins as the caller wrote it.
    base = os.path.abspath(directory)
    for name in _names(directory):
        path = os.path.join(directory, name)
        is_dir = os.path.isdir(path) and not os.path.islink(path)
        wanted = globs.verdict(path, is_dir)
        if wanted is None:
            wanted = not name.startswith(".") and not ignore.ignores(os.path.join(base, name), is_dir)
        if wanted and is_dir and name != REPOSITORY:
            yield path, globs, ignore.inside(os.path.join(base, name))
        elif wanted and not is_dir and not os.path.islink(path):
            yield path


def _names(directory: str) -> Iterable[str]:
    try:
        return sorted(os.listdir(directory), key=os.fsencode)
    except OSError:
        return ()


def _matches(path: str, search: Search) -> Iterator[tuple[int, str]]:
    """The lines of a file that match, with their numbers."""
    try:
        fd, _ = open_regular(path)
        with open(fd, "rb") as file:
            yield from ((number, line) for number, line in _lines(file) if search(line))
    except (OSError, ValueError):
        # Not a file that can be read: there is nothing to be found in it.
        return


def _lines(file: BinaryIO) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers; none of a binary one."""
    data = file.read(LARGEST_FILE)
    encoding = next((encoding for bom, encoding in _BOMS.items() if data.startswith(bom)), "utf-8")
    if encoding == "utf-8" and is_binary(data):
        return
    if len(data) < LARGEST_FILE or encoding != "utf-8":
        # At once: taking line by line from the file takes four times as long.
        text = data.decode(encoding, "replace").removeprefix("\ufeff").replace("\r\n", "\n")
        if text:
            yield from enumerate(text.removesuffix("\n").split("\n"), 1)
        return
    file.seek(0)
    number, is_new = 0, True
    while piece := file.readline(_LONGEST_LINE):
        number += is_new
        is_new = piece.endswith(b"\n")
        yield number, piece.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
