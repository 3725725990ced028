"""The data pipeline alone, stage by stage: the program's own loader, measured in its own process without the model.

``child`` runs in the user's program and measures; ``examine`` starts the program and reads what was measured;
``conclude`` makes the report of it.
"""
