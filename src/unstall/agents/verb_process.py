"""The process of one command that the server runs: ``verb_process.py VERB ...`` is ``unstall VERB ...``.

It ends when the server does, however that ends. Run as a script of its own.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys

_PR_SET_PDEATHSIG = 1
_HERE = os.path.dirname(os.path.abspath(__file__))
_COMMAND = os.path.join(os.path.dirname(os.path.dirname(_HERE)), "_unstall.py")

if __name__ == "__main__":
    sys.path[:] = [entry for entry in sys.path if entry != _HERE]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    runpy.run_path(_COMMAND)["main"]()
