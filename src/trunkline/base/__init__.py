"""What every part needs and none owns: values, processes, redaction, paths. Imports nothing of ours."""
