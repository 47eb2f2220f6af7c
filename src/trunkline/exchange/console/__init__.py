"""A page where one talks to an agent with the browser's microphone."""
