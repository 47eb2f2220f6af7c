"""Checks of anybody's MCP server, on standard streams or over streamable HTTP."""
