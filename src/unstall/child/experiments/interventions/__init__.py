"""One file per intervention, one class per file: what the parent knows of it and what it does in the user's process.

A new one is a new file here, or a class in another package that the entry-point group ``unstall.interventions`` names.
"""
