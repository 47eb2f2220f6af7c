"""Kits for AgentProc: one plays the bridge and judges an agent, the other plays the agent and judges a bridge."""
