"""What can be measured on a machine, and its ceilings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from unstall.records.machine import Capability, MachineRate
from unstall.report.layout import Page
from unstall.report.markdown import MarkdownPage
from unstall.text import units

_WIDEST = 100


@dataclass(frozen=True)
class DoctorAnswer:
    """What ``unstall doctor`` found."""

    capabilities: Sequence[Capability]
    machine: str
    """Processor and cores, in words."""
    rates: Sequence[MachineRate]


def page(answer: DoctorAnswer, width: int = 100) -> Page:
    """Both tables for a terminal of ``width`` cells."""
    return _fill(Page.fitting(width, widest=_WIDEST), answer)


def markdown(answer: DoctorAnswer) -> str:
    """Both tables for an issue."""
    return _fill(MarkdownPage(), answer).as_text()


def _fill(page: Page, answer: DoctorAnswer) -> Page:
    page.paragraph("What can be measured here", "bold")
    page.listing(
        [(capability.name, _works(capability), _explanation(capability)) for capability in answer.capabilities], "lll"
    )
    page.blank()
    page.paragraph(f"This machine's ceilings ({answer.machine})", "bold")
    page.listing([(_name(rate), _figure(rate)) for rate in answer.rates], "lr")
    return page


def _works(capability: Capability) -> Text:
    if capability.works:
        return Text("yes", "green")
    return Text("no", "dim" if capability.optional else "bold red")


def _explanation(capability: Capability) -> Text:
    return Text.assemble(capability.detail, (f"; {capability.advice}" if capability.advice else "", "dim"))


def _name(rate: MachineRate) -> str:
    share = f", {units.percent(rate.listed_share)} of the listed peak" if rate.listed_share else ""
    return rate.name + share


def _figure(rate: MachineRate) -> str:
    return units.flops(rate.per_s) if rate.in_flop else f"{units.bytes_(rate.per_s)}/s"
