"""The command line: one file a verb, each of which reads as its story: options, use case, view, files."""
