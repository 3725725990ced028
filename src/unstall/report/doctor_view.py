"""What can be measured on a machine, and its ceilings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.text import Text

from unstall.report.layout import Page
from unstall.report.markdown import MarkdownPage
from unstall.text import units

_WIDEST = 100


class Capability(Protocol):
    """One means of measuring, and whether it works here."""

    @property
    def name(self) -> str: ...
    @property
    def works(self) -> bool: ...
    @property
    def detail(self) -> str: ...
    @property
    def advice(self) -> str:
        """What to do where it does not work."""

    @property
    def optional(self) -> bool:
        """Wanted only on request."""


class Rate(Protocol):
    """A ceiling."""

    @property
    def name(self) -> str: ...
    @property
    def per_s(self) -> float:
        """FLOP or bytes a second."""

    @property
    def in_flop(self) -> bool: ...
    @property
    def listed_share(self) -> float | None:
        """Of the peak that the vendor lists, where it is known."""


@dataclass(frozen=True)
class DoctorAnswer:
    """What ``unstall doctor`` found."""

    capabilities: Sequence[Capability]
    machine: str
    """Processor and cores, in words."""
    rates: Sequence[Rate]


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


def _name(rate: Rate) -> str:
    share = f", {units.percent(rate.listed_share)} of the listed peak" if rate.listed_share else ""
    return rate.name + share


def _figure(rate: Rate) -> str:
    return units.flops(rate.per_s) if rate.in_flop else f"{units.bytes_(rate.per_s)}/s"
