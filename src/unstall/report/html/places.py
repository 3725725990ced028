"""The places of the charts: headings, controls, and for each chart its figures in words.

The words are what a screen reader gets, and what is left where scripts are off.
"""

from __future__ import annotations

from typing import Any

from unstall.report.html.markup import Markup, el
from unstall.text import units

_KEYS = "Drag to zoom, double-click for all of it; with the keyboard: arrows, + and −, 0."


def steps(data: dict[str, Any] | None) -> Markup | None:
    """Phases of every step over time."""
    if data is None:
        return None
    legend = [
        el(
            "button",
            el("i", class_=f"swatch p-{name}"),
            name,
            type="button",
            aria_pressed="true",
            data_phase=name,
        )
        for name in data["phases"]
    ]
    return el(
        "section",
        el("h2", "Over time"),
        el("p", "Each step of the run, split into its phases. ", _KEYS, class_="quiet"),
        el("div", legend, class_="legend", role="group", aria_label="Phases shown"),
        _chart("steps-chart", "Step time by phase over the steps of the run"),
        el(
            "div",
            _zoom_buttons(),
            el(
                "label",
                el("input", type="checkbox", id="outliers"),
                " slowest steps in full",
                class_="check",
            ),
            class_="controls",
        ),
        el("p", id="steps-note", class_="quiet"),
        id="time",
    )


def distribution(data: dict[str, Any] | None) -> Markup | None:
    """How often which step time occurs."""
    if data is None:
        return None
    told = ", ".join(f"{name} {units.seconds(value)}" for name, value in data["marks"].items())
    beyond = f" The last bar also holds {data['beyond']:,} slower ones." if data["beyond"] else ""
    return el(
        "section",
        el("h2", "Distribution of step times"),
        el(
            "p",
            f"{sum(data['counts']):,} measured steps: {told}, slowest {units.seconds(data['longest'])}.{beyond}",
            class_="quiet",
        ),
        _chart("distribution-chart", f"Histogram of step times: {told}"),
        id="distribution",
    )


def what_if(data: dict[str, Any] | None) -> Markup | None:
    """Sliders over predictions that were made beforehand."""
    if data is None:
        return None
    return el(
        "section",
        el("h2", "What if"),
        el(
            "p",
            "Predicted by a simulation of this run’s own pipeline; the interval holds the true figure nine times in "
            "ten. Try a change before you make it, then measure it.",
            class_="quiet",
        ),
        el("div", [_slider(i, knob) for i, knob in enumerate(data["knobs"])], class_="sliders"),
        el("output", id="whatif-result", class_="result", aria_live="polite"),
        _chart("whatif-chart", "Predicted speed along the slider used last"),
        id="whatif",
    )


def flame(data: list[dict[str, Any]] | None) -> Markup | None:
    """Sampled stacks by process."""
    if not data:
        return None
    tabs = [
        el(
            "button",
            graph["name"],
            el("small", f" {graph['samples']:,}"),
            type="button",
            role="tab",
            id=f"tab-{i}",
            aria_controls="flame-chart",
            aria_selected="true" if i == 0 else "false",
            tabindex="0" if i == 0 else "-1",
        )
        for i, graph in enumerate(data)
    ]
    kinds = [el("span", el("i", class_=f"swatch k-{kind}"), told) for kind, told in _KINDS]
    return el(
        "section",
        el("h2", "Where the samples are"),
        el(
            "p",
            "Stacks as a sampler outside the program saw them; the wider, the more often. Click a frame to make it "
            "the whole width; with the keyboard: arrows and Enter.",
            class_="quiet",
        ),
        el("div", tabs, class_="tabs", role="tablist", aria_label="Processes"),
        el(
            "div",
            el("input", type="search", id="flame-search", placeholder="find a function", aria_label="find a function"),
            el("button", "All", type="button", id="flame-reset"),
            el("span", kinds, class_="legend small"),
            class_="controls",
        ),
        el("div", id="flame-chart", class_="flame", role="tabpanel", aria_labelledby="tab-0"),
        el("p", id="flame-details", class_="readout", aria_live="polite"),
        id="stacks",
    )


def resources(data: dict[str, Any] | None) -> Markup | None:
    """Cores, memory, disk and devices over the run."""
    if data is None:
        return None
    panels = [
        el("div", el("h3", panel["title"]), _legend(panel), _chart(f"machine-{i}", f"{panel['title']} over the run"))
        for i, panel in enumerate(data["panels"])
    ]
    note = (
        f"Each point is {units.seconds(data['bucket_s'])} of the run; memory and devices show the most in it. {_KEYS}"
    )
    return el(
        "section",
        el("h2", "The machine meanwhile"),
        el("p", note, class_="quiet"),
        el("div", panels, class_="panels"),
        id="machine",
    )


def _legend(panel: dict[str, Any]) -> Markup | None:
    """What is which colour, where there is more than one."""
    if len(panel["series"]) < 2:
        return None
    entries = [el("span", el("i", class_=f"swatch {one['colour']}"), one["name"]) for one in panel["series"]]
    return el("div", entries, class_="legend small")


_KINDS = (("own", "your code"), ("torch", "torch"), ("library", "other libraries"))


def _chart(name: str, label: str) -> Markup:
    return el("div", id=name, class_="chart", role="group", aria_label=label, tabindex="0")


def _zoom_buttons() -> list[Markup]:
    return [
        el("button", sign, type="button", data_zoom=what, aria_label=label)
        for what, sign, label in (("in", "+", "zoom in"), ("out", "−", "zoom out"), ("all", "All", "show all steps"))
    ]


def _slider(index: int, knob: dict[str, Any]) -> Markup:
    name = f"knob-{index}"
    return el(
        "div",
        el("label", knob["label"], for_=name),
        el("output", for_=name, class_="value"),
        el(
            "input",
            type="range",
            id=name,
            min="0",
            max=str(len(knob["values"]) - 1),
            step="1",
            value=str(knob["now"]),
        ),
    )
