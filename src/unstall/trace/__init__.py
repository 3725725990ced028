"""Reading GPU traces that somebody already recorded, and saying what they show."""
