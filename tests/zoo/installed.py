"""A program of the zoo as most trainings are: a package in site-packages, and a driver of a few lines that calls it."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE, VERSION = "planted", "1.2.1"
_SHARED = ("common", "photo_server")
_GUARD = 'if __name__ == "__main__":'


def install(zoo: Path, script: str, folder: Path) -> Path:
    """Write a driver of the script's name into ``folder``, and the package below it.

    The program's own lines stay on their numbers; what its guard for ``__main__`` holds becomes a function.

    Returns:
        The folder of packages that must be on PYTHONPATH.
    """
    packages = folder / "env" / "site-packages"
    package = packages / PACKAGE
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    sources = [zoo / script, *(Path(__file__).with_name(f"{name}.py") for name in _SHARED)]
    for source in sources:
        (package / source.name).write_text(_inside_package(source), encoding="utf-8")
    info = packages / f"{PACKAGE}-{VERSION}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {VERSION}\n")
    (info / "RECORD").write_text("".join(f"{PACKAGE}/{source.name},,\n" for source in sources))
    module = Path(script).stem
    guarded = _GUARD in (zoo / script).read_text(encoding="utf-8")
    call = f"\n{module}.run_training()\n" if guarded else ""
    (folder / script).write_text(f"from {PACKAGE} import {module}\n{call}", encoding="utf-8")
    return packages


def _inside_package(source: Path) -> str:
    text = source.read_text(encoding="utf-8")
    if source.stem not in _SHARED:
        text = text.replace(_GUARD, "def run_training():")
    return re.sub(rf"^from ({'|'.join(_SHARED)}) import", rf"from {PACKAGE}.\1 import", text, flags=re.MULTILINE)
