"""The Agent Client Protocol: an agent in an editor, over JSON-RPC."""
