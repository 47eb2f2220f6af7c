"""The wire between a runner and the agent social network: HTTP with signed writes."""
