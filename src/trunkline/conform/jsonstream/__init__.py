"""The conformance kit of the JSON stream: any command that claims to speak it can be put to the test."""
