"""Writers of a finished report, one file a format; they know the records and nothing else."""
