"""A project folder that is shared by a group: what cannot be changed in an experiment is said before it starts."""

import os

import pytest
from sandbox_driver import NOBODY, SandboxDriver

_PROJECT = 54321
_WRITES = """
import sys
try:
    open("model.pt", "a").write("more")
except OSError as error:
    print("model.pt:", error.strerror)
else:
    print("model.pt: changed")
"""


@pytest.fixture
def driver():
    made = SandboxDriver(ordinary=True, group=_PROJECT)
    (made.work / "model.pt").write_text("weights")
    yield made
    made.close()


def _share(driver):
    """As in a setgid folder: what is made there is of the project's group."""
    for path in (driver.work, driver.work / "model.pt"):
        os.chown(path, NOBODY, _PROJECT)
    driver.work.chmod(0o2775)


def test_files_of_another_group_are_told_before_the_start(driver):
    _share(driver)
    facts = driver.run([driver.python, "-c", _WRITES])
    assert "model.pt: Value too large for defined data type" in facts["output"]
    (told,) = facts["told"]
    assert f"is of the group {_PROJECT}: " in told and f"sg {_PROJECT} -c 'unstall ...'" in told and "EOVERFLOW" in told
    assert facts["output"].index("is of the group") < facts["output"].index("model.pt: Value")
    assert (driver.work / "model.pt").read_text() == "weights"


def test_what_the_line_advises_helps(driver):
    _share(driver)
    driver.drop[driver.drop.index("--regid") + 1] = str(_PROJECT)  # as `sg` does
    facts = driver.run([driver.python, "-c", _WRITES])
    assert facts["told"] == [] and "model.pt: changed" in facts["output"]
    assert (driver.work / "model.pt").read_text() == "weights"


def test_ones_own_group_is_no_matter(driver):
    os.chown(driver.work / "model.pt", NOBODY, NOBODY)
    facts = driver.run([driver.python, "-c", _WRITES])
    assert facts["told"] == [] and "model.pt: changed" in facts["output"]
