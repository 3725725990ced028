"""Programs of the zoo, as scripts and installed as a package that a driver calls: the same verdict, and the planted one.

The whole zoo goes through both layouts in `make accuracy`; these are those of which most depends on whose a frame is.
"""

import sys
from pathlib import Path

import pytest

ZOO = Path(__file__).parents[1] / "zoo"
sys.path.insert(0, str(ZOO))

from installed import PACKAGE, VERSION, install  # noqa: E402
from truth import CASES  # noqa: E402

TELLING = ("image_transform_main",)
FURTHER = ("python_loss", "collate_pad", "log_each_step", "grid_env", "rnn_loop")
PLANTED = {case.name: case for case in CASES}
OPTIONS = ("--variant", "slow", "--seconds", "6")


def verdict_of(result):
    """The verdict; skips the test where other programs left no room for a sure one."""
    report = result.report
    if report["verdict"]["confidence"] == "low":
        pytest.skip(f"no sure verdict here and now: {'; '.join(report['run']['notes'])}")
    return report["verdict"]


@pytest.mark.slow
@pytest.mark.serial
@pytest.mark.parametrize("name", [*TELLING, *(pytest.param(name, marks=pytest.mark.long) for name in FURTHER)])
def test_a_program_gets_the_same_verdict_as_a_script_and_installed(workspace, name):
    planted = PLANTED[name]
    packages = install(ZOO, planted.script, workspace.folder)
    driver = workspace.folder / planted.script
    script = verdict_of(workspace.watched(str(ZOO / planted.script), *OPTIONS))
    installed = verdict_of(workspace.watched(str(driver), *OPTIONS, env={"PYTHONPATH": str(packages)}))
    for verdict in (script, installed):
        assert verdict["pattern"] in (planted.pattern, *planted.also_patterns)
        assert verdict["cause"] in (planted.cause, *planted.also_causes)
        assert verdict["culprit"]["function"] in (planted.culprit, *planted.also_culprits)
    assert "package" not in script["culprit"]
    assert (installed["culprit"]["package"], installed["culprit"]["version"]) == (PACKAGE, VERSION)
    assert installed["culprit"]["called_by"]["file"] == str(driver)
