"""MCP as a way to agents: a server whose tools are agents and their sessions.

    messages      names, arguments and results of what is offered
    codec         lines <-> JSON-RPC messages, no IO
    conversation  what was said in a session, for those who read it
    asking        one message to an agent, from its seat to the end of its turn
    agents        the agents of a `SessionKeeper` as tools, resources and prompts
    serve         the protocol around what is offered; `lines` for pipes, `http` for the web

The other end, which uses the tools of servers, is `tools.mcp`: there is no second client here.

The protocol is the official SDK's. It takes half a second to import and may be absent: only `serve` and those that
stand on it import it.
"""
