"""Whose a source file is, by its name alone: the user's, a library's that may be blamed, or what both are built on.

*User* files are those of a project: scripts, checkouts, editable installs. *Library* files are of an installed package.
*Substrate* is the standard library, unstall, and the packages of :mod:`unstall.child.substrate`. The program's own
code, user and library files alike, is what a diagnosis looks at: it is the same wherever a program's modules lie.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

from unstall.child import substrate

_PACKAGES = re.compile(r".*[/\\](?:site|dist)-packages[/\\](?:[^/\\]+\.egg[/\\])?", re.DOTALL)
_STANDARD_LIBRARY = re.compile(r"[/\\]lib(?:64)?[/\\]python3\.\d+t?[/\\]|[/\\]python3\d+\.zip[/\\]")
GENERATED = re.compile(r"[/\\]torchinductor_[^/\\]+[/\\]|[/\\]([a-z2-7]{2})[/\\]c\1[a-z2-7]{40,}\.py$")
"""Nobody's to mend: what torch.compile writes, in its usual cache or in another, where files have a hash for a name."""
_OWN_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + os.sep


@lru_cache(maxsize=4096)
def is_user_file(file: str) -> bool:
    """Whether a file is the user's: not of the standard library, an installed package, or unstall.

    Code without a file (``exec``, ``python -c``) counts as nobody's, but for the cells of IPython.
    """
    if file.startswith("<ipython-input-"):
        return True
    if not file or file.startswith(("<", _OWN_PACKAGE)):
        return False
    return not (_PACKAGES.match(file) or _STANDARD_LIBRARY.search(file))


@lru_cache(maxsize=4096)
def is_program_file(file: str) -> bool:
    """Whether a file is the program's: the user's, or of an installed package that may be blamed."""
    if file.startswith(_OWN_PACKAGE) or GENERATED.search(file):
        return False
    within = within_packages(file)
    return not substrate.is_substrate(within[1]) if within else is_user_file(file)


@lru_cache(maxsize=4096)
def runs_loops(file: str) -> bool:
    """Whether a file is of an installed framework that runs loops over what others wrote."""
    within = within_packages(file)
    return within is not None and substrate.runs_loops(within[1])


def within_packages(file: str) -> tuple[str, str] | None:
    """The folder of packages that a file is installed in, and its path there; None where it is not installed."""
    packages = _PACKAGES.match(file)
    return (packages[0], file[packages.end() :]) if packages else None


def package_of(file: str) -> str:
    """Import name of the top-level package that an installed file is of; empty where it is not installed."""
    within = within_packages(file)
    return re.split(r"[/\\.]", within[1], maxsplit=1)[0] if within else ""
