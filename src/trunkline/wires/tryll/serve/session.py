"""One session of a Tryll server: what each request does, and in which order the answers come.

Configuring, storages and new agents are done one after the other, as they were asked for: whoever sends them in one go
gets what it means. Turns and models go on beside all of that.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import finalize

from trunkline.base.extras import lacking
from trunkline.base.memory import weight
from trunkline.core.faults import AgentCrashed, Fault, InternalError, LocalProtocolError
from trunkline.core.graph.hosting import HostSettings
from trunkline.core.graph.turns import Ending
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.errors import TryllError, described
from trunkline.wires.tryll.host import HostSession
from trunkline.wires.tryll.serve.history import HISTORY
from trunkline.wires.tryll.serve.pace import TurnPace
from trunkline.wires.tryll.serve.quota import MAX_KEPT_BYTES, MAX_SAID_BYTES, MemoryQuota
from trunkline.wires.tryll.serve.requests import REQUESTS, Reporter
from trunkline.wires.tryll.serve.scheduler import RequestScheduler
from trunkline.wires.tryll.serve.traced import AGENT, traced
from trunkline.wires.tryll.serve.turns import ServedAgent, ServedTurn
from trunkline.wires.tryll.serve.voice import VOICE_REQUESTS, VoiceInputs

if TYPE_CHECKING:
    from trunkline.wires.tryll.serve.connection import ServerConnection

T = TypeVar("T")

logger = logging.getLogger(__name__)

#: Agents of one session at a time.
MAX_AGENTS = 4096
#: An agent's id is the session's, followed by so many bits: no session has another one's, and who counts need not
#: remember those that are gone.
AGENT_BITS = 24

#: Whose words are a programmer's: they are for the log, and not for a client.
_DEFECTS = (AgentCrashed, InternalError, LocalProtocolError)

_VERSIONS = (0, m.PROTOCOL_VERSION)
_ENGINES = frozenset(m.InferenceEngine.names())


class ClientSession(RequestScheduler):
    """What one client has here."""

    __slots__ = ("_agents", "_count", "_ended", "_leaving", "_pace", "_turns", "host", "kept", "said", "voices")

    def __init__(self, connection: ServerConnection) -> None:
        super().__init__(connection)
        self.host: HostSession | None = None
        """None until the session is configured."""
        self._agents: dict[int, ServedAgent] = {}
        self._count = 0
        """How many agents there have been."""
        self._leaving: dict[int, ServedAgent] = {}
        """Agents that are destroyed as soon as they are idle."""
        self._turns = 0
        """How many are under way."""
        self.voices: VoiceInputs | None = None
        """None until it has one."""
        self.kept = MemoryQuota(MAX_KEPT_BYTES, "agents and storages")
        self.said = MemoryQuota(MAX_SAID_BYTES, "conversations")
        most = self.server.settings.turns_per_minute
        self._pace = TurnPace(most) if most else None
        self._ended = False

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._turns and not self._tasks and (self.voices is None or not self.voices.listening)

    def handle(self, message: m.Message, size: int, voice_input_id: int = 0) -> None:
        """Do what a message asks for. `size` is that of its frame; or it has what was said into a voice input."""
        known = _HANDLERS.get(type(message))
        try:
            if known is None:
                raise TryllError(5002, f"`{type(message).__name__}` is nothing that this server takes.")
            known[0](self, message, size)
        except Exception as error:
            self._failed(message, error, voice_input_id)

    def _failed(self, request: m.Message, error: Exception, voice_input_id: int = 0) -> None:
        if isinstance(error, Fault) and not isinstance(error, _DEFECTS):
            whole = str(error)
            error = TryllError.of(error)
            if error.message != whole:
                # What only those who run the server can use.
                logger.warning("a `%s` was refused: %s", type(request).__name__, whole)
        elif not isinstance(error, TryllError):
            lacks = lacking(error) if isinstance(error, ModuleNotFoundError) else None
            trace = None if lacks is not None else error
            logger.error("a `%s` failed%s", type(request).__name__, f": {lacks}" if lacks else "", exc_info=trace)
            known = _HANDLERS.get(type(request))
            error = TryllError(known[1] if known else 5001, f"The server failed at this ({type(error).__name__}).")
        request_id = getattr(request, "request_id", 0)
        agent_id = 0 if request_id else getattr(request, "agent_id", 0)
        self.say(m.ErrorResponse(request_id, error.code, error.message, agent_id, voice_input_id))

    def _rest(self) -> None:
        """Something is over. Perhaps everything is."""
        if (self._ended or self.server.stopping) and self.idle:
            if self._ended:
                self._close()
            else:
                self.connection.stop()

    def say(self, message: m.Message) -> None:
        """Send an answer."""
        self.connection.say(message)

    def configured(self) -> HostSession:
        """What belongs to the session.

        Raises:
            TryllError: 2002, it is not configured.
        """
        if self.host is None:
            raise TryllError(2002)
        return self.host

    @property
    def is_trusted(self) -> bool:
        """Whether the client has given the token, or none is needed."""
        return self.host is not None or not self.server.settings.token

    def trusted(self) -> None:
        """Nothing, if the client may ask for what no session owns.

        Raises:
            TryllError: 2003, it has not given the token.
        """
        if not self.is_trusted:
            raise TryllError(2003)

    async def keep(self, made: Callable[[], Awaitable[T]], request: m.Message, code: int) -> tuple[T, int]:
        """Make what is kept as long as it is not destroyed; gives its size, which is to be given back then.

        Raises:
            TryllError: `code`, there is no room for more.
        """
        size = weight(request)
        self.kept.take(size, code)
        try:
            return await made(), size
        except BaseException:
            self.kept.give_back(size)
            raise

    def until_gone(self, kept: object, size: int) -> None:
        """Give back the size of something when nobody has it any more: not the session, and no agent either."""
        finalize(kept, self.kept.give_back, size).atexit = False

    def heard(self, served: ServedAgent) -> None:
        """The conversation of an agent is another one. Where there is no room for it, its beginning is forgotten."""
        size = served.agent.history_size()
        self.said.taken += size - served.said
        served.said = size
        if self.said.over > 0:
            served.agent.forget(size - self.said.over)
            served.said = served.agent.history_size()
            self.said.taken += served.said - size

    # The session.

    def configure(self, request: m.ConfigureSessionRequest, size: int) -> None:
        if self._lane is not None and self._lane.busy:
            self.in_order(self._configure_later, request, size)
        else:
            self._working()
            self._configure(request)

    async def _configure_later(self, request: m.ConfigureSessionRequest) -> None:
        self._configure(request)

    def _configure(self, request: m.ConfigureSessionRequest) -> None:
        request_id, version, token = request.request_id, request.protocol_version, self.server.settings.token
        if version not in _VERSIONS:
            problem = f"This server speaks version {m.PROTOCOL_VERSION} of the protocol, and the client {version}."
            self.server.refused("version")
            self.connection.refuse(5004, problem, request_id)
            return
        given = request.token or self.connection.bearer
        if token and not hmac.compare_digest(given.encode("utf-8", "replace"), token.encode()):
            # No second guess on the same connection.
            self.server.refused("token")
            self.connection.refuse(2003, "The token is missing or wrong.", request_id)
            return
        for kind in ("inference_engine", "stt_engine", "tts_engine", "embedding_engine"):
            if getattr(request, kind) not in _ENGINES:
                raise TryllError(5001, f"`{kind}`: there is no engine {getattr(request, kind)}.")
        if not self.connection.admit(request_id):
            return
        host = self.host if self.host is not None else self.server.host.open_session(described)
        host.configure(
            HostSettings(
                request.inference_engine,
                request.allow_auto_model_downloading,
                request.stt_engine,
                request.tts_engine,
                request.embedding_engine,
                request.storage_data_folder,
            )
        )
        self.host = host
        self.connection.configured()
        self.say(m.ConfigureSessionResponse(request_id))

    # Agents.

    def create_agent(self, request: m.CreateAgentRequest, size: int) -> None:
        self.in_order(self._create_agent, request, size)

    async def _create_agent(self, request: m.CreateAgentRequest) -> None:
        host = self.configured()
        if (graph := request.graph) is None:
            raise TryllError(3003, "There is no graph.")
        self._room_for_agent()
        make = partial(
            host.create_agent,
            graph,
            Reporter(self.connection, request.request_id),
            default_model=request.default_model_name,
            diagnostics=request.enable_diagnostics,
            max_steps=request.max_steps_per_turn,
        )
        agent, size = await self.keep(make, request, 3003)
        self._count += 1
        agent_id = self.connection.id << AGENT_BITS | self._count
        self._agents[agent_id] = ServedAgent(agent_id, agent, size)
        self.server.agents += 1
        self.say(m.CreateAgentResponse(request.request_id, agent_id))

    def _room_for_agent(self) -> None:
        wanted = self.server.settings.max_agents
        most = min(wanted, MAX_AGENTS) if wanted else MAX_AGENTS
        if len(self._agents) >= most or self._count >> AGENT_BITS:
            self.server.limited("agents")
            raise TryllError(3003, f"A session has at most {most} agents.")

    def _paced(self, pace: TurnPace) -> None:
        wait = pace.wait(self.server.loop.time())
        if wait:
            self.server.limited("turns")
            most = self.server.settings.turns_per_minute
            raise TryllError(3004, f"A connection has at most {most} turns in a minute: the next one in {wait:.0f} s.")

    def served(self, agent_id: int) -> ServedAgent:
        """An agent of this session.

        Raises:
            TryllError: 3002, it was destroyed; 3001, there never was one.
        """
        found = self._agents.get(agent_id)
        if found is None:
            ours, number = agent_id >> AGENT_BITS == self.connection.id, agent_id & (1 << AGENT_BITS) - 1
            raise TryllError(3002 if ours and 0 < number <= self._count else 3001)
        return found

    def waits(self, served: ServedAgent, request: m.Message, size: int) -> bool:
        """Whether the agent changes: then the request is for what it will be, and is handled when it is that."""
        if not served.changing:
            return False
        self.weigh(size, 1)

        def go_on() -> None:
            self.weigh(-size, -1)
            if not self._ended:
                self.handle(request, size)

        served.next.append(go_on)
        return True

    def send_message(self, request: m.SendMessageRequest, size: int) -> None:
        served = self.served(request.agent_id)
        server = self.server
        if server.stopping:
            raise TryllError(2001)
        if served.turn is not None:
            raise TryllError(3004)
        # `waits` asks for that, too: this saves a call for each message, of which there are the most.
        if served.changing and self.waits(served, request, size):
            return
        # Behind that: what waits comes here again, and is one turn.
        if self._pace is not None:
            self._paced(self._pace)
        turn = ServedTurn(self.connection, served, request.request_id, size)
        work = served.agent.turn(request.text, turn)
        served.turn = turn
        self.weigh(turn.size)
        self._turns += 1
        server.turns.add(turn)
        if server.tracer is not None:
            work = traced(work, server.tracer.turn(str(served.id), AGENT))
        turn.task = server.loop.create_task(turn.run(work, self._turn_over), name="turn")

    def _turn_over(self, turn: ServedTurn, ending: Ending) -> None:
        served = turn.served
        try:
            turn.complete(ending)
        except Exception:
            # Whatever its end was, the client waits for one.
            logger.exception("the end of a turn cannot be sent")
            turn.complete(Ending(m.TurnStatus.ERROR))
        finally:
            served.turn = None
            self._turns -= 1
            self.weigh(-turn.size)
            self.server.turn_over(turn, self.connection.id, ending)
        self.heard(served)
        if served.then:
            served.settle()
        if self._ended or self.server.stopping:
            self._rest()

    def cancel_turn(self, request: m.CancelTurnRequest, size: int) -> None:
        served = self.served(request.agent_id)
        if self.waits(served, request, size):
            return
        if served.turn is None:
            self.say(m.Ack(request.request_id))
        else:
            served.when_idle(lambda: self.say(m.Ack(request.request_id)))
            served.turn.cancel()

    def destroy_agent(self, request: m.DestroyAgentRequest, size: int) -> None:
        served = self.served(request.agent_id)
        if self.waits(served, request, size):
            return
        if served.turn is not None:
            served.turn.cancel()
        # From here on nobody finds it; what it still has to say comes before the `Ack`.
        self._leaving[served.id] = self._agents.pop(served.id)
        served.when_idle(lambda: self._destroyed(served, request.request_id))

    def _destroyed(self, served: ServedAgent, request_id: int) -> None:
        del self._leaving[served.id]
        self.server.agents -= 1
        self.kept.give_back(served.size)
        self.said.give_back(served.said)
        served.agent.close()
        self.say(m.Ack(request_id))

    def change(self, request: m.ChangeAgentParamRequest, size: int) -> None:
        served = self.served(request.agent_id)
        if served.turn is not None:
            raise TryllError(3004)
        if self.waits(served, request, size):
            return
        params = request.params
        if params is None:
            raise TryllError(3007, f"The node `{request.node_name}` needs parameters.")
        self.beside(lambda asked: self._change(served, asked, params), request, size)
        served.changing = True

    async def _change(self, served: ServedAgent, request: m.ChangeAgentParamRequest, params: m.NodeParams) -> None:
        name, size = request.node_name, weight(params)
        more = size - served.changed.get(name, 0)
        try:
            self.kept.take(more, 3007)
            try:
                await served.agent.change(name, params)
            except BaseException:
                self.kept.give_back(more)
                raise
            served.changed[name] = size
            served.size += more
            self.say(m.Ack(request.request_id))
        except Exception as error:
            self._failed(request, error)
        finally:
            served.changing = False
            served.settle()

    # The end.

    def end(self) -> None:
        """Cancel everything; turns say that they were. The connection is finished when all of them have."""
        self._ended = True
        if self.voices is not None:
            self.voices.close()
        for served in (*self._agents.values(), *self._leaving.values()):
            if served.turn is not None:
                served.turn.cancel()
        for task in list(self._tasks):
            task.cancel()
        self._rest()

    def lost(self) -> None:
        """The client is gone."""
        if not self._ended:
            self.end()

    def _close(self) -> None:
        for served in (*self._agents.values(), *self._leaving.values()):
            self.server.agents -= 1
            served.agent.close()
        self._agents.clear()
        self._leaving.clear()
        host, self.host = self.host, None
        if host is not None:
            host.close()
        self.connection.finish()


#: What is done for each kind of request, and the number for a failure that nobody foresaw.
_HANDLERS: dict[type[m.Message], tuple[Callable[[ClientSession, Any, int], None], int]] = {
    m.SendMessageRequest: (ClientSession.send_message, 3003),
    m.ConfigureSessionRequest: (ClientSession.configure, 2002),
    m.CreateAgentRequest: (ClientSession.create_agent, 3003),
    m.DestroyAgentRequest: (ClientSession.destroy_agent, 3003),
    m.ChangeAgentParamRequest: (ClientSession.change, 3007),
    m.CancelTurnRequest: (ClientSession.cancel_turn, 3003),
    **HISTORY,
    **REQUESTS,
    **VOICE_REQUESTS,
}
