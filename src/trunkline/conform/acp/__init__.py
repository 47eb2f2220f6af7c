"""Checks of agents that speak the Agent Client Protocol (ACP), version 1, on standard input and output."""
