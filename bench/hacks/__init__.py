"""Changes of small programs: bad ones that look like speed-ups, and honest ones. Table-driven: see corpus.py."""

ENTRY = "train.py"
"""What is run of each program of the corpus."""
