"""The 24/7 runner: context, prompt, decision, actions, log."""
