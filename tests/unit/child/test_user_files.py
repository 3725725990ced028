"""Which files are the user's own."""

from pathlib import Path

import pytest

import unstall
from unstall.child.substrate import GROUPS
from unstall.child.user_files import is_program_file, is_user_file, package_of


@pytest.mark.parametrize(
    ("file", "user"),
    [
        ("/home/me/train.py", True),
        ("/home/me/lib/data.py", True),
        ("/home/me/python3.11-notes/data.py", True),
        ("<ipython-input-1-abc>", True),
        ("<string>", False),
        ("", False),
        ("<frozen importlib._bootstrap>", False),
        ("/usr/lib/python3.11/threading.py", False),
        ("/opt/py/lib/python3.13t/json/decoder.py", False),
        ("/home/me/.venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", False),
        ("/usr/lib/python3/dist-packages/numpy/core.py", False),
        (str(Path(unstall.__file__).parent / "benchmark" / "recorder.py"), False),
    ],
)
def test_whose_file_it_is(file: str, user: bool):
    assert is_user_file(file) is user


PACKAGES = "/home/me/.venv/lib/python3.11/site-packages/"


@pytest.mark.parametrize(
    ("path", "blamed"),
    [
        ("trainings/loop.py", True),
        ("trainings.py", True),
        ("torch/nn/modules/linear.py", False),
        ("torchgeo/datasets/geo.py", True),
        ("numpy/_core/numeric.py", False),
        ("lightning/pytorch/loops/fit_loop.py", False),
        ("transformers/trainer_pt_utils.py", False),
        ("transformers/data/data_collator.py", True),
        ("typing_extensions.py", False),
        ("sixpack/loop.py", True),
        ("_pytest/runner.py", False),
        ("trainings-1.0-py3.11.egg/trainings/loop.py", True),
    ],
)
def test_installed_packages_may_be_blamed_unless_trainings_are_built_on_them(path: str, blamed: bool):
    assert is_program_file(PACKAGES + path) is blamed
    assert is_program_file((PACKAGES + path).replace("/", "\\")) is blamed
    assert not is_user_file(PACKAGES + path)


@pytest.mark.parametrize(
    ("file", "blamed"),
    [
        ("/tmp/torchinductor_me/m5/cm5rzaajui6tgjxn67ywnugmkiaxuvthrhdy2hpk5szpv2cxux4k.py", False),
        ("/home/me/cache/m5/cm5rzaajui6tgjxn67ywnugmkiaxuvthrhdy2hpk5szpv2cxux4k.py", False),
        ("/home/me/cache/aa/cm5rzaajui6tgjxn67ywnugmkiaxuvthrhdy2hpk5szpv2cxux4k.py", True),
        ("/home/me/m5/compose.py", True),
    ],
)
def test_what_torch_compile_generated_is_not_blamed(file: str, blamed: bool):
    assert is_program_file(file) is blamed
    assert is_user_file(file)  # what judges a change follows it


@pytest.mark.parametrize("file", ["/home/me/train.py", "/home/me/lib/data.py", "<ipython-input-1-abc>"])
def test_what_is_the_users_may_be_blamed(file: str):
    assert is_program_file(file)


@pytest.mark.parametrize("file", ["<string>", "/usr/lib/python3.11/threading.py", unstall.__file__])
def test_neither_the_standard_library_nor_unstall_is_blamed(file: str):
    assert not is_program_file(file)


def test_a_package_is_known_by_its_import_name():
    assert package_of(PACKAGES + "trainings/loop.py") == package_of(PACKAGES + "trainings.py") == "trainings"
    assert package_of(PACKAGES + "trainings-1.0-py3.11.egg/trainings/loop.py") == "trainings"
    assert package_of("/home/me/train.py") == ""


def test_no_package_is_listed_twice():
    names = [name for group in GROUPS for name in group.packages.split()]
    assert len(set(names)) == len(names)
