"""The words of graph agents, which their wire and their nodes share: what a graph is, and what a turn of it tells."""
