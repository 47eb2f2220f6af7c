"""Completion in bash of words with a colon in them: `graph:smith` is three words to it, and one to us.

Bash breaks words where `COMP_WORDBREAKS` says, and replaces only the last piece. So the line itself is read, and what
stands in front of the last colon is left out of what is offered.
"""

from __future__ import annotations

import os
from typing import Any

from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

_SOURCE = """%(complete_func)s() {
    local IFS=$'\\n'
    local response completion type value

    COMPREPLY=()
    response=$(env COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" COMP_BREAKS="$COMP_WORDBREAKS" \\
        COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete $1)

    for completion in $response; do
        IFS=',' read type value <<< "$completion"

        if [[ $type == 'dir' ]]; then
            COMPREPLY=()
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            COMPREPLY=()
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=($value)
            # More follows behind the colon.
            [[ $value == *: ]] && compopt -o nospace
        fi
    done

    return 0
}

%(complete_func)s_setup() {
    complete -o nosort -F %(complete_func)s %(prog_name)s
}

%(complete_func)s_setup;
"""


class ColonBashComplete(BashComplete):
    """Completes the word that the cursor is in, colons and all."""

    source_template = _SOURCE
    _before = ""
    """What bash keeps of the word: all up to its last colon."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one to complete, and that one."""
        line = os.environ.get("COMP_LINE")
        if line is None:
            return super().get_completion_args()
        # Bytes: that is what bash counts.
        typed = os.fsencode(line)[: int(os.environ["COMP_POINT"])].decode(errors="replace")
        words = split_arg_string(typed)
        incomplete = "" if typed[-1:].isspace() or not words else words.pop()
        in_quotes = typed.rpartition(" ")[2][:1] in ("'", '"')
        if ":" in os.environ.get("COMP_BREAKS", "") and not in_quotes:
            self._before = "".join(incomplete.rpartition(":")[:2])
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """An item as a line for the shell."""
        value = item.value.removeprefix(self._before) if self._before else item.value
        return f"{item.type},{value}"


def register() -> None:
    """Let `click` complete in bash like this."""
    add_completion_class(ColonBashComplete)
