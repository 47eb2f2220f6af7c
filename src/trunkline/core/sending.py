"""Commands that send data out of this machine, or could.

Programs that talk to others are known by name. So are those of their commands that send something, of an interpreter
the words of its libraries, and addresses whichever program they are given to. What a script does, and what a program
of the project's own does, is not seen. The list is what `docs/explanation/prompt-injection.md` says.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from itertools import pairwise

from trunkline.base.visible import inline
from trunkline.core.command_texts import texts_of, tokens
from trunkline.core.shell_words import CONNECTION, SimpleCommand
from trunkline.core.shell_wrapped import is_interpreter, look_into, program_of

#: What programs of this kind are for is to talk to somebody else.
SENDERS = frozenset(
    {
        "curl", "curlie", "wget", "wget2", "aria2c", "axel", "http", "https", "httpie", "xh", "lynx", "w3m", "links",
        "elinks", "nc", "ncat", "netcat", "nc.openbsd", "nc.traditional", "socat", "telnet", "ssh", "scp", "sftp",
        "sshfs", "autossh", "mosh", "rsync", "rclone", "ftp", "lftp", "ncftp", "ncftpput", "tftp", "smbclient",
        "mail", "mailx", "mutt", "sendmail", "msmtp", "swaks", "dig", "nslookup", "host", "drill", "delv", "kdig",
        "getent", "ping", "ping6", "traceroute", "whois", "finger", "aws", "gcloud", "gsutil", "az", "s3cmd", "s5cmd",
        "mc", "doctl", "heroku", "flyctl", "fly", "vercel", "netlify", "wrangler", "twine", "ngrok", "cloudflared",
        "websocat", "wscat", "grpcurl", "mosquitto_pub", "wormhole", "croc", "ssh-copy-id", "torify",
    }
)  # fmt: skip
#: Of these, the ones whose names are words that people use.
_SPOKEN = frozenset(("http", "https", "host", "links", "mail", "fly", "finger", "ping", "mc", "az", "dig"))
_PUBLISHES = frozenset(("publish",))
_FORGE = frozenset(("api", "gist", "snippet", "create", "comment", "edit", "upload", "review", "set", "fork", "sync"))
#: Programs that send something with one of these words.
VERBS: Mapping[str, frozenset[str]] = {
    "git": frozenset(("push", "send-email", "send-pack", "http-push")),
    **dict.fromkeys(("gh", "glab", "hub"), _FORGE),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun", "cargo", "poetry", "uv", "hatch", "flit", "pdm"), _PUBLISHES),
    "gem": frozenset(("push",)),
    "mvn": frozenset(("deploy",)),
    **dict.fromkeys(("docker", "podman", "helm", "dvc", "hg"), frozenset(("push",))),
    "openssl": frozenset(("s_client",)),
    "svn": frozenset(("commit", "ci")),
}
#: What a program in another language has in it that uses the network.
_NETWORK = re.compile(
    r"(?:\b|-[mM])(?:urllib|urlopen|requests|httpx|aiohttp|http\.(?:client|server)|HTTPS?Connection|socket|socketserver|ftplib|"
    r"smtplib|poplib|imaplib|telnetlib|xmlrpc|paramiko|asyncio\.open_connection|Net::|LWP|HTTP::Tiny|IO::Socket|"
    r"TCPSocket|UDPSocket|open-uri|net/http|fsockopen|pfsockopen|stream_socket_client|curl_exec|file_get_contents|"
    r"XMLHttpRequest|WebSocket|dgram|undici|axios|node-fetch|Invoke-WebRequest|Invoke-RestMethod|WebClient|iwr|irm)\b"
    r"|\bfetch\s*\(|\brequire\(\s*['\"](?:node:)?(?:https?|net|tls|dns)['\"]|\b(?:https?|ftp|wss?)://|/inet/"
)
#: A word that is an address of something elsewhere, behind the name of an option or without one.
_ADDRESS = re.compile(
    r"(?:-{0,2}[\w.-]+=)?(?!file:)[a-z][a-z0-9+.-]*://\S+|[\w.-]+@(?!sha\d+:)[\w.-]+:\S*", re.IGNORECASE
)
#: Programs that do no more with an address than show it, or look for it.
_QUIET = frozenset(
    ("echo", "printf", "grep", "egrep", "fgrep", "rg", "sed", "cat", "ls", "test", "[", "true", "read", "export")
)
#: Of an address, for people.
_SHOWN_CHARS = 80
#: Of a command whose parts are not all known, in words.
UNREAD = "it cannot be read to its end"


def sends(command: str) -> str:
    """What in a command line sends data out, or could, in words; empty if nothing that is known does.

    A line that cannot be read to its end could.
    """
    found = look_into(command)
    # Once for the whole line, however many commands it has.
    connects, has_network = CONNECTION.search(command) is not None, _NETWORK.search(command) is not None
    for each in found.commands:
        if what := _sender(each, connects=connects, has_network=has_network):
            return f"`{what}`"
    for each in found.run:
        if what := next(filter(None, map(_told, texts_of(each))), ""):
            return f"`{what}`"
    return "" if found.certain else UNREAD


def _told(text: str) -> str:
    """The program in a text that is given to another, such as `sed`, if that text could be for running it."""
    return next((token for token, _ in pairwise(tokens(text)) if token in SENDERS and token not in _SPOKEN), "")


def _sender(command: SimpleCommand, *, connects: bool, has_network: bool) -> str:
    """`connects`, `has_network`: whether the line has such names in it, wherever."""
    program = program_of(command)
    words = [word.text for word in command.words[1:]]
    if program in SENDERS:
        return program
    targets = (redirection.target.text for redirection in command.redirections)
    if connects or any(CONNECTION.match(posixpath.normpath(target)) for target in targets):
        return "/dev/tcp"
    if verb := next((word for word in words if word in VERBS.get(program, ())), ""):
        return f"{program} {verb}"
    if has_network and is_interpreter(command):
        return program
    if program not in _QUIET and (address := next(filter(_ADDRESS.fullmatch, words), "")):
        return inline(address, _SHOWN_CHARS)
    return ""
