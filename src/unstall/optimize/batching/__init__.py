"""Loops that call a model for one item at a time: how they are read, and how they are written for many at once."""
