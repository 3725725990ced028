"""Put changed source files in their places, inside the sandbox, and become the program: ``place.py MANIFEST CMD...``.

Run as a script of its own. The manifest is JSON: [[target, file that holds the new content], ...].
"""

import json
import os
import sys


def place(manifest: str) -> None:
    """Overwrite each target with its new content; it keeps its mode."""
    with open(manifest) as file:
        pairs = json.load(file)
    for target, source in pairs:
        with open(source, "rb") as new:
            content = new.read()
        with open(target, "wb") as old:
            old.write(content)


if __name__ == "__main__":
    place(sys.argv[1])
    os.execv(sys.argv[2], sys.argv[2:])
