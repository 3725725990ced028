"""Any report, as the verb that made it shows it."""

from __future__ import annotations

from unstall.records.report import Report
from unstall.report import optimize_view, prove_view, run_markdown, run_view, simplify_view, trace_view
from unstall.report.layout import Page


def page(report: Report, width: int = 100) -> Page:
    """The report for a terminal of ``width`` cells."""
    if report.kind == "optimize":
        return optimize_view.page(optimize_view.OptimizeResult(report), width)
    if report.proof is not None:
        return prove_view.page(report, width)
    if report.kind == "simplify":
        return simplify_view.page(report, width)
    if report.kind == "trace" and report.trace is not None:
        return trace_view.page(report, width)
    return run_view.page(report, width)


def markdown(report: Report) -> str:
    """The report for a pull request."""
    return prove_view.markdown(report) if report.proof is not None else run_markdown.render(report)
