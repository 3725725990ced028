"""Copies of files as they were before a program changed them, and how they are put back. Standard library only.

Every process of the program saves a path the first time that it is about to change it; the first to save it wins.
An entry is two files named by a hash of the path: ``<hash>.data``, a file's content, and ``<hash>.json``, what was
there: nothing, a file, a folder or a link, its mode and its times.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import tempfile

TYPE_CHECKING = False  # as typing's, without the import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Entry = dict[str, Any]


def save(vault: str, path: str) -> None:
    """Save what is at a path, and its folder's own times; a folder with all that is in it.

    OSError when there is no room for it: then the path must not be changed.
    """
    path = os.path.abspath(path)
    if path == vault or path.startswith(vault + os.sep):
        return
    parent = os.path.dirname(path)
    if parent != path:
        _save_one(vault, parent)
    _save_one(vault, path)
    if os.path.isdir(path) and not os.path.islink(path):
        for folder, folders, files in os.walk(path):
            for name in folders + files:
                _save_one(vault, os.path.join(folder, name))


def restore(vault: str) -> None:
    """Put everything back and empty the vault; OSError names what could not be, after trying the rest."""
    entries = sorted(_entries(vault), key=lambda entry: entry["path"].count(os.sep))
    failures = []
    for entry in entries:
        try:
            _put_back(entry)
        except OSError as error:
            failures.append(f"{entry['path']}: {error.strerror}")
    for entry in reversed(entries):  # times last, and a folder's after those of what is in it
        if entry["kind"] in ("file", "folder"):
            try:
                os.chmod(entry["path"], entry["mode"])
                os.utime(entry["path"], ns=(entry["atime"], entry["mtime"]))
            except OSError as error:
                failures.append(f"{entry['path']}: {error.strerror}")
    if failures:
        raise OSError(f"{failures[0]}" + (f" and {len(failures) - 1} more" if len(failures) > 1 else ""))
    shutil.rmtree(vault, ignore_errors=True)


def _save_one(vault: str, path: str) -> None:
    base = _base(vault, path)
    if os.path.exists(base + ".json") or _is_new(vault, os.path.dirname(path)):
        return
    os.makedirs(vault, exist_ok=True)
    entry = _describe(path)
    if entry["kind"] == "file":
        _first(vault, base + ".data", lambda target: shutil.copyfile(path, target))
    text = json.dumps(entry)
    _first(vault, base + ".json", lambda target: _write(target, text))


def _base(vault: str, path: str) -> str:
    return os.path.join(vault, hashlib.sha1(os.fsencode(path)).hexdigest())


def _is_new(vault: str, folder: str) -> bool:
    """Whether the program made a folder, or one that it is in: then all that is in it is the program's.

    Where there was a file or a link, there was no folder.
    """
    while True:
        try:
            with open(_base(vault, folder) + ".json") as file:
                if json.load(file)["kind"] != "folder":
                    return True
        except OSError:
            pass
        above = os.path.dirname(folder)
        if above == folder:
            return False
        folder = above


def _describe(path: str) -> Entry:
    try:
        facts = os.lstat(path)
    except OSError:
        return {"path": path, "kind": "nothing"}
    common = {
        "path": path,
        "mode": stat.S_IMODE(facts.st_mode),
        "atime": facts.st_atime_ns,
        "mtime": facts.st_mtime_ns,
    }
    if stat.S_ISLNK(facts.st_mode):
        return {**common, "kind": "link", "target": os.readlink(path)}
    if stat.S_ISDIR(facts.st_mode):
        return {**common, "kind": "folder"}
    return {**common, "kind": "file" if stat.S_ISREG(facts.st_mode) else "other"}


def _first(vault: str, name: str, make: Callable[[str], object]) -> None:
    """Make a file that appears whole, unless another process was faster."""
    handle, temporary = tempfile.mkstemp(dir=vault, suffix=".part")
    os.close(handle)
    try:
        make(temporary)
        os.link(temporary, name)
    except FileExistsError:
        pass
    finally:
        os.unlink(temporary)


def _write(target: str, text: str) -> None:
    with open(target, "w") as file:
        file.write(text)


def _entries(vault: str) -> Iterator[Entry]:
    try:
        names = [name for name in os.listdir(vault) if name.endswith(".json")]
    except OSError:
        return
    for name in names:
        with open(os.path.join(vault, name)) as file:
            yield {**json.load(file), "data": os.path.join(vault, name[: -len(".json")] + ".data")}


def _put_back(entry: Entry) -> None:
    path, kind = entry["path"], entry["kind"]
    if kind == "other":
        return
    now = _describe(path)
    changed = now["kind"] != kind or (kind == "link" and now["target"] != entry["target"])
    if changed and now["kind"] != "nothing":
        _remove(path)
        now = {"kind": "nothing"}
    if kind == "folder" and now["kind"] == "nothing":
        os.mkdir(path, 0o700)
    elif kind == "link" and now["kind"] == "nothing":
        os.symlink(entry["target"], path)
        os.utime(path, ns=(entry["atime"], entry["mtime"]), follow_symlinks=False)
    elif kind == "file" and not _same(path, entry["data"]):
        if now["kind"] == "file" and not os.access(path, os.W_OK):
            os.chmod(path, 0o600)
        shutil.copyfile(entry["data"], path)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _same(first: str, second: str) -> bool:
    """Whether two files hold the same bytes; their times tell nothing, as these are set back too."""
    import filecmp

    filecmp.clear_cache()  # it goes by the times
    try:
        return filecmp.cmp(first, second, shallow=False)
    except OSError:
        return False
