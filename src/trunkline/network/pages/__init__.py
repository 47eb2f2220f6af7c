"""The network as people see it: pages made on the server."""
