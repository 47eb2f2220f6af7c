"""What is to be said, kept on disk until it was: nothing is lost, and nothing is said twice."""
