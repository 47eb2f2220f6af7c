"""The command line of `trunkline agentproc run`, with its help and its complaints."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from trunkline.base.nearest import nearest
from trunkline.cli import arguments
from trunkline.wires.agentproc.messages import DEFAULT_SESSION_NAME, Attachment

ATTACHMENT_TYPES = ("image", "file", "audio", "video")

_EXAMPLES = """examples:
  trunkline agentproc run --profile my-agent.yaml --message "hello"
  trunkline agentproc run --profile claude-code --message "and now?" --session ID
  git diff | trunkline agentproc run --profile codex --message - --json
  trunkline agentproc run --profile my-agent.yaml --message "what is this?" \\
      --attach image=https://example.org/cat.jpg=cat.jpg

exit codes: the turn's own (124: timeout, 126/127: cannot be started, 128+n:
signal n), 2: wrong usage or profile"""


def parse(given: list[str]) -> argparse.Namespace:
    """The options. Exits after `--help`.

    Raises:
        Usage: they are wrong.
    """
    parser = make_parser()
    required = [action for action in parser.actions if action.required]
    for action in required:
        # What is not understood is told first: it may be what is missing, misspelled.
        action.required = False
    found, unknown = parser.parse_known_args(arguments.joined(parser, given))
    missing = [action.option_strings[0] for action in required if getattr(found, action.dest) is None]
    if unknown:
        raise arguments.UsageError(_not_understood(unknown, parser, missing))
    if missing:
        raise arguments.UsageError(f"{_listed(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return found


def _not_understood(unknown: list[str], parser: arguments.Parser, missing: list[str]) -> str:
    word = unknown[0]
    if not word.startswith("-"):
        import shlex

        words = [each for each in unknown if not each.startswith("-")]
        meant = " ".join(f"{option} {shlex.quote(each)}" for option, each in zip(missing, words, strict=False))
        return f"`{word}` is not understood" + (f"; write `{meant}`" if meant else "")
    name = word.partition("=")[0]
    options = [option for action in parser.actions for option in action.option_strings]
    close = nearest(name, options)
    return f"there is no option `{name}`" + (f" (did you mean `{close}`?)" if close else "")


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def make_parser() -> arguments.Parser:
    """What it understands."""
    parser = arguments.Parser(
        prog="trunkline agentproc run",
        description="Send one message to an AgentProc agent and show its answer.",
        epilog=_EXAMPLES,
        formatter_class=arguments.HelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--profile", required=True, metavar="P", help="a profile's file, or the name of a bundled one")
    add("--message", required=True, metavar="M", help="what to say; `-` reads it from standard input")
    add("--session", default="", metavar="ID", help="continue this session (default: start a new one)")
    add(
        "--session-name",
        default=DEFAULT_SESSION_NAME,
        metavar="NAME",
        help="the session's display name (default: default)",
    )
    add("--from", dest="from_user", default="", metavar="USER", help="who sends the message")
    for name, type, what in (("--image-url", "image", "attach a picture"), ("--file-url", "file", "attach a file")):
        add(name, action="append", dest="attachments", default=[], type=_of_type(type), metavar="URL", help=what)
    add(
        "--attach",
        action="append",
        dest="attachments",
        type=_attachment,
        metavar="TYPE=URL[=NAME]",
        help="attach an image, file, audio or video",
    )
    add("--cwd", metavar="DIR", help="the agent's working directory, instead of the profile's")
    add(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an environment variable for the agent, passed as it is",
    )
    add("--timeout", metavar="SECONDS", help="the longest turn, instead of the profile's limit; 0 for no limit")
    add("--no-stream", action="store_true", help="do not stream: print the answer when it is complete")
    add("--raw", action="store_true", help="print what the agent prints, as it is: protocol lines and all")
    add("--json", action="store_true", help="print one JSON object at the end, and nothing else")
    add(
        "--permission",
        action="store_true",
        help="with --json: pass what the agent asks on as `permission_request` lines, and take `permission_response` "
        "lines from standard input",
    )
    add("-v", "--verbose", action="store_true", help="show what the agent writes to its standard error, as it comes")
    return parser


def _of_type(type: str) -> Callable[[str], Attachment]:
    return lambda url: Attachment(type, url)


def _attachment(text: str) -> Attachment:
    """`TYPE=URL[=NAME]`. A URL may hold `=` itself: in its query, the first one after `&` or `?` is its own."""
    type, equals, rest = text.partition("=")
    if not equals or not rest or type not in ATTACHMENT_TYPES:
        raise argparse.ArgumentTypeError(
            f"`{text}` must be TYPE=URL or TYPE=URL=NAME, the type one of {', '.join(ATTACHMENT_TYPES)}"
        )
    url, separator, name = rest.rpartition("=")
    _, query, member = url.replace("&", "?").rpartition("?")
    is_own = bool(query) and "=" not in member
    # Padding at the end of a `data:` URL is no name.
    if not separator or not url or not name or is_own:
        return Attachment(type, rest)
    return Attachment(type, url, name)
