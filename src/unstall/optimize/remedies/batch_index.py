"""Samples that only index what is in memory: a batch is indexed at once, and needs no collate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_lines import share_of_loading
from unstall.optimize.indexing import batched_getter
from unstall.optimize.observed import ObservedLoader
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.source.edit import Edit, edited, keyword, put, with_keyword
from unstall.optimize.source.errors import NotApplicable, located
from unstall.optimize.source.files import Sources
from unstall.optimize.source.toplevel import with_runtime
from unstall.optimize.thresholds import INDEXED_BATCH_SAVES, LEAST_BATCH, LEAST_SHARE
from unstall.text.units import percent

_POSITIONAL = 6  # arguments of a DataLoader before its collate
_LOADER = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
_TENSOR_DATASET = ("torch.utils.data.TensorDataset", "torch.utils.data.dataset.TensorDataset")
_TENSOR_DATASET_FILE = ("torch", "utils", "data", "dataset.py")


class BatchIndex(Remedy):
    """The main loader's dataset gets a ``__getitems__``, or is a TensorDataset that has one."""

    name = "batch-index"
    brief = "a dataset that indexes tensors or arrays for one sample indexes them once for the whole batch"
    needs = "a map-style dataset that only indexes and scales, or a `TensorDataset`, and the default collate"
    patterns = ("input-bound",)
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        loader = context.main_loader
        if loader is None or not loader.map_style:
            raise NotApplicable("there is no map-style dataset in the main loop")
        size = loader.batch_size
        if size is None:
            raise NotApplicable("the loader leaves the making of batches to its sampler or its dataset")
        if size < LEAST_BATCH:
            raise NotApplicable(f"the loader makes batches of {size}")
        share = share_of_loading(context, in_workers=bool(loader.num_workers))
        if share < LEAST_SHARE:
            raise NotApplicable(f"making the batches takes {percent(share)} of the step")
        sources, lines = _with_batches(context, loader)
        return [
            Proposal(
                f"a batch of {loader.dataset} indexed at once ({lines.path.name}:{lines.first})",
                speedup_without(share, INDEXED_BATCH_SAVES),
                f"making the batches sample by sample takes {percent(share)} of the step",
                sources=sources,
                key=context.key(lines.path, lines.first),
                lines=lines,
                indexes_batches=True,
            )
        ]


def _with_batches(context: RemedyContext, loader: ObservedLoader) -> tuple[Sources, Lines]:
    """The sources with the dataset and its loaders changed, and the lines that make a sample. Raises NotApplicable."""
    if not loader.collates_by_default:
        raise NotApplicable("the loader has a collate of its own")
    loader_file = context.file_of(loader.call)
    if loader_file is None:
        raise NotApplicable("the loader is made inside a library")
    plan = _Plan(context.sources)
    plan.collate(loader_file)
    path = context.user_file(loader.getitem_file)
    if path is not None:
        with located(path.name):
            getter = batched_getter(context.sources.module(path), loader.getitem_line or 0, loader.attributes)
        if getter.bare and not path == loader_file == context.program.script:
            raise NotApplicable(f"a sample of {getter.cls} is in no container, and other scripts may load it")
        plan.change(path, {getter.method: put(getter.method, getter.added)}, getter.helpers)
        lines = Lines.of(path, context.sources.module(path), getter.method)
    elif loader.dataset == "TensorDataset" and Path(loader.getitem_file or "").parts[-4:] == _TENSOR_DATASET_FILE:
        lines = plan.tensor_datasets(loader_file)
    else:
        raise NotApplicable(f"the samples of {loader.dataset} are not made in the program's own code")
    return plan.sources(), lines


class _Plan:
    """Edits of several files, each made from the file as it is."""

    def __init__(self, sources: Sources):
        self.original = sources
        self.edits: dict[Path, dict[cst.CSTNode, Edit]] = {}
        self.helpers: dict[Path, set[str]] = {}

    def change(self, path: Path, edits: Mapping[cst.CSTNode, Edit], helpers: Iterable[str]) -> None:
        """Add edits of a file, and modules of :mod:`unstall.optimize.runtime` that it then needs."""
        self.edits.setdefault(path, {}).update(edits)
        self.helpers.setdefault(path, set()).update(helpers)

    def collate(self, path: Path) -> None:
        """Have the loaders that a file makes take whole batches; one with a collate of its own gets lists as before."""
        module = self.original.module(path)
        for call in self._calls(path, _LOADER):
            present, size = keyword(call, "collate_fn"), keyword(call, "batch_size")
            if len(call.args) > _POSITIONAL or any(arg.star for arg in call.args):
                raise NotApplicable(f"{path.name}: a loader has a collate of its own")
            if size is not None and module.code(size.value) == "None":
                continue
            is_own = present is not None and module.code(present.value) != "None"
            value = f"_OwnCollate({module.code(present.value)})" if present is not None and is_own else "_collated"
            self.change(path, {call: partial(with_keyword, name="collate_fn", value=value)}, ["collated"])
        if path not in self.edits:
            raise NotApplicable(f"{path.name} makes its loader under another name")

    def tensor_datasets(self, path: Path) -> Lines:
        """Have a file make datasets of tensors that index whole batches; the lines that make the first."""
        calls = self._calls(path, _TENSOR_DATASET)
        if not calls:
            raise NotApplicable(f"{path.name} makes no TensorDataset itself")
        for call in calls:
            self.change(path, {call.func: put(cst.Name("_TensorDataset"))}, ["tensor_dataset"])
        return Lines.of(path, self.original.module(path), calls[0])

    def _calls(self, path: Path, names: Sequence[str]) -> list[cst.Call]:
        module = self.original.module(path)
        return [call for call in module.all(cst.Call) if module.name(call) in names]

    def sources(self) -> Sources:
        """The sources with all edits. Raises NameTaken."""
        sources = self.original
        for path, edits in self.edits.items():
            tree = edited(self.original.module(path).tree, edits)
            for helper in sorted(self.helpers[path], reverse=True):  # what a file needs most is put first
                tree = with_runtime(tree, helper)
            sources = sources.with_module(path, tree)
        return sources


REMEDY = BatchIndex()
