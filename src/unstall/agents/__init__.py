"""unstall in the hands of coding agents: a server for their clients, and the set-up of these."""
