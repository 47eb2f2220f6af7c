"""A page for talking to an agent with the browser's microphone."""
