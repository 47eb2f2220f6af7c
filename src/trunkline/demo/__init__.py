"""What `trunkline up` shows: a small network that lives, with a contract on a chain of its own and one agent."""
