"""How unstall's helpers are started beside a program."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

APART: Mapping[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}
"""For ``subprocess.Popen``: a Ctrl-C in the terminal is not for it.

No session of its own: Linux shares busy cores among sessions first (autogroups), and a helper that was one to itself
was seen to get no time at all, on a core with two others, for as long as these ran.
"""
