"""Which distribution an installed file is of, by the metadata beside it."""

import pytest

from unstall.diagnose.installed import Installed, distribution_of


@pytest.fixture
def packages(tmp_path):
    folder = tmp_path / "lib" / "python3.9" / "site-packages"
    folder.mkdir(parents=True)
    return folder


def add(packages, name, version, *, record=None, top_level=None):
    info = packages / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if record is not None:
        (info / "RECORD").write_text("".join(f"{path},sha256=x,10\n" for path in record))
    if top_level is not None:
        (info / "top_level.txt").write_text(f"{top_level}\n")


def test_the_record_says_whose_a_file_is(packages):
    add(packages, "tools", "3.0", record=["tools/__init__.py"])
    add(packages, "Deep-Trainings", "1.2.1", record=["trainings/__init__.py", "trainings/loop.py"])
    assert distribution_of(str(packages / "trainings" / "loop.py")) == Installed("Deep-Trainings", "1.2.1")


def test_two_distributions_may_share_a_package(packages):
    add(packages, "trainings", "1.0", record=["trainings/loop.py"])
    add(packages, "trainings-vision", "2.0", record=["trainings/vision.py"])
    assert distribution_of(str(packages / "trainings" / "vision.py")) == Installed("trainings-vision", "2.0")


def test_without_a_record_the_top_level_says_it(packages):
    add(packages, "deep-trainings", "1.2.1", top_level="trainings")
    assert distribution_of(str(packages / "trainings" / "loop.py")) == Installed("deep-trainings", "1.2.1")


def test_a_package_without_metadata_goes_by_its_import_name(packages):
    (packages / "cut_off-1.0.dist-info").mkdir()
    assert distribution_of(str(packages / "trainings" / "loop.py")) == Installed("trainings")


def test_a_file_of_the_users_is_of_no_distribution(tmp_path):
    assert distribution_of(str(tmp_path / "train.py")) is None
