"""The kit for the wire between runners and a network: anybody's network, seen as a runner sees it."""
