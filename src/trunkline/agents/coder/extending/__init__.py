"""What users extend the coding agent with, in files: skills, commands and output styles of their own, its memory."""
