"""How runs of both sides end under a condition, and when that tells nothing."""

from __future__ import annotations

from unstall.prove.runner import WholeRun


def otherwise(original: WholeRun, changed: WholeRun) -> str:
    """In words; nothing where both end well, or neither does: with an error that is told in every way to start it."""
    if changed.timed_out and not original.effects.status:
        return "it does not end"
    statuses = changed.effects.status, original.effects.status
    if bool(statuses[0]) == bool(statuses[1]):
        asserts = [run.effects.last_line.startswith("AssertionError") for run in (original, changed)]
        return "it ends with an assertion, which Python leaves out with -O," if asserts == [False, True] else ""
    return f"it ends with exit code {statuses[0]}, and the original with {statuses[1]},"


def of_error(run: WholeRun) -> str:
    """That a run ends with an error, in words; nothing where it ends well."""
    return f"it ends with exit code {run.effects.status}" if run.effects.status else ""


def excuse_of_errors(original: WholeRun, changed: WholeRun) -> str:
    """Where an error is an answer, too, as it is told: that the changed program ends with one."""
    return "" if changed.timed_out else of_error(changed)


def no_excuse(original: WholeRun, changed: WholeRun) -> str:
    """Where whatever the changed program does tells something."""
    return ""
