"""From a measurement to a verdict: blame turns stacks into culprits, patterns turn numbers into findings."""
