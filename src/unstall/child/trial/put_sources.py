"""Put changed sources in their places, in the sandbox, and become the program: ``put_sources.py MANIFEST COMMAND``.

Run as a script of its own. The manifest is JSON: [[target, file that holds the new content, or null], ...]; a target
without new content is removed.
"""

import json
import os
import sys


def place(manifest: str) -> None:
    """Overwrite each target with its new content; it keeps its mode, and a new one gets its folders."""
    with open(manifest) as file:
        pairs = json.load(file)
    for target, source in pairs:
        if source is None:
            os.remove(target)
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(source, "rb") as new:
            content = new.read()
        with open(target, "wb") as old:
            old.write(content)


if __name__ == "__main__":
    place(sys.argv[1])
    os.execv(sys.argv[2], sys.argv[2:])
