"""``unstall doctor``: what can be measured here, and this machine's own ceilings."""

from __future__ import annotations

import contextlib
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from unstall.benchmark import machine
from unstall.benchmark.capabilities import Check, checks
from unstall.benchmark.machine import Ceilings
from unstall.text import units

_WIDTH = 100


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Spend less time on the ceilings; they may be low.")] = False,
) -> None:
    """Tell what can be measured here, and measure this machine's own ceilings."""
    progress = Console(stderr=True)
    with progress.status("Trying out what can be measured ..."):
        found = checks()
    with progress.status("Measuring this machine's ceilings ..."):
        ceilings = machine.measure(quick=quick)
    with contextlib.suppress(OSError):  # without a cache they are measured again
        machine.save(ceilings)
    if as_json:
        answer = {"checks": found, "ceilings": ceilings}
        typer.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())
        return
    console = Console(highlight=False)
    width = min(console.width, _WIDTH)
    console.print("What can be measured here", style="bold")
    console.print(_checks_table(found), width=width)
    console.print()
    console.print(_ceilings_title(ceilings), style="bold", width=width)
    console.print(_ceilings_table(ceilings), width=width)


def _checks_table(found: list[Check]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for check in found:
        table.add_row(check.name, _answer(check), _explanation(check))
    return table


def _answer(check: Check) -> Text:
    if check.works:
        return Text("yes", style="green")
    return Text("no", style="dim" if check.optional else "bold red")


def _explanation(check: Check) -> Text:
    explanation = Text(check.detail)
    if check.advice:
        explanation.append(f"; {check.advice}", style="dim")
    return explanation


def _ceilings_title(ceilings: Ceilings) -> Text:
    cores = units.number(ceilings.cores)
    return Text(f"This machine's ceilings ({ceilings.cpu}, {cores} cores)")


def _ceilings_table(ceilings: Ceilings) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right", no_wrap=True)
    for name, figure in _figures(ceilings):
        table.add_row(Text(name), figure)
    return table


def _figures(ceilings: Ceilings) -> list[tuple[str, str]]:
    """Names and figures of what was measured, the processor first."""
    figures = [
        (
            f"matrix product, float32, by {ceilings.matmul_by}",
            units.flops(ceilings.matmul_flops_f32),
        ),
        ("memory copy", _per_second(ceilings.memory_copy_bytes_per_s)),
    ]
    if ceilings.disk_read_bytes_per_s is not None:
        figures.append(("disk read, sequential", _per_second(ceilings.disk_read_bytes_per_s)))
    for gpu in ceilings.gpus:
        for dtype, flops in gpu.matmul_flops.items():
            listed = machine.listed_peak(gpu.name, dtype)
            share = f", {units.percent(flops / listed)} of the listed peak" if listed else ""
            figures.append((f"{gpu.name}: matrix product, {dtype}{share}", units.flops(flops)))
        figures += [
            (f"{gpu.name}: {name}", _per_second(rate))
            for name, rate in (
                ("memory copy", gpu.memory_copy_bytes_per_s),
                ("copy host to device, pinned", gpu.host_to_device_pinned_bytes_per_s),
                ("copy host to device, pageable", gpu.host_to_device_pageable_bytes_per_s),
                ("copy device to host, pinned", gpu.device_to_host_pinned_bytes_per_s),
                ("copy device to host, pageable", gpu.device_to_host_pageable_bytes_per_s),
            )
        ]
    return figures


def _per_second(rate: float) -> str:
    return f"{units.bytes_(rate)}/s"
