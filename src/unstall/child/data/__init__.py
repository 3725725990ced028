"""What `unstall data` does in the user's process: measures its loader, stage by stage, instead of running the model."""
