"""Agents in chats: the platforms, and the bridge between them and any agent."""
