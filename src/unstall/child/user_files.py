"""Which source files are the user's own, by their names alone."""

from __future__ import annotations

import os
import re
from functools import lru_cache

_LIBRARY = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python3\.\d+t?[/\\]"
    r"|[/\\]python3\d+\.zip[/\\]"
)
_OWN_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + os.sep


@lru_cache(maxsize=4096)
def is_user_file(file: str) -> bool:
    """Whether a file is the user's: not of the standard library, an installed package, or unstall.

    Code without a file (``exec``, ``python -c``) counts as nobody's, but for the cells of IPython.
    """
    return file.startswith("<ipython-input-") or not (file.startswith(("<", _OWN_PACKAGE)) or _LIBRARY.search(file))
