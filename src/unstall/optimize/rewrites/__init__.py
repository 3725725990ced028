"""What a remedy finds in a source and puts in its place: one module for each, under the remedy's name.

They build on :mod:`unstall.optimize.source`, and know nothing of runs, shares or gains.
"""
