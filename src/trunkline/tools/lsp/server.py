"""One language server: a program that is told what changes, and tells what is wrong.

It is started when it is first needed, and kept. Whatever goes wrong with it is a `ServerFailed`: whoever asked goes on
without it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from trunkline.base.own_python import safe_python
from trunkline.base.process import SpawnError, StderrTail, child_env
from trunkline.base.process_async import AsyncChild, spawn_async
from trunkline.base.redact import Redactor
from trunkline.base.values import Value
from trunkline.tools.arguments import ToolInputError
from trunkline.tools.lsp.messages import Diagnostic, MessageReader, ServerNonsense, diagnostics, encoded
from trunkline.tools.truncation import one_line

#: How long a server may take from its start to its first answer. Some read a whole project before it.
START_SECONDS = 15.0
#: How long an edit waits for what a server says about it.
DIAGNOSTICS_SECONDS = 5.0
#: After how many changes in a row about which it said nothing in time, it is not waited for any more until it says
#: something: a server that reads a large project has its reasons.
MOST_LATE = 3
#: Servers tell the syntax first, and the rest a moment later: how long to wait for more.
SETTLE_SECONDS = 0.4
#: How long it may take to take its leave.
GOODBYE_SECONDS = 0.3
#: What may come between two edits. Whoever sends more is broken, and would keep us from everything else.
FLOOD_BYTES = 64 * 1024 * 1024
#: The last words of one that has ended.
LAST_WORDS_CHARS = 300

#: How long one is left alone that has other things to do, before it is asked again.
AGAIN_SECONDS = 0.3

_METHOD_NOT_FOUND = -32601
#: What one answers that is to be asked again: something has changed meanwhile, or it cannot say anything yet.
_AGAIN = (-32801, -32802)
_LANGUAGES = {
    "py": "python", "pyi": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript",
    "jsx": "javascriptreact", "ts": "typescript", "mts": "typescript", "cts": "typescript", "tsx": "typescriptreact",
    "rs": "rust", "rb": "ruby", "h": "c", "hpp": "cpp", "cc": "cpp", "cxx": "cpp", "cs": "csharp", "sh": "shellscript",
    "bash": "shellscript", "yml": "yaml", "md": "markdown", "kt": "kotlin", "hs": "haskell", "ex": "elixir",
    "exs": "elixir", "tex": "latex", "htm": "html", "pl": "perl", "m": "objective-c", "jsonc": "jsonc",
}  # fmt: skip


class ServerFailed(ToolInputError):
    """A server is of no use, at least for now; the text says why, for people."""


class ServerLate(ServerFailed):
    """It has not said anything in time, and may still."""


class _AskAgain(ServerFailed):
    """It has other things to do just now."""


class LanguageServer(Value):
    """How a server is started, and for which files."""

    name: str
    command: tuple[str, ...]
    extensions: tuple[str, ...]
    """With their dots."""
    root: str = "."
    """From the workspace."""

    def root_in(self, workspace: str) -> str:
        """The directory that it takes for the project."""
        return os.path.normpath(os.path.join(workspace, os.path.expanduser(self.root)))


class _Open:
    """A file that the server knows of."""

    def __init__(self) -> None:
        self.version = 0
        self.told: tuple[Diagnostic, ...] = ()
        self.was_told = False
        """Whether that is about its latest version."""
        self.news = asyncio.Event()


class RunningServer:
    """A server that was started. `close` ends it."""

    def __init__(self, spec: LanguageServer, child: AsyncChild, redactor: Redactor) -> None:
        self._spec = spec
        self._child = child
        self._redactor = redactor
        self._stderr: StderrTail = child.keep_stderr_tail()
        self._files: dict[str, _Open] = {}
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._received = 0
        self._pulls = False
        self._broken: str | None = None
        self._late = 0
        """Changes since it last said something about a file."""
        self._reading = asyncio.create_task(self._read(), name=f"language server {spec.name}")

    @classmethod
    async def start(
        cls, spec: LanguageServer, workspace: str, env: Mapping[str, str], redactor: Redactor, *, trusted: bool
    ) -> RunningServer:
        """Start it, and wait until it answers.

        Raises:
            ServerFailed: it does not.
        """
        argv = spec.command if trusted else safe_python(spec.command)
        try:
            child = await spawn_async(argv, cwd=workspace, env=child_env(env), stdin="pipe")
        except SpawnError as error:
            raise ServerFailed(f"it could not be started: {error}") from None
        server = cls(spec, child, redactor)
        try:
            await server._introduce(spec.root_in(workspace))
        except BaseException:
            await server.close()
            raise
        return server

    @property
    def ended(self) -> bool:
        """Whether it is of no use any more."""
        return self._broken is not None

    @property
    def is_late(self) -> bool:
        """Whether nobody waits for what it says, until it says something."""
        return self._late >= MOST_LATE

    async def changed(self, path: str, text: str) -> tuple[Diagnostic, ...]:
        """Tell it of a file's new content, and wait for what is wrong with it.

        Raises:
            ServerLate: it does not say anything in time.
            ServerFailed: it has ended.
        """
        self._received = 0
        uri = _uri(path)
        file = self._files.setdefault(uri, _Open())
        file.version += 1
        file.was_told = False
        file.news.clear()
        about = {"uri": uri, "version": file.version}
        if file.version == 1:
            language = os.path.splitext(path)[1].removeprefix(".").lower()
            opened = {**about, "languageId": _LANGUAGES.get(language, language), "text": text}
            self._notify("textDocument/didOpen", {"textDocument": opened})
        else:
            self._notify("textDocument/didChange", {"textDocument": about, "contentChanges": [{"text": text}]})
        self._notify("textDocument/didSave", {"textDocument": {"uri": uri}, "text": text})
        if self.is_late:
            if self._pulls:
                # Nobody waits for the answer; that there is one tells that it is worth waiting again.
                self._send(self._asking("textDocument/diagnostic", {"textDocument": {"uri": uri}}))
            raise ServerLate("it has not said anything yet")
        try:
            async with asyncio.timeout(DIAGNOSTICS_SECONDS):
                if self._pulls:
                    return await self._pulled(uri)
                await self._told(file)
        except TimeoutError:
            if not self._files[uri].was_told:
                self._late += 1
                raise ServerLate(f"it said nothing within {DIAGNOSTICS_SECONDS:g} s") from None
        return self._files[uri].told

    async def _pulled(self, uri: str) -> tuple[Diagnostic, ...]:
        """Ask for it, again and again where it is not ready: it may still read the project."""
        while True:
            try:
                answer = await self._request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
            except _AskAgain:
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            return diagnostics(answer.get("items") if isinstance(answer, dict) else None)

    async def _told(self, file: _Open) -> None:
        """Wait for what it says, and a moment for more of that."""
        seconds: float | None = None
        while True:
            try:
                async with asyncio.timeout(seconds):
                    await file.news.wait()
            except TimeoutError:
                return
            file.news.clear()
            self._check()
            seconds = SETTLE_SECONDS

    async def close(self) -> None:
        """Let it go. Bounded; may be called again."""
        if self._broken is None:
            try:
                async with asyncio.timeout(GOODBYE_SECONDS):
                    await self._request("shutdown", None)
                    self._notify("exit", None)
                    await self._child.wait()
            except (TimeoutError, ServerFailed):
                # It had its chance.
                pass
        self._break("it was closed")
        self._reading.cancel()
        await asyncio.wait({self._reading})
        await self._child.close()

    async def _introduce(self, root: str) -> None:
        uri = _uri(root)
        about = {
            "processId": os.getpid(),
            "clientInfo": {"name": "trunkline"},
            "rootUri": uri,
            "rootPath": root,
            "workspaceFolders": [{"uri": uri, "name": os.path.basename(root) or root}],
            "capabilities": {
                "general": {"positionEncodings": ["utf-16"]},
                "textDocument": {
                    "synchronization": {"didSave": True},
                    "publishDiagnostics": {"versionSupport": True},
                    "diagnostic": {"dynamicRegistration": False},
                },
                "workspace": {"configuration": True, "workspaceFolders": True},
            },
        }
        try:
            async with asyncio.timeout(START_SECONDS):
                answer = await self._request("initialize", about)
        except TimeoutError:
            raise ServerFailed(f"it did not answer within {START_SECONDS:g} s") from None
        can = answer.get("capabilities") if isinstance(answer, dict) else None
        self._pulls = isinstance(can, dict) and bool(can.get("diagnosticProvider"))
        self._notify("initialized", {})

    # What goes out

    async def _request(self, method: str, params: Any) -> Any:
        asking = self._asking(method, params)
        number = asking["id"]
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        try:
            self._send(asking)
            return await answer
        finally:
            self._answers.pop(number, None)

    def _asking(self, method: str, params: Any) -> dict[str, Any]:
        self._number += 1
        return {"id": self._number, "method": method, "params": params}

    def _notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: Mapping[str, Any]) -> None:
        self._check()
        if message.get("params", ...) is None:
            message = {name: value for name, value in message.items() if name != "params"}
        try:
            self._child.write(encoded(message))
        except BufferError:
            self._break("it does not read what it is sent")
            self._check()

    def _check(self) -> None:
        if self._broken is not None:
            raise ServerFailed(self._broken)

    # What comes in

    async def _read(self) -> None:
        reader = MessageReader()
        try:
            while data := await self._child.read_stdout():
                self._received += len(data)
                if self._received > FLOOD_BYTES:
                    self._break("it sends without an end")
                    return
                for message in reader.feed(data):
                    self._take(message)
        except ServerNonsense as error:
            self._break(str(error))
            return
        except Exception as error:  # what it has sent may be anything; nobody must wait for a server that is not heard
            self._break(f"it sends something that cannot be read ({type(error).__name__})")
            return
        code = await self._child.wait()
        await self._child.drained()
        words = one_line(self._redactor.text(self._stderr.text())[-LAST_WORDS_CHARS:])
        self._break(f"it ended with exit code {code}" + (f"; its last words: {words}" if words else ""))

    def _take(self, message: dict[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str):
            params = message.get("params")
            if number is not None:
                self._answer(number, method, params)
            elif method == "textDocument/publishDiagnostics" and isinstance(params, dict):
                self._published(params)
        elif isinstance(number, int) and number not in self._answers:
            # It comes too late for whoever asked.
            self._late = self._late if _is_unready(message) else 0
        elif isinstance(number, int) and (answer := self._answers.get(number)) is not None and not answer.done():
            if "error" in message:
                error = message["error"]
                said = error.get("message") if isinstance(error, dict) else ""
                failed = _AskAgain if _is_unready(message) else ServerFailed
                answer.set_exception(failed(f"it refuses: {one_line(self._redactor.text(str(said)), 200)}"))
            else:
                answer.set_result(message.get("result"))

    def _answer(self, number: Any, method: str, params: Any) -> None:
        """It asks something: there is nothing to tell it that it does not know."""
        answer: dict[str, Any] = {"id": number, "result": None}
        if method == "workspace/configuration":
            items = params.get("items") if isinstance(params, dict) else None
            answer["result"] = [None] * min(len(items), 1000) if isinstance(items, list) else []
        elif method == "workspace/applyEdit":
            # What it would change, nobody was asked about.
            answer["result"] = {"applied": False}
        elif not method.startswith(("client/", "window/", "workspace/")):
            answer = {"id": number, "error": {"code": _METHOD_NOT_FOUND, "message": "not supported"}}
        try:
            self._send(answer)
        except ServerFailed:
            return

    def _published(self, params: dict[str, Any]) -> None:
        file = self._files.get(_plain(params.get("uri")))
        version = params.get("version")
        if file is not None:
            self._late = 0
        # Of what it was told before, it is late; of another file, nobody has asked.
        if file is None or (isinstance(version, int) and version < file.version):
            return
        file.told = diagnostics(params.get("diagnostics"))
        file.was_told = True
        file.news.set()

    def _break(self, reason: str) -> None:
        if self._broken is None:
            self._broken = reason
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ServerFailed(self._broken))
        for file in self._files.values():
            file.news.set()


def _is_unready(message: Mapping[str, Any]) -> bool:
    """Whether an answer only says to ask again."""
    error = message.get("error")
    return isinstance(error, dict) and error.get("code") in _AGAIN


def _uri(path: str) -> str:
    return "file://" + quote(os.fsencode(path))


def _plain(uri: Any) -> str:
    """An address as we spell it: servers escape more than is needed, or less."""
    from urllib.parse import unquote_to_bytes

    if not isinstance(uri, str) or not uri.startswith("file://"):
        return ""
    # (JSON may hold half a character.)
    return "file://" + quote(unquote_to_bytes(uri.removeprefix("file://").encode("utf-8", "surrogatepass")))
