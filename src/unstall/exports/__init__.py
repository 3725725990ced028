"""A run's figures in the form that other tools keep theirs in: one file a tool, its library imported when used."""
