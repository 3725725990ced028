"""How a notebook shows a report: the record knows no view, so whoever hands a report to the user's code names one."""

from __future__ import annotations

from unstall.records.report import Report, register_html


def show_reports() -> None:
    """Let a notebook show each report that a cell returns: verdict, culprit and tables."""
    register_html(_render)


def _render(report: Report) -> str:
    from unstall.diagnose import source_excerpt
    from unstall.report import html

    return html.inline(report, source_excerpt.of_report(report))
