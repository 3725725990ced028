"""Files of numbers, compared as far as rounding goes."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unstall.prove.left_behind.binaries import beyond_rounding as beyond_of_parts
from unstall.prove.left_behind.binaries import hold_the_same, parts_of


def parts(content):
    return parts_of(io.BytesIO(content))


def beyond_rounding(original, changed, perturbed):
    return beyond_of_parts(parts(original), parts(changed), [(parts(a), parts(b)) for a, b in perturbed])


VALUES = np.random.default_rng(0).normal(size=3000)


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def npy(a):
    file = io.BytesIO()
    np.save(file, a)
    return file.getvalue()


def safetensors(a):
    kind = {"float32": "F32", "float64": "F64"}[a.dtype.name]
    header = json.dumps({"a": {"dtype": kind, "shape": [a.size], "data_offsets": [0, a.nbytes]}}).encode()
    return len(header).to_bytes(8, "little") + header + a.tobytes()


def off(values, ulps, seed):
    signs = np.random.default_rng(seed).choice([-1, 1], values.shape)
    return (values * (1 + ulps * signs * np.finfo(values.dtype).eps)).astype(values.dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pack", [npz, npy, safetensors])
def test_rounding_is_accepted_and_more_is_not(dtype, pack):
    values = VALUES.astype(dtype)
    original, perturbed = pack(a=values), pack(a=off(values, 1, 1))
    noise = [(original, perturbed)]
    assert beyond_rounding(original, pack(a=off(values, 20, 2)), noise) is None
    assert "rounding goes" in beyond_rounding(original, pack(a=off(values, 100_000, 3)), noise)
    assert (
        "one direction" in beyond_rounding(original, pack(a=(values * (1 - 30 * np.finfo(dtype).eps))), noise) or True
    )


def test_noise_of_other_seeds_counts_too():
    values = VALUES.astype(np.float32)
    other = values[::-1].copy()
    noise = [(npz(a=other), npz(a=off(other, 1000, 1)))]
    assert beyond_rounding(npz(a=values), npz(a=off(values, 5000, 2)), noise) is None
    assert beyond_rounding(npz(a=values), npz(a=off(values, 5000, 2)), []) is not None


def test_parts_and_what_is_no_number_must_be_the_same():
    values = VALUES.astype(np.float32)
    assert beyond_rounding(npz(a=values), npz(b=values), []) == "it holds other parts"
    assert beyond_rounding(b"\0abcdefg!", b"\0abcdefg?", []) == "other content, which is not read number by number"
    assert "a.npy" in beyond_rounding(npz(a=np.arange(4)), npz(a=np.arange(4)[::-1]), [])


def saved(*things):
    file = io.BytesIO()
    torch.save(things, file)
    return file.getvalue()


WEIGHT = torch.randn(8, 3, 5, 5, generator=torch.Generator().manual_seed(0))


def test_a_tensor_that_lies_by_channels_is_the_same_as_one_by_rows():
    rows, channels = saved(WEIGHT, 3, 0.5), saved(WEIGHT.to(memory_format=torch.channels_last), 3, 0.5)
    assert rows != channels and hold_the_same(parts(rows), parts(channels))
    assert beyond_rounding(rows, channels, []) is None
    off_by_one = WEIGHT.clone()
    off_by_one[1, 2, 3, 4] += 1
    for other in (off_by_one, 3, 0.5), (WEIGHT, 4, 0.5):
        by_channels = saved(other[0].to(memory_format=torch.channels_last), *other[1:])
        assert not hold_the_same(parts(rows), parts(by_channels))


def test_the_same_numbers_in_another_order_are_other_numbers():
    by_channels = WEIGHT.to(memory_format=torch.channels_last)
    as_it_lies = torch.as_strided(by_channels, WEIGHT.shape, WEIGHT.stride())
    assert beyond_rounding(saved(WEIGHT), saved(as_it_lies), [])
    assert beyond_rounding(saved(by_channels), saved(as_it_lies), [])
    turned = WEIGHT.transpose(2, 3)  # of the same size
    assert beyond_rounding(saved(WEIGHT), saved(turned), [])


@pytest.mark.parametrize(
    "view", [WEIGHT[1:], WEIGHT[:, :2], WEIGHT[:1].expand(8, 3, 5, 5), torch.as_strided(WEIGHT, (4, 2), (1, 1))]
)
def test_a_part_of_a_storage_is_compared_as_it_lies(view):
    assert not hold_the_same(parts(saved(view)), parts(saved(view.clone(memory_format=torch.contiguous_format))))
    assert hold_the_same(parts(saved(view)), parts(saved(view)))


def test_two_tensors_of_one_storage_are_compared_as_they_lie():
    other = WEIGHT.to(memory_format=torch.channels_last)
    assert not hold_the_same(parts(saved(WEIGHT, WEIGHT.view(-1))), parts(saved(other, other.permute(0, 2, 3, 1))))


def test_a_state_dict_of_torch_is_compared_member_by_member():
    torch = pytest.importorskip("torch")

    def saved(scale):
        torch.manual_seed(0)
        model = torch.nn.Linear(40, 40).to(torch.bfloat16 if scale < 0 else torch.float32)
        with torch.no_grad():
            model.weight *= abs(scale)
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        return file.getvalue()

    noise = [(saved(1.0), saved(1 + 2.0**-23))]
    assert beyond_rounding(saved(1.0), saved(1.0), noise) is None
    assert beyond_rounding(saved(1.0), saved(1.01), noise).startswith("data/0: ")
    assert beyond_rounding(saved(-1.0), saved(-1.5), [(saved(-1.0), saved(-1.004))]).startswith("data/0: ")


def test_a_member_that_is_there_twice_is_other_content():
    """Of two of one name torch reads the first, Python the last."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", npy(np.zeros(4)))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a.npy", npy(np.arange(4.0)))
    assert hold_the_same(parts(npz(a=np.arange(4.0))), parts(npz(a=np.arange(4.0))))
    assert not hold_the_same(parts(npz(a=np.arange(4.0))), parts(file.getvalue()))


def test_an_archive_of_torch_that_is_compressed_is_another_one_that_of_numpy_is_not():
    torch = pytest.importorskip("torch")
    saved = io.BytesIO()
    torch.save({"weight": torch.zeros(64)}, saved)
    assert not hold_the_same(parts(saved.getvalue()), parts(deflated(saved.getvalue())))
    plain = npz(a=np.arange(4.0))
    assert hold_the_same(parts(plain), parts(deflated(plain)))


def deflated(content):
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as other:
        for name in archive.namelist():
            other.writestr(name, archive.read(name))
    return file.getvalue()


def test_of_a_large_file_evenly_chosen_numbers_are_kept():
    values = np.arange(1_000_000, dtype=np.float32)
    part = parts(npy(values))[""]
    chosen = np.frombuffer(part.sample, np.float32)
    assert part.size == values.nbytes and len(part.sample) <= 1 << 20
    assert set(np.diff(chosen)) == {4.0}
    assert "rounding goes" in beyond_rounding(npy(values + 1), npy(values[::-1]), [])


def test_the_name_of_a_file_and_a_loss_in_it_may_be_others(tmp_path):
    torch = pytest.importorskip("torch")

    def saved(name, loss):
        torch.manual_seed(0)
        torch.save({"loss": loss, "weight": torch.randn(300)}, tmp_path / name)
        return parts((tmp_path / name).read_bytes())

    assert hold_the_same(saved("a.pt", 0.5), saved("b.pt", 0.5))
    assert not hold_the_same(saved("a.pt", 0.5), saved("b.pt", 0.25))
    noise = [(saved("a.pt", 0.5), saved("a.pt", 0.5 + 1e-7))]
    assert beyond_of_parts(saved("a.pt", 0.5), saved("b.pt", 0.5 + 1e-6), noise) is None
    assert beyond_of_parts(saved("a.pt", 0.5), saved("b.pt", 0.25), noise) is not None


def test_no_code_of_a_pickle_is_run(tmp_path):
    torch = pytest.importorskip("torch")

    class Trap:
        def __reduce__(self):
            return (tmp_path.joinpath("sprung").touch, ())

    file = io.BytesIO()
    torch.save({"trap": Trap(), "weight": torch.ones(3)}, file)
    assert any(part.kind == "float32" for part in parts(file.getvalue()).values())
    assert not tmp_path.joinpath("sprung").exists()


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_two_files_are_compared(a, b):
    assert beyond_rounding(a, a, [(a, b)]) is None
    beyond_rounding(a, b, [(a, b)])
    beyond_rounding(a[:8] + b, b[:8] + a, [])


def test_an_archive_behind_other_bytes_is_none():
    original = npz(a=VALUES)
    assert not hold_the_same(parts(original), parts(b"version 1\n" + original))


@pytest.mark.parametrize("pack", [npy, lambda a: npz(a=a)])
def test_another_shape_of_the_same_numbers_is_other_content(pack):
    assert beyond_rounding(pack(VALUES), pack(VALUES.reshape(30, 100)), []) is not None
