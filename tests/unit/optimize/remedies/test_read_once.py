"""A file that is parsed for each sample is parsed once: where nobody changes what it holds, and until it changes."""

from __future__ import annotations

import json
import os

import libcst as cst
import pytest
from optimize_builders import make_context, make_module, make_report

from unstall.optimize.observed import ObservedLoader, RuntimeFacts
from unstall.optimize.remedies.read_once import REMEDY
from unstall.optimize.rewrites.read_once import file_reads, reading_once, refuse_own_files
from unstall.optimize.runtime.read_once import _ReadOnce
from unstall.optimize.source.aliasing import refuse_changes
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable
from unstall.optimize.source.toplevel import with_runtime
from unstall.records.report import Hotspot

DATASET = """import json

import torch


class Readings:
    def __init__(self, path):
        self.path = path

    def __getitem__(self, index):
        # the labels
        with open(self.path, encoding="utf-8") as file:
            labels = json.load(file)
        entry = labels[index]
        return torch.tensor(entry["values"]), entry["label"]
"""


def patched(source, *, collated=True):
    """The source with the first file read of its last function through _ReadOnce."""
    module = make_module(source)
    function = list(module.all(cst.FunctionDef))[-1]
    read = next(iter(file_reads(module, function)), None)
    if read is None:
        raise AnalysisRefused("no read")
    refuse_own_files(module, function, read)
    refuse_changes(module, read.value, samples_are_collated=collated)
    return with_runtime(reading_once(module, read), "read_once").code


@pytest.fixture
def old_file(tmp_path):
    """Writes a file whose last change is a while ago."""
    _ReadOnce.parsed.clear()

    def write(content, *, changed_at=1_000_000.0):
        path = tmp_path / "labels.json"
        path.write_text(json.dumps(content))
        os.utime(path, (changed_at, changed_at))
        return path

    yield write
    _ReadOnce.parsed.clear()


def test_a_file_opened_for_each_sample_is_parsed_once(old_file, monkeypatch):
    path = old_file([{"values": [1.0, 2.0], "label": 3}, {"values": [4.0], "label": 5}])
    changed = patched(DATASET)
    assert (
        '        # the labels\n        labels = _ReadOnce.opened(json.load, self.path, encoding="utf-8")\n' in changed
    )
    assert "with open(self.path" not in changed and changed.count("import os\n") == 1
    parses = []
    load = json.load
    monkeypatch.setattr(json, "load", lambda file: parses.append(1) or load(file))
    spaces: list[dict] = [{}, {}]
    samples = []
    for text, space in zip((DATASET, changed), spaces):
        exec(compile(text, "train.py", "exec"), space)
        readings = space["Readings"](path)
        parses.clear()
        samples.append([(values.tolist(), label) for values, label in (readings[i] for i in (0, 1, 0))])
        assert len(parses) == (3 if text is DATASET else 1)
    assert samples[0] == samples[1]


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("return int(json.load(open(self.path))[i])", "return int(_ReadOnce.opened(json.load, self.path)[i])"),
        ("x = np.load(self.path)[i // 2].copy()\n        return x", "x = _ReadOnce.get(np.load, self.path)[i // 2].copy()"),
        ("return pd.read_csv(self.path, dtype={'a': np.int64}).iloc[i].mean()",
         "_ReadOnce.get(pd.read_csv, self.path, dtype={'a': np.int64}).iloc[i].mean()"),
        ("with open(self.path) as f:\n            return float(list(csv.reader(f))[i][0])",
         "return float(_ReadOnce.opened(lambda file: list(csv.reader(file)), self.path)[i][0])"),
        ("with open(self.path, 'rb') as f:\n            x = pickle.load(f)\n            return x[i]",
         "        x = _ReadOnce.opened(pickle.load, self.path, 'rb')\n        return x[i]\n"),
        ("return torch.load(f'{self.path}/{i // 100}.pt', map_location='cpu')[i % 100]",
         "_ReadOnce.get(torch.load, f'{self.path}/{i // 100}.pt', map_location='cpu')[i % 100]"),
    ],
)  # fmt: skip
def test_the_ways_in_which_files_are_read(body, written):
    header = "import csv\nimport json\nimport pickle\nimport numpy as np\nimport pandas as pd\nimport torch\n"
    assert written in patched(f"{header}class D:\n    def __getitem__(self, i):\n        {body}\n")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("entry = labels[index]", "entry = labels.pop(index)", "line 14 changes"),
        ("entry = labels[index]", "entry = labels[index]\n        entry['seen'] = True", "line 15 changes"),
        ("entry = labels[index]", "labels += [1]\n        entry = labels[index]", "line 14 changes"),
        ("entry = labels[index]", "entry = self.labels = labels[index]", "line 14 keeps"),
        ("entry = labels[index]", "entry = self.augment(labels[index])", "to self.augment, which may change it"),
        ("torch.tensor(entry", "torch.as_tensor(entry.values).mul_(2), (entry", "line 15 changes"),
        ("open(self.path", "open(self.paths[index]", "reads a file for each sample"),
        ("json.load(file)", "[json.loads(line) for line in file]", "no read"),
        ("open(self.path,", "open(self.path, 'r+',", "no read"),
    ],
)
def test_what_may_be_changed_is_left(old, new, reason):
    with pytest.raises(AnalysisRefused, match=reason):
        patched(DATASET.replace(old, new))


def test_samples_that_no_collate_copies_are_left():
    with pytest.raises(AnalysisRefused, match="to what is not seen"):
        patched(DATASET, collated=False)


HELPER = """import json


def first(path):
    labels = load(path)
    return len(labels)


def load(path):
    return json.load(open(path))
"""


def test_what_a_helper_returns_is_followed_to_its_callers():
    assert "return _ReadOnce.opened(json.load, path)" in patched(HELPER)
    with pytest.raises(AnalysisRefused, match="line 6 changes"):
        patched(HELPER.replace("return len(labels)", "labels.append(1)"))
    with pytest.raises(AnalysisRefused, match="uses load other than by a call"):
        patched(HELPER.replace("load(path)\n    return", "map(load, path)\n    return"))


def test_a_changed_file_is_read_again(old_file):
    path = old_file([1])
    first = _ReadOnce.opened(json.load, path)
    assert first == [1] and _ReadOnce.opened(json.load, path) is first
    old_file([2], changed_at=2_000_000.0)
    assert _ReadOnce.opened(json.load, path) == [2]
    path.write_text("[3]")  # just now: the next change may have the same time
    assert _ReadOnce.opened(json.load, path) is not _ReadOnce.opened(json.load, path)


def test_other_arguments_and_readers_are_kept_apart(old_file):
    path = old_file("é")
    assert _ReadOnce.opened(lambda file: file.read(), path) == '"\\u00e9"'
    assert _ReadOnce.opened(lambda file: file.read(), path, "rb") == b'"\\u00e9"'
    assert _ReadOnce.opened(json.load, path) == "é"


def test_what_is_kept_is_bounded(tmp_path):
    _ReadOnce.parsed.clear()
    for number in range(70):
        path = tmp_path / str(number)
        path.write_text(str(number))
        os.utime(path, (1, 1))
        _ReadOnce.opened(json.load, path)
    assert len(_ReadOnce.parsed) == 64
    _ReadOnce.parsed.clear()


def test_a_missing_file_and_an_open_one_are_the_readers_own_affair(old_file):
    with pytest.raises(FileNotFoundError):
        _ReadOnce.opened(json.load, "nowhere.json")
    with open(old_file([1])) as file:
        assert _ReadOnce.get(json.load, file) == [1]
    assert not _ReadOnce.parsed


def make_read_context(tmp_path, line, share, **loader):
    script = tmp_path / "train.py"
    script.write_text(DATASET)
    spot = Hotspot(
        process="main", phase="data_wait", share=share, where="__getitem__", file=str(script), line=line, function="f"
    )
    runtime = RuntimeFacts(loaders=(ObservedLoader(**loader),))
    return make_context(
        tmp_path, script=script, report=make_report(hotspots=[spot], phases={"data_wait": share}), runtime=runtime
    )


def test_a_hot_read_is_proposed(tmp_path):
    (proposal,) = REMEDY.propose(make_read_context(tmp_path, 13, 0.8, collates_by_default=True))
    assert proposal.title == "the file that __getitem__ reads (train.py:12) is parsed once"
    assert 4 < proposal.predicted < 5 and proposal.keeps_files
    assert proposal.lines is not None and proposal.lines.hold(tmp_path / "train.py", 13)
    with pytest.raises(NotApplicable, match="no read of a file"):
        REMEDY.propose(make_read_context(tmp_path, 14, 0.8, collates_by_default=True))
    with pytest.raises(NotApplicable, match="not seen"):
        REMEDY.propose(make_read_context(tmp_path, 13, 0.8))
