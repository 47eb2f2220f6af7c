"""The kit for agents: it plays the bridge, one process for each turn."""
