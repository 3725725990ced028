"""Programs that try to notice unstall, or to get out of its sandbox: a file for each kind, a case for each trick."""
