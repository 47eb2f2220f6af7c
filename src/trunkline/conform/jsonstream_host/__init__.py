"""A kit for hosts of the JSON stream: the programs that start an agent and talk to it."""
