"""The coding agent: a language model with tools, approvals, sub-agents and MCP servers."""
