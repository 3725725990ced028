"""One file per intervention. Each has a class ``Here``, what it does in the user's process.

An intervention is wanted by a specification, a dict with the file's name as ``kind`` and its arguments. A new one is
a new file here.
"""
