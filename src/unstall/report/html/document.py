"""The page put together: sections, style, scripts and data in one file under a strict policy.

The Content-Security-Policy lets nothing run but the scripts whose hash it names, and nothing load from anywhere. So
even a string that slipped through the escaping could not do a thing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from unstall.records.report import Report
from unstall.records.vocabulary import PHASE_NAMES, can_name_a_phase, in_order
from unstall.report import wording
from unstall.report.html import charts, device, experiments, flame, tables, verdict
from unstall.report.html.markup import json_block, render
from unstall.report.templating import Markup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unstall.records.archive import Archive, Excerpt
    from unstall.records.what_if import Sliders

_SCRIPTS = ("core.js", "plots.js", "steps.js", "machine.js", "flame.js", "whatif.js", "start.js")
_VENDORED = ("uPlot.iife.min.js", "d3-flamegraph.min.js")
_LICENCES = ("uPlot.LICENSE", "d3-flame-graph.LICENSE", "d3.LICENSE", "d3-ease.LICENSE")
_COLOURS_FOR_PLUGINS = 4
"""Colours of plug-ins' phases, ``--e-0`` and so on in the themes."""
_RULE = re.compile(r"((?:^|[{}])\s*)([^{}@\s][^{}@]*)\{")
_PLACED = re.compile(r'(?<=[" ])([wx])-(\d{1,4})(?=[" ])')


def page(archive: Archive, what_if: Sliders | None = None) -> str:
    """The whole report of a run as an HTML document.

    Args:
        archive: the run; of one that is only a report, what its figures give is shown.
        what_if: predictions for the sliders; without them there are none.
    """
    report = archive.report
    data: dict[str, Any] = {
        "steps": charts.steps(archive),
        "distribution": charts.distribution(archive),
        "device": device.steps(report),
        "machine": charts.resources(archive),
        "flame": flame.graphs(archive),
        "whatIf": charts.what_if(what_if) if what_if else None,
    }
    data = {name: value for name, value in data.items() if value}
    body = render(
        "body.html",
        command=" ".join(report.run.command)[:200],
        started=report.run.started[:16].replace("T", " "),
        sections=_sections(archive, data),
        data=json_block(data),
        licences=_licences(),
    )
    script = _script(charts=bool(data))
    recorded = archive.steps.phases_f4 if archive.steps is not None else ()
    style = _style(body, "html", _phases(report, recorded), vendored=bool(data))
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    subject = wording.subject(report.verdict)
    document = render(
        "page.html", policy=policy, subject=subject, style=Markup(style), body=body, script=Markup(script)
    )
    return f"{document}\n"


def inline(report: Report, excerpts: Sequence[Excerpt] = ()) -> str:
    """The report in short for a notebook's output: verdict, culprit and tables, without any script.

    ``excerpts``: of the source around what the report blames.
    """
    sections = (
        verdict.hero(report),
        verdict.culprit(report, excerpts),
        tables.step(report),
        device.section(report, None),
        verdict.reasons(report),
        experiments.ceilings(report),
        experiments.experiments(report),
        tables.remedies(report),
    )
    folded = (verdict.findings(report), tables.details(report), tables.run(report))
    body = render("inline.html", sections=sections, folded=folded)
    body = Markup(re.sub(r' id="[a-z]+"', "", body))  # a notebook may show several reports
    style = _style(body, ".unstall", _phases(report), vendored=False)
    return f'<div class="unstall inline"><style>{style}</style>{body}</div>'


def _sections(archive: Archive, data: dict[str, Any]) -> list[tuple[str, str, Markup]]:
    """Id, name in the contents, and the section itself; those with nothing to say are left out."""
    report = archive.report
    every = (
        ("verdict", "Verdict", verdict.hero(report)),
        ("culprit", "Culprit", verdict.culprit(report, archive.excerpts)),
        ("why", "Why, what next", verdict.reasons(report)),
        ("step", "The step", tables.step(report)),
        ("device", "The device", device.section(report, data.get("device"))),
        ("time", "Over time", _chart("steps", data)),
        ("distribution", "Distribution", _chart("distribution", data)),
        ("ceilings", "Ceilings", experiments.ceilings(report)),
        ("whatif", "What if", _chart("whatIf", data)),
        ("experiments", "Experiments", experiments.experiments(report)),
        ("remedies", "Remedies", tables.remedies(report)),
        ("stacks", "Stacks", _chart("flame", data)),
        ("machine", "Machine", _chart("machine", data)),
        ("findings", "Also found", verdict.findings(report)),
        ("details", "In detail", tables.details(report)),
        ("run", "Run", tables.run(report)),
    )
    return [(name, title, section) for name, title, section in every if section is not None]


def _chart(name: str, data: dict[str, Any]) -> Markup | None:
    """The place of a chart and its figures in words, for where scripts are off; None without data."""
    return render(f"{name}.html", data=data[name]) if name in data else None


def _phases(report: Report, recorded: Iterable[str] = ()) -> list[str]:
    """The phases that need a colour; one with a name that is no class, in a report of a stranger's, gets none."""
    named = [phase.name for phase in report.phases] + [*recorded]
    return in_order([*PHASE_NAMES, *filter(can_name_a_phase, named)])


def _style(body: str, root: str, phases: list[str], *, vendored: bool) -> str:
    """The style sheet, with a rule for each width and place that the body uses.

    Rules, as the policy allows no ``style`` attributes.
    """
    filled = "".join(f".p-{name}{{background:var(--p-{name})}}" for name in phases)
    placed = {match.groups() for match in _PLACED.finditer(body)}
    rules = "".join(
        f".{kind}-{permille}{{{'width' if kind == 'w' else 'left'}:{int(permille) / 10:g}%}}"
        for kind, permille in sorted(placed)
    )
    sheet = _theme(root, phases[len(PHASE_NAMES) :]) + _scoped(_asset("templates/page.css") + filled + rules)
    return (_asset("vendor/uPlot.min.css") if vendored else "") + sheet


def _scoped(sheet: str) -> str:
    """Every rule for what is inside the report alone: a notebook's page has rules and classes of its own."""

    def prefixed(rule: re.Match[str]) -> str:
        selectors = (
            selector if selector.startswith(".unstall") else f".unstall {selector}" for selector in rule[2].split(",")
        )
        return f"{rule[1]}{','.join(selectors)}{{"

    return _RULE.sub(prefixed, sheet)


def _theme(root: str, added: list[str]) -> str:
    """Light or dark as the reader's system has it, unless the page's button or the notebook says which.

    ``added``: phases of plug-ins, which take turns with the colours for those.
    """
    plugin_colours = "".join(f"--p-{name}:var(--e-{index % _COLOURS_FOR_PLUGINS});" for index, name in enumerate(added))
    light, dark = _asset("templates/light.css") + plugin_colours, _asset("templates/dark.css") + plugin_colours
    return (
        f"{root}{{{light}}}@media (prefers-color-scheme:dark){{{root}{{{dark}}}}}"
        f"{root}[data-theme=light],body[data-jp-theme-light=true] {root}{{{light}}}"
        f"{root}[data-theme=dark],body[data-jp-theme-light=false] {root}{{{dark}}}"
    )


@cache
def _script(*, charts: bool) -> str:
    """Ours, in one scope of its own, after what it builds on."""
    scripts = "\n".join(_asset(f"templates/{name}") for name in (_SCRIPTS if charts else _SCRIPTS[:1]))
    vendored = "\n".join(_asset(f"vendor/{name}") for name in _VENDORED) if charts else ""
    return f'{vendored}\n(function () {{\n"use strict";\n{scripts}\n}})();'


@cache
def _licences() -> Markup:
    """Of the libraries in the page, as they ask for."""
    texts = [f"{name}\n\n{_asset(f'vendor/{name}')}" for name in _LICENCES]
    return Markup("\n\n".join(texts).replace("<", "&lt;"))


@cache
def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
