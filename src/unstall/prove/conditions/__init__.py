"""How both sides do where things go otherwise than in a usual run, asked of what is proven so far."""
