"""``unstall prove``: is a change faster, and the same? Any change, from anybody."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from unstall.cli import options
from unstall.cli.exits import Exit, needs_extra
from unstall.cli.outputs import Outputs, deliver, need_folders, write
from unstall.cli.signals import interrupt_on_sigterm
from unstall.report.progress import Progress
from unstall.runs.workplace import SandboxChoice

EXIT_CODES = {
    "proven": Exit.OK,
    "different": Exit.DIFFERENT,
    "not-faster": Exit.NOT_FASTER,
    "inconclusive": Exit.INCONCLUSIVE,
    "refused": Exit.REFUSED_CHANGE,
}
"""The exit code by the verdict, whether or not the files could be written."""


@options.program_command("prove", short_help="Judge a change: is it faster, and the same?")
@options.file("--patch", help="The change: a diff of any files, as `git apply` takes it.")
@click.option(
    "--against", metavar="REV|A..B|FOLDER", help="Judge the working tree against a revision or folder, or B against A."
)
@click.option(
    "--allow",
    type=click.Choice(["reduced", "training-changing"]),
    multiple=True,
    help="Accept different results: reduced precision, or altered training. Repeatable.",
)
@options.budget("15m")
@options.outputs()
@options.file("--card", help="Write the verdict as a card (SVG) for a pull request.")
@options.sandbox
def verb(
    words: Sequence[str],
    patch: Path | None,
    against: str | None,
    allow: Sequence[str],
    budget: float,
    outputs: Outputs,
    card: Path | None,
    sandbox: SandboxChoice,
) -> int:
    """Judge a change by running both programs: proven, different, not-faster, inconclusive or refused.

    Exits with 0 if it is proven faster with the same results, with 10 to 13 for the other verdicts.
    """
    need_folders(card)
    with needs_extra("optimize"):
        from unstall.report import prove_card, prove_view
        from unstall.runs import prove

    interrupt_on_sigterm()
    request = prove.ProveRequest(words, patch, against, sandbox)
    with Progress() as progress:
        report = prove.prove(request, prove.ProofOptions(budget, frozenset(allow)), progress)
    assert report.proof is not None
    if card is not None:
        write(card, prove_card.render(report.proof, report.run.command).encode())
    deliver(prove_view, report, outputs)
    return EXIT_CODES[report.proof.verdict]
