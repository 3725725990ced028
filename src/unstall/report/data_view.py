"""The data pipeline, stage by stage, on a terminal."""

from __future__ import annotations

from unstall.records.what_if import DataRate, DataReport, DataStage
from unstall.report.layout import Page
from unstall.report.markdown import MarkdownPage
from unstall.text import units
from unstall.text.sanitize import sanitize_line


def page(report: DataReport, width: int = 100) -> Page:
    """The stages and the loader's rates, for a terminal of ``width`` cells."""
    return _fill(Page.fitting(width, narrowest=60), report)


def markdown(report: DataReport) -> str:
    """The stages and the loader's rates for a pull request."""
    return _fill(MarkdownPage(), report).as_text()


def _fill(page: Page, report: DataReport) -> Page:
    page.rule("unstall data")
    page.paragraph(report.conclusion, "bold")
    page.blank()
    page.phrases("Loader", _loader(report))
    page.blank()
    items = str(report.loader.get("items", "samples"))
    header = (f"one of the {items}", f"{items}/s", "each", "on a core", "I/O, wait", "share", "cores")
    page.table("Stages", header, [_stage(stage) for stage in report.stages])
    page.blank()
    page.table("Loader", ("alone, without the model", f"{items}/s", "cores", "start"), [_rate(r) for r in report.rates])
    page.blank()
    page.bullets("Note", [*_stage_notes(report), *report.notes], 2)
    return page


def _loader(report: DataReport) -> list[str]:
    facts = report.loader
    named = {"batch_size": "batch", "workers": "workers", "prefetch": "prefetch", "collate": "collate"}
    phrases = [sanitize_line(str(facts.get("dataset", "")))]
    if facts.get("length") is not None:
        phrases.append(f"{facts['length']} items")
    phrases += [
        f"{label} {sanitize_line(str(facts[key]))}" for key, label in named.items() if facts.get(key) is not None
    ]
    return phrases


def _stage(stage: DataStage) -> tuple[str, ...]:
    mark = "" if stage.known_by != "traced" else " *"
    return (
        "· " * max(0, stage.depth) + stage.name + mark,
        units.rate(1 / stage.seconds).removesuffix("/s") if stage.seconds else "–",
        units.seconds(stage.seconds),
        units.seconds(stage.cpu_s),
        units.seconds(stage.blocked_s),
        units.percent(stage.share),
        "unknown" if stage.cores_needed is None else f"{stage.cores_needed:.2f}",
    )


def _rate(rate: DataRate) -> tuple[str, ...]:
    name = "in the main process" if rate.workers == 0 else f"{rate.workers} worker{'s' if rate.workers > 1 else ''}"
    if rate.error:
        return name, "–", "–", "–"
    return (
        name,
        units.rate(rate.items_per_s or 0.0).removesuffix("/s"),
        f"{rate.cores or 0.0:.2f}",
        units.seconds(rate.start_s or 0.0),
    )


def _stage_notes(report: DataReport) -> list[str]:
    notes = [f"{stage.name}: {stage.note}" for stage in report.stages if stage.note]
    errors: dict[str, list[int]] = {}
    for rate in report.rates:
        if rate.error:
            errors.setdefault(rate.error, []).append(rate.workers)
    notes += [f"with {', '.join(map(str, counts))} workers: {error}" for error, counts in errors.items()]
    if any(stage.known_by == "traced" for stage in report.stages):
        notes.insert(0, "stages with a * could not be called on their own, so they were timed in place")
    return notes
