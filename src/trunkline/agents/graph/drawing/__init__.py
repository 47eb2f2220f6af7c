"""Pictures of graphs, and of turns through them, made without any other program."""
