"""A tensor by way of one array is the tensor that torch makes, whatever it is made of."""

from __future__ import annotations

import pytest

from unstall.optimize.remedies.one_array import with_one_array
from unstall.optimize.sources import SourceError, Sources

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

COLLATE = """import numpy as np
import torch


def collate(rows):
    longest = max(map(len, rows))
    padded = [row + [0] * (longest - len(row)) for row in rows]
    return torch.tensor(padded), torch.tensor([1.5], device="cpu")  # the batch
"""


def written(tmp_path, text=COLLATE, lines=(8,)):
    path = tmp_path / "collate.py"
    path.write_text(text)
    sources, changed = with_one_array(Sources(), path, set(lines))
    return sources.bytes_of(path).decode(), changed


def test_only_the_plain_calls_on_the_lines_are_changed(tmp_path):
    text, changed = written(tmp_path)
    assert changed == {8}
    assert 'return _tensor(padded), torch.tensor([1.5], device="cpu")  # the batch' in text
    assert written(tmp_path, lines=(7,)) == (COLLATE, set())
    with pytest.raises(SourceError, match="numpy"):
        written(tmp_path, COLLATE.replace("import numpy as np\n", "\n"))


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3],
        [[1, 2], [3, 4]],
        [[0.1, 0.2], [1e300, -0.0]],
        [1, 2.5],
        [True, False],
        [2**62, -(2**62)],
        [np.ones((2, 3), "float32"), np.zeros((2, 3), "float32")],
        [np.ones(3, "float64"), np.zeros(3, "float64")],
        [np.ones(3, "uint8")],
        [np.float32(1), np.float64(2)],
        [np.int64(1), 2],
        [[[1], [2]], [[3], [4]]],
        ((1.0, 2.0), (3.0, 4.0)),
        [],
        [[]],
        3.5,
        np.arange(3),
        torch.arange(3),
        [torch.tensor(1.0), torch.tensor(2.0)],
    ],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [None, torch.float32, torch.float64, torch.int64])
@pytest.mark.filterwarnings("ignore")
def test_it_is_the_same_tensor(tmp_path, values, dtype):
    space: dict = {}
    exec(written(tmp_path)[0], space)
    try:
        wanted = torch.tensor(values, dtype=dtype)
    except (TypeError, RuntimeError) as error:  # fractions to whole numbers
        with pytest.raises(type(error)):
            space["_tensor"](values, dtype=dtype)
        return
    got = space["_tensor"](values, dtype=dtype)
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    assert torch.equal(got, wanted)


@pytest.mark.parametrize("values", [[[1], [2, 3]], [2**70], [np.ones(2), np.ones(3)], ["a"]], ids=repr)
def test_it_fails_as_torch_does(tmp_path, values):
    space: dict = {}
    exec(written(tmp_path)[0], space)
    with pytest.raises(Exception) as wanted:
        torch.tensor(values)
    with pytest.raises(wanted.type):
        space["_tensor"](values)
