extends TryllClient
## The autoload `Tryll`: the one connection of a game. A game that needs several makes more
## `TryllClient` nodes.
