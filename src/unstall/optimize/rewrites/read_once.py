"""Where a function reads a whole file and parses it, and how to write the same through ``_ReadOnce``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from unstall.optimize.source.edit import Edit, edited, keyword, put
from unstall.optimize.source.effects import named
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, dotted

_READERS = named({
    "numpy": "load loadtxt genfromtxt fromfile", "torch": "load", "joblib": "load", "soundfile": "read",
    "pandas": "read_csv read_table read_json read_parquet read_pickle read_feather read_excel read_hdf",
    "polars": "read_csv read_json read_parquet", "pyarrow.parquet": "read_table", "scipy.io": "loadmat",
    "cv2": "imread", "imageio": "imread", "imageio.v2": "imread", "imageio.v3": "imread", "skimage.io": "imread",
    "torchvision.io": "read_image", "torchaudio": "load",
    "safetensors.torch": "load_file", "safetensors.numpy": "load_file",
})  # fmt: skip
"""Functions whose first argument is the path of a file, which they read as a whole."""
_PARSERS = named({
    "json": "load loads", "pickle": "load loads", "yaml": "safe_load", "tomllib": "load loads",
    "csv": "reader DictReader", "numpy": "load loadtxt", "torch": "load", "builtins": "list dict tuple set",
})  # fmt: skip
"""Functions that are given an open file, or what was read of it."""
_FILE_METHODS = named({"": "read readlines splitlines split strip decode"})
_LAZY = ("csv.reader", "csv.DictReader")
_LITERALS = (cst.BaseNumber, cst.BaseString, cst.Tuple, cst.List, cst.Set, cst.Dict, cst.UnaryOperation)


@dataclass(frozen=True)
class FileRead:
    """An expression that reads and parses a file."""

    value: cst.BaseExpression
    """It gives what the file holds."""
    call: cst.Call
    """It is given the path: the reader, or ``open``."""
    file: cst.BaseExpression | None = None
    """The open file in ``value``; None where that is the reader's call."""
    block: cst.With | None = None
    """The ``with`` that opens the file."""

    @property
    def path(self) -> cst.BaseExpression:
        """The expression that gives the file's path."""
        return self.call.args[0].value


def file_reads(module: SourceModule, function: cst.FunctionDef) -> Iterator[FileRead]:
    """The file reads of a function that can be written otherwise."""
    for call in module.inside(function.body):
        if not isinstance(call, cst.Call) or not _has_plain_arguments(module, call):
            continue
        name = module.name(call)
        if name in _READERS:
            yield FileRead(call, call)
        elif name == "builtins.open" and not _may_write(module, call):
            read = _of_open(module, call)
            if read is not None:
                yield read


def _has_plain_arguments(module: SourceModule, call: cst.Call) -> bool:
    """Whether a path comes first, and what follows is always the same."""
    if not call.args or call.args[0].keyword is not None or any(arg.star for arg in call.args):
        return False
    return all(_is_constant(module, arg.value) for arg in call.args[1:])


def _is_constant(module: SourceModule, value: cst.BaseExpression) -> bool:
    """Whether an expression is a literal, or the name of something imported or built in."""
    if isinstance(value, (cst.Name, cst.Attribute)):
        name, spelled = module.name(value), dotted(value)
        is_imported = spelled.partition(".")[0] in module.imports and module.resolve(spelled) == name
        return is_imported or name.startswith("builtins.")
    if not isinstance(value, _LITERALS):
        return False
    inside = module.inside(value)
    if any(isinstance(node, (cst.Call, cst.FormattedString)) for node in inside):
        return False
    names = [node for node in inside if isinstance(node, cst.Name) and module.context(node) is not None]
    return all(_is_constant(module, name) for name in names)


def _may_write(module: SourceModule, call: cst.Call) -> bool:
    mode = keyword(call, "mode") or next((arg for arg in call.args[1:2] if arg.keyword is None), None)
    return mode is not None and bool(set("wax+") & set(module.code(mode.value)))


def _of_open(module: SourceModule, call: cst.Call) -> FileRead | None:
    item = module.parent(call)
    if not isinstance(item, cst.WithItem):
        value = _parsed(module, call)
        return FileRead(value, call, file=call) if value is not None else None
    block = module.parent(item)
    if not isinstance(block, cst.With) or len(block.items) != 1 or item.asname is None or block.asynchronous:
        return None
    file = item.asname.name
    if not isinstance(file, cst.Name) or not isinstance(block.body, cst.IndentedBlock):
        return None
    uses = module.uses(file.value, block.body)
    value = _parsed(module, uses[0]) if len(uses) == 1 else None
    if value is None or module.statement(value) is not block.body.body[0]:
        return None
    return FileRead(value, call, file=uses[0], block=block)


def _parsed(module: SourceModule, file: cst.BaseExpression) -> cst.BaseExpression | None:
    """The outermost expression around an open file that only parses it; None where nothing does, or bit by bit."""
    node, name = file, ""
    while (outer := _parsing_call(module, node)) is not None:
        node, name = outer, module.name(outer)
    return None if node is file or name in _LAZY else node


def _parsing_call(module: SourceModule, node: cst.BaseExpression) -> cst.Call | None:
    above = module.parent(node)
    call = module.parent(above) if above is not None else None
    if not isinstance(call, cst.Call):
        return None
    if isinstance(above, cst.Attribute) and call.func is above and above.attr.value in _FILE_METHODS:
        return call if all(_is_constant(module, arg.value) for arg in call.args) else None
    is_first = isinstance(above, cst.Arg) and call.args[0] is above
    if is_first and module.name(call) in _PARSERS and _has_plain_arguments(module, call):
        return call
    return None


def refuse_own_files(module: SourceModule, function: cst.FunctionDef, read: FileRead) -> None:
    """Raise AnalysisRefused where each sample has a file of its own: that one is read once in an epoch anyway."""
    if function.name.value != "__getitem__" or not function.params.params:
        return
    index = function.params.params[-1].name.value
    for expression in (read.path, *_values(module, function, read.path)):
        for node in module.inside(expression):
            if isinstance(node, cst.Name) and node.value == index:
                above = module.parent(node)
                if isinstance(above, (cst.Index, cst.FormattedStringExpression)):
                    raise AnalysisRefused(f"line {module.first_line(read.call)} reads a file for each sample")


def _values(module: SourceModule, function: cst.FunctionDef, path: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What a function assigns to the name that is the path."""
    if not isinstance(path, cst.Name):
        return
    for node in module.inside(function.body):
        if isinstance(node, cst.Assign) and any(module.code(target.target) == path.value for target in node.targets):
            yield node.value


def reading_once(module: SourceModule, read: FileRead) -> cst.Module:
    """The tree with one file read through ``_ReadOnce``, which the file must have."""
    if read.file is None:
        reader, method = module.code(read.call.func), "get"
    else:
        reader, method = _parser(module, read), "opened"
    arguments = ", ".join([reader, *(module.code(arg).rstrip(", ") for arg in read.call.args)])
    edits: dict[cst.CSTNode, Edit] = {read.value: put(cst.parse_expression(f"_ReadOnce.{method}({arguments})"))}
    if read.block is not None:
        leading = read.block.leading_lines
        edits[read.block] = lambda block: cst.FlattenSentinel(
            [block.body.body[0].with_changes(leading_lines=[*leading, *block.body.body[0].leading_lines]),
             *block.body.body[1:]]
        )  # fmt: skip
    return edited(module.tree, edits)


def _parser(module: SourceModule, read: FileRead) -> str:
    """The function of an open file that gives the value."""
    value = read.value
    if isinstance(value, cst.Call) and len(value.args) == 1 and value.args[0].value is read.file:
        return module.code(value.func)
    expression = value.deep_replace(read.file, cst.Name("file"))  # type: ignore[arg-type]
    return f"lambda file: {cst.Module([]).code_for_node(expression)}"  # type: ignore[arg-type]
