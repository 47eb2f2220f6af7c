"""What the coding agent's turns have changed, kept beside the workspace so that it can be put back."""
