"""``unstall doctor``: what can be measured here, and this machine's own ceilings."""

from __future__ import annotations

import click

from unstall.cli import options
from unstall.cli.exits import warn
from unstall.cli.outputs import Outputs, deliver
from unstall.report.progress import Progress
from unstall.text import units


@options.command("doctor", short_help="Check what can be measured here.")
@click.option("--quick", is_flag=True, help="Spend less time on the ceilings; they may come out low.")
@options.outputs()
def verb(quick: bool, outputs: Outputs) -> int:
    """Check what can be measured here, and measure this machine's own ceilings."""
    from unstall.report import doctor_view
    from unstall.runs import doctor

    with Progress() as progress:
        examined = doctor.examine(quick=quick, progress=progress)
    ceilings = examined.ceilings
    machine = f"{ceilings.cpu}, {units.number(ceilings.cores)} cores"
    answer = doctor_view.DoctorAnswer(examined.checks, machine, list(doctor.rates(ceilings)))
    if examined.is_disturbed:
        warn(
            f"other programs took {examined.other_cores:.1f} cores meanwhile: "
            "the ceilings may be low, and are not kept for later runs"
        )
    return deliver(doctor_view, answer, outputs, record=examined._asdict())
