"""What benchmarks of other tools need."""
