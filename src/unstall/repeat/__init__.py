"""The fourth step: keep every run, compare runs, gate changes, and say when the program is fast enough."""
