"""The kit for bridges: it writes profiles, plays the agent behind them, and looks at what the bridge made of it."""
