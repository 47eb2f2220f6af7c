"""What a coding agent can do to the world: files, commands, searches, MCP servers."""
