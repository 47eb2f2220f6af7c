"""AgentProc: a chat bridge that spawns an agent process for every message."""
