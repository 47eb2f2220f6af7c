"""Graph agents: conversations that walk over typed nodes."""
