"""The report as one HTML file that needs nothing else: no network, no server; and the short form for a notebook.

:func:`page` is what ``unstall report --html`` writes, :func:`inline` what a notebook shows.
"""

from __future__ import annotations

from unstall.report.html.document import inline, page

__all__ = ["inline", "page"]
