"""A batch that is indexed at once is what torch's collate makes of its samples; what does more is refused."""

from __future__ import annotations

import textwrap

import pytest
from optimize_builders import make_context, make_measurement, make_module, make_report

from unstall.optimize.indexing import batched_getter
from unstall.optimize.observed import ObservedLoader, RuntimeFacts
from unstall.optimize.remedies import cache_samples
from unstall.optimize.remedies.batch_index import REMEDY
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable
from unstall.optimize.source.places import CallSite

torch = pytest.importorskip("torch")

PROGRAM = """
import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split

SCALE = 255


class Digits(Dataset):
    def __init__(self, transform=None):
        generator = torch.Generator().manual_seed(0)
        self.images = torch.randint(0, 256, (40, 6, 5, 3), generator=generator, dtype=torch.uint8)
        self.features = np.random.default_rng(0).normal(size=(40, 7))
        self.series = torch.rand(60, 2, generator=generator)
        self.labels = np.arange(40, dtype=np.int32) % 5
        self.names = [f"digit {number}" for number in range(40)]
        self.years = [1900 + number for number in range(40)]
        self.order = torch.randperm(40, generator=generator)
        self.tables = {"images": self.images, "features": self.features}
        self.mean = self.features.mean(0)
        self.length = 4
        self.transform = transform
        self.frame = None

    @property
    def computed(self):
        return self.images

    def __len__(self):
        return 40

    def __getitem__(self, index):
BODY


def loaders(dataset, workers=0):
    return DataLoader(dataset, batch_size=8, num_workers=workers)
"""
TENSORS = """
import torch
from torch.utils.data import DataLoader, TensorDataset


def make():
    x = torch.arange(60.0).reshape(20, 3)
    return TensorDataset(x, torch.arange(20))


def loaders(dataset, workers=0):
    return DataLoader(dataset, batch_size=8, num_workers=workers)
"""


def program(body):
    return PROGRAM.replace("BODY", textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8))


def line_of(text, part):
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def run(text, name):
    space: dict = {"__name__": "program"}
    exec(compile(text, name, "exec"), space)
    return space


def attributes_of(dataset):
    from unstall.child.trial.probe import _attributes

    return _attributes(dataset)


def context_of(path, text, *, dataset="Digits", attributes=None, wait=0.8, **loader):
    path.write_text(text)
    call = CallSite(file=path, line=line_of(text, "return DataLoader"), function="loaders")
    is_own = "__getitem__" in text
    facts = {
        "batch_size": 8, "dataset": dataset, "collates_by_default": True, "attributes": attributes or {}, "call": call,
        "getitem_file": str(path) if is_own else "/lib/torch/utils/data/dataset.py",
        "getitem_line": line_of(text, "def __getitem__") if is_own else 190, **loader,
    }  # fmt: skip
    phases = {"data_wait": wait}
    return make_context(
        path.parent, script=path, report=make_report(phases=phases), measurement=make_measurement(phases=phases),
        runtime=RuntimeFacts(loaders=(ObservedLoader(**facts),)),
    )  # fmt: skip


def patched(tmp_path, text, **facts):
    path = tmp_path / "train.py"
    (proposal,) = REMEDY.propose(context_of(path, text, **facts))
    return proposal.sources.bytes_of(path).decode()


def described(batch):
    from unstall.child.trial.indexed_batches import described

    return described(batch)


def assert_same_batches(tmp_path, text, wrap=lambda space, dataset: dataset, *, workers=0, **given):
    before = run(text, "before.py")
    after = run(patched(tmp_path, text, attributes=attributes_of(before["Digits"](**given))), "after.py")
    torch.manual_seed(0)
    originals = list(before["loaders"](wrap(before, before["Digits"](**given)), workers))
    torch.manual_seed(0)
    batches = list(after["loaders"](wrap(after, after["Digits"](**given)), workers))
    assert described(batches) == described(originals) and len(batches) > 1
    return after


BODIES = [
    "return self.images[index], self.labels[index]",
    "return self.images[index].float() / SCALE, int(self.labels[index])",
    "return {'x': torch.from_numpy(self.features[index]), 'y': torch.tensor(self.labels[index], dtype=torch.long)}",
    "x = (self.features[index] - self.mean).astype(np.float32)\nreturn [x, self.labels[index].item(), index]",
    """
    if torch.is_tensor(index):
        index = index.tolist()
    image = self.images[index].permute(2, 0, 1).float()
    if self.transform is not None:
        image = self.transform(image)
    return image, self.labels[index]
    """,
    "image = self.images[index].float()\nreturn torch.abs((self.transform(image) if self.transform else image) + 1), 2",
    "image = self.images[index]\nreturn (self.transform(image) if self.transform else image), self.years[index]",
    "return self.series[index : index + self.length], self.series[index + self.length, 0]",
    "at = self.order[index]\nreturn self.images[at, :, 1:, 0], self.features[at], at",
    "return {name: torch.as_tensor(table[index]) for name, table in self.tables.items()}",
    "return tuple(table[index] for table in (self.images, self.features))",
    "item = {k: v[index] for k, v in self.tables.items()}\nitem['labels'] = torch.tensor(self.labels[index])\nreturn item",
    "x = self.images[index]\nreturn {'x': x, 'same': x, 'n': 3, 'name': self.names[index], 'row': x[0, ..., :2]}",
    "x = self.features[index] * 2\nx -= self.mean\nreturn x.reshape(-1), x[None], x[:3] > 0",
    "x, y = self.images[index], self.labels[index]\nreturn x.view(1, -1), F.one_hot(torch.tensor(y).long(), 5), 1.5",
    "return torch.tensor([self.labels[index], self.years[index]]), self.images[index].flatten().unsqueeze(0)",
    '"""A sample."""\nx: torch.Tensor = self.images[index]\nreturn x.clone(), -self.features[index]',
    "begin, size = 1, 3\nx, n = self.images[index, begin:size], 2\nreturn x, n, self.series[index, begin]",
    "return self.images[index]",
]


@pytest.mark.parametrize("body", BODIES)
def test_batches_are_the_same_to_the_byte(tmp_path, body):
    after = assert_same_batches(tmp_path, program(body))
    dataset = after["Digits"]()
    assert type(dataset.__getitems__([3, 5])).__name__ == "_IndexedBatch", "they are indexed at once"


def test_subsets_workers_and_negative_indices_give_the_same(tmp_path):
    text = program("return self.images[index].permute(2, 0, 1), self.labels[index]")
    assert_same_batches(tmp_path, text, workers=1)
    assert_same_batches(tmp_path, text, lambda space, dataset: space["random_split"](dataset, [30, 10])[0])
    assert_same_batches(tmp_path, text, lambda space, dataset: space["Subset"](dataset, torch.arange(30) - 40))
    assert_same_batches(tmp_path, text, lambda space, dataset: space["Subset"](dataset, range(0, 40, 3)))


def test_samples_are_made_one_by_one_where_the_class_or_its_attributes_are_others(tmp_path):
    text = program("""
        image = self.images[index].float()
        if self.transform:
            image = self.transform(image)
        return image, self.labels[index]
    """)
    after = assert_same_batches(tmp_path, text)
    assert type(after["Digits"](lambda image: image * 2).__getitems__([1, 2])) is list

    class Doubled(after["Digits"]):
        def __getitem__(self, index):
            return super().__getitem__(index)[0] * 2, 1

    assert torch.equal(Doubled().__getitems__([3])[0][0], after["Digits"]()[3][0] * 2)


def test_a_batch_is_a_sequence_of_samples_for_any_other_collate(tmp_path):
    after = assert_same_batches(tmp_path, program("return self.images[index], self.labels[index]"))
    dataset = after["Digits"]()
    samples = dataset.__getitems__([4, 2, 7])
    assert [int(label) for _, label in samples] == [4, 2, 2] and len(samples[1:]) == 2
    assert described(torch.utils.data.default_collate(samples)) == described(samples.collated())


def test_no_two_parts_of_a_batch_share_memory(tmp_path):
    after = assert_same_batches(tmp_path, program("x = self.features[index]\nreturn {'x': x, 'y': x}"))
    batch = next(iter(after["loaders"](after["Digits"]())))
    batch["x"].zero_()
    assert batch["y"].abs().sum() > 0


def test_any_name_may_be_taken_in_the_method(tmp_path):
    taken = [f"{name} = 1" for name in ("indices", "batch_indices", "indices_of_batch", "all_indices_of_batch")]
    assert_same_batches(tmp_path, program("\n".join([*taken, "return self.images[index], self.labels[index]"])))


def test_the_patch_keeps_the_class_and_changes_the_loader(tmp_path):
    text = program("return self.images[index], self.labels[index]")
    changed = patched(tmp_path, text)
    assert "DataLoader(dataset, batch_size=8, num_workers=workers, collate_fn=_collated)" in changed
    assert "        return self.images[index], self.labels[index]\n\n    def __getitems__(self, indices):" in changed
    assert "unstall" not in changed


def test_a_loader_with_a_collate_of_its_own_gets_samples_as_before(tmp_path):
    own = """


def plain(samples):
    return torch.utils.data.default_collate(samples) if isinstance(samples, list) else samples.oops


def apart(dataset):
    return (
        DataLoader(dataset, batch_size=8, collate_fn=plain),
        DataLoader(dataset, collate_fn=None, batch_size=8),
        DataLoader(dataset, batch_size=None),
    )
"""
    text = program("return self.images[index].float()") + own
    attributes = attributes_of(run(text, "before.py")["Digits"]())
    changed = patched(tmp_path, text, attributes=attributes)
    assert "collate_fn=_OwnCollate(plain)" in changed and "DataLoader(dataset, batch_size=None)" in changed
    before, after = run(text, "before.py"), run(changed, "after.py")
    for one, other in zip(before["apart"](before["Digits"]()), after["apart"](after["Digits"]())):
        assert described(list(one)) == described(list(other))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return self.images[index] + torch.randn(3), 1", "torch.randn may differ every time"),
        ("return np.load(f'{index}.npy'), 1", "is not known for many samples at once"),
        ("return np.load(self.names[index]), 1", "np.load is called for each sample"),
        ("return np.array(*self.images[index]), 1", "arguments of np.array are packed"),
        ("return self.load(index), 1", "self.load is called for each sample"),
        ("return self.computed[index], 1", "self.computed is computed for each sample"),
        ("return self.images[index].float().mean(), 1", "mean() of a sample"),
        ("return self.images[index].float().exp(), 1", "exp() of a sample"),
        ("x = self.images[index]\nx -= 1\nreturn x, 1", "x is changed in place"),
        ("x = self.images[index]\nx[0] = 1\nreturn x, 1", "x[0] is set for each sample"),
        ("self.seen = index\nreturn self.images[index], 1", "self.seen is set for each sample"),
        (
            "if index > 3:\n    return self.images[0], 1\nreturn self.images[index], 1",
            "index > 3 depends on the sample",
        ),
        ("for _ in range(3):\n    pass\nreturn self.images[index], 1", "a statement of many lines"),
        ("return self.images[:, index], 1", "may have another length|another dimension"),
        ("return self.images[index:], 1", "another length for each sample"),
        ("return self.frame.iloc[index], 1", "a pandas frame's"),
        ("return self.years[index], 1", "indexes no tensor or array"),
        ("return self.images[0], 1", "every sample is the same"),
        ("image = self.images[index]", "may be nothing"),
        ("return self.images[index] @ self.mean, 1", "not done row by row"),
        ("return f'{index}', 1", "is not known for many"),
        ("return self.images[index] if self.labels[index] else 0, 1", "depends on the sample"),
        ("return self.transform(self.images[index]), 1", "self.transform is called for each sample"),
        (
            "if self.transform is None:\n    return self.other[index], 1\nreturn self.load(index)",
            "self.other is a Loader",
        ),
    ],
)
def test_what_is_more_than_indexing_is_refused_with_the_reason(body, reason):
    text = program(body)
    attributes = {"years": "list", "transform": "None", "other": "Loader", "images": "Tensor", "frame": "DataFrame"}
    with pytest.raises(AnalysisRefused, match=reason.replace("(", r"\(").replace(")", r"\)").replace("[", r"\[")):
        batched_getter(make_module(text), line_of(text, "def __getitem__"), attributes)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"batch_size": None}, "to its sampler or its dataset"),
        ({"batch_size": 1}, "batches of 1"),
        ({"map_style": False}, "no map-style dataset"),
        ({"collates_by_default": False}, "collate of its own"),
        ({"wait": 0.01}, "takes 1"),
        ({"call": None}, "inside a library"),
        ({"getitem_file": "/lib/torchvision/datasets/mnist.py"}, "not made in the program's own code"),
    ],
)
def test_a_loader_that_it_does_not_fit_is_refused(tmp_path, facts, reason):
    text = program("return self.images[index], self.labels[index]")
    with pytest.raises(NotApplicable, match=reason):
        REMEDY.propose(context_of(tmp_path / "train.py", text, **facts))


def test_samples_that_are_only_indexed_are_kept_in_no_files(tmp_path):
    text = program("return self.images[index].float() / 255, self.labels[index]")
    with pytest.raises(NotApplicable, match="only indexes what is in memory"):
        cache_samples.REMEDY.propose(context_of(tmp_path / "train.py", text))


def test_a_tensor_dataset_is_made_one_that_reads_whole_batches(tmp_path):
    after_text = patched(tmp_path, TENSORS, dataset="TensorDataset")
    before, after = run(TENSORS, "before.py"), run(after_text, "after.py")
    batches = list(after["loaders"](after["make"]()))
    assert described(batches) == described(list(before["loaders"](before["make"]())))
    assert isinstance(after["make"](), torch.utils.data.TensorDataset)
    assert type(after["make"]().__getitems__([1])).__name__ == "_IndexedBatch"
    halves = torch.utils.data.random_split(after["make"](), [10, 10])
    assert type(halves[0].__getitems__([1])).__name__ == "_IndexedBatch"


def test_the_check_of_a_trial_finds_a_batch_that_is_not_its_samples():
    from unstall.child.trial.indexed_batches import check_class
    from unstall.optimize.runtime.indexed_batch import _IndexedBatch

    class Checked(_IndexedBatch):
        pass

    lines: list[str] = []
    check_class(Checked, lines.append)
    dataset = [(torch.tensor([float(number)]), number) for number in range(5)]
    Checked(dataset, [1, 3], (torch.tensor([[1.0], [3.0]]), torch.tensor([1, 3]))).collated()
    assert lines == []
    Checked(dataset, [1, 3], (torch.tensor([[1.0], [3.0]]), torch.tensor([1, 3], dtype=torch.int32))).collated()
    assert len(lines) == 1
