"""Find what stalls a machine-learning program, and prove it.

Most people need no more than ``unstall run train.py``. The names here are for loops that nothing can guess, and for
programs that drive unstall themselves. Importing this module imports nothing else: each name is loaded when used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unstall.api import profile, run, span, steps
    from unstall.records.report import Report

__version__ = "0.1.0"
__all__ = ["Report", "profile", "run", "span", "steps"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'unstall' has no attribute {name!r}")
    value: Any
    if name == "Report":
        from unstall.notebook import show_reports
        from unstall.records.report import Report

        show_reports()
        value = Report
    else:
        from unstall import api

        value = getattr(api, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
