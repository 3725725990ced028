"""The fourth step: every run kept, compared with honest statistics, gated, and told when good is good enough."""
