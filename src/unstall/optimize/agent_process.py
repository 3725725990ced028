"""Let a command change the program's sources, in the sandbox, and copy out which: ``agent_process.py MANIFEST``.

Run as a script of its own, standard library only. The manifest is JSON: ``root`` of the program, ``sources`` as of
:mod:`unstall.child.trial.put_sources`, the shell ``command``, and the folder ``out``. Written there: ``changes.json``,
with the command's ``status``, ``changed`` files as [[path, name of the copy], ...], and ``removed`` ones.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

_SUFFIXES = (".py", ".pyw")
_NOT_SOURCES = ("__pycache__", "node_modules", "site-packages")


def sources_in(root: str) -> Iterator[str]:
    """The Python files below a folder, those in hidden folders and in environments left out."""
    for folder, folders, names in os.walk(root):
        folders[:] = [
            name
            for name in sorted(folders)
            if not name.startswith(".")
            and name not in _NOT_SOURCES
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        ]
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(_SUFFIXES) and os.path.isfile(path) and not os.path.islink(path):
                yield path


def contents(root: str) -> dict[str, bytes]:
    """Each of them with its bytes."""
    read = {}
    for path in sources_in(root):
        with open(path, "rb") as file:
            read[path] = file.read()
    return read


def main(manifest_path: str) -> None:
    """Put the sources in place, run the command, write what differs afterwards."""
    with open(manifest_path) as file:
        manifest = json.load(file)
    for target, source in manifest["sources"]:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(source, "rb") as new, open(target, "wb") as old:
            old.write(new.read())
    root, out = manifest["root"], manifest["out"]
    before = contents(root)
    status = subprocess.run(manifest["command"], shell=True, cwd=root, stdin=subprocess.DEVNULL).returncode
    after = contents(root)
    changed = []
    for number, (path, content) in enumerate(sorted(after.items())):
        if before.get(path) != content:
            copy = f"changed-{number}"
            with open(os.path.join(out, copy), "wb") as file:
                file.write(content)
            changed.append([path, copy])
    facts = {"status": status, "changed": changed, "removed": sorted(before.keys() - after.keys())}
    with open(os.path.join(out, "changes.json"), "w") as file:
        json.dump(facts, file)


if __name__ == "__main__":
    main(sys.argv[1])
