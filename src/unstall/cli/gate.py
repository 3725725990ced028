"""``unstall gate``: is the candidate slower than the baseline? For continuous integration."""

from __future__ import annotations

from collections.abc import Sequence

import click

from unstall.cli import options
from unstall.cli.exits import Exit
from unstall.cli.outputs import Outputs, deliver, write
from unstall.cli.parsers import SHARE
from unstall.cli.signals import interrupt_on_sigterm
from unstall.report.progress import Progress
from unstall.runs.errors import Refused
from unstall.runs.workplace import SandboxChoice

EXIT_CODES = {"pass": Exit.OK, "regression": Exit.FAILED, "cannot tell": Exit.REFUSED}
"""The exit code by the gate's decision, whether or not the files could be written."""


@options.program_command("gate", short_help="Fail on a proven regression, for continuous integration.")
@click.option(
    "--baseline", required=True, metavar="REVISION|RUN", help="A git revision (main, v1.2), or a recorded run."
)
@click.option("--max-regression", type=SHARE, default="5%", help="Largest step-time regression to tolerate.")
@click.option(
    "--steps", type=click.IntRange(5), metavar="N", help="Measured steps per run (default: chosen from the noise)."
)
@click.option("--pairs", type=click.IntRange(3, 1000), default=128, metavar="N", help="At most N pairs of runs.")
@options.budget("20m")
@options.outputs()
@options.sandbox
def verb(
    words: Sequence[str],
    baseline: str,
    max_regression: float,
    steps: int | None,
    pairs: int,
    budget: float,
    outputs: Outputs,
    sandbox: SandboxChoice,
) -> int:
    """Run baseline and candidate in turns, and fail on a proven regression.

    Exits with 1 on a regression, 0 if there is none, 2 when it cannot tell.
    """
    from unstall.report import gate_view
    from unstall.runs import gate

    request = gate.GateRequest(
        words=words,
        baseline=baseline,
        plan=gate.SequentialPlan(allowance=max_regression, most=pairs),
        steps=steps,
        budget_s=budget,
        sandbox=sandbox,
    )
    interrupt_on_sigterm()
    try:
        with Progress() as progress:
            result = gate.hold(request, progress, gate_view.pair_line)
    except Refused as error:
        if outputs.markdown is not None:  # a pull request without an answer is told why
            write(outputs.markdown, gate_view.failure_markdown(str(error)).encode())
        raise
    deliver(gate_view, result, outputs)
    return EXIT_CODES[result.decision]
