"""MCP servers as tools, through the official SDK.

    servers     all servers of a conversation, and their tools
    server      one server, kept at hand: started again when it is lost
    connection  one life of a server: handshake, list of tools, calls
    stdio, http how a server is reached
    tool        one tool of a server, as agents see tools
    names, results, messages, sdk

The SDK takes half a second to import and may be absent. Nothing here imports it before a server is wanted.
"""
