"""Language servers: what is wrong with a file that was changed."""
