"""Runs and GPU traces in the formats of other tools: one file a format, found by the registry of plug-ins."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING, Any

from unstall import registry
from unstall.exports.exporter import Exporter, ExportError, Kind, Spans
from unstall.text.sanitize import sanitize_line

if TYPE_CHECKING:
    from unstall.records.archive import Archive
    from unstall.trace.timeline import Timeline

__all__ = ["ExportError", "Exporter", "Kind", "Spans", "export", "exporters"]

_NAMES: dict[Kind, str] = {"report": "a run", "archive": "a run", "timeline": "a GPU trace", "spans": "a run's spans"}


@cache
def exporters() -> dict[str, Exporter]:
    """All exporters by name, those of other packages last."""
    return registry.load("unstall.exporters", __name__, Exporter)  # type: ignore[type-abstract]


def exporters_of(kind: Kind) -> dict[str, Exporter]:
    """The exporters that take one kind of thing; those of a report take an archive's as well."""
    kinds = {kind, "report"} if kind == "archive" else {kind}
    return {name: exporter for name, exporter in exporters().items() if kinds & set(exporter.takes)}


def export(
    exporter: Exporter, source: Archive | Timeline | Spans, target: str, flags: Collection[str] = frozenset()
) -> None:
    """Write or send a run, its spans, or a GPU trace.

    Raises:
        ExportError: whatever went wrong, in one line; the libraries behind exporters may raise anything.
    """
    forms = _forms(source)
    kind = next((kind for kind in exporter.takes if kind in forms), None)
    if kind is None:
        takes = " or ".join(dict.fromkeys(_NAMES[kind] for kind in exporter.takes))
        raise ExportError(f"{exporter.name} exports {takes}, not {_NAMES[next(iter(forms))]}")
    try:
        exporter.export(forms[kind], target, frozenset(flags))
    except ExportError:
        raise
    except ImportError as error:
        raise ExportError(_missing(exporter, error)) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise ExportError(sanitize_line(str(error)) or type(error).__name__) from error
    except Exception as error:
        raise ExportError(f"{type(error).__name__}: {sanitize_line(str(error))}") from error


def _forms(source: Archive | Timeline | Spans) -> dict[Kind, Any]:
    """The source, by the kinds that it can be exported as."""
    from unstall.records.archive import Archive

    if isinstance(source, Archive):
        return {"archive": source, "report": source.report}
    return {"spans" if isinstance(source, Spans) else "timeline": source}


def _missing(exporter: Exporter, error: ImportError) -> str:
    library = error.name.partition(".")[0] if error.name else sanitize_line(str(error))
    install = f'; run: pip install "unstall[{exporter.extra}]"' if exporter.extra else ""
    return f"{library} is not installed{install}"
