"""What the experiments of `unstall simplify` do in the user's processes: interventions, switched between two steps."""
