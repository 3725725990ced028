"""Small changes to source with libcst: find what the running program saw, change one thing, keep all formatting."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from unstall.optimize.case import Call

N = TypeVar("N", bound=cst.CSTNode)


class Found:
    """A parsed file with the places of its nodes."""

    def __init__(self, module: cst.Module):
        self.wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        self.module = self.wrapper.module
        self.places = self.wrapper.resolve(PositionProvider)
        self.parents: dict[cst.CSTNode, cst.CSTNode] = {}
        _note_parents(self.module, self.parents)
        self.lines = module.code.splitlines()

    def place(self, node: cst.CSTNode) -> CodeRange:
        """Where a node lies, lines from 1, columns from 0 in characters."""
        return self.places[node]

    def lines_of(self, node: cst.CSTNode) -> range:
        """The lines that a node stands on."""
        place = self.place(node)
        return range(place.start.line, place.end.line + 1)

    def nodes(self, kind: type[N]) -> list[N]:
        """All nodes of a kind, in the order of the source."""
        found = [node for node in self.parents if isinstance(node, kind)]
        return sorted(found, key=lambda node: (self.places[node].start.line, self.places[node].start.column)
                      if node in self.places else (0, 0))  # fmt: skip

    def ancestors(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """The nodes around a node, innermost first."""
        found = []
        while node in self.parents:
            node = self.parents[node]
            found.append(node)
        return found

    def around(self, node: cst.CSTNode, *kinds: type[cst.CSTNode]) -> cst.CSTNode | None:
        """The innermost node of these kinds around a node."""
        return next((one for one in self.ancestors(node) if isinstance(one, kinds)), None)

    def nodes_around(self, line: int, *kinds: type[cst.CSTNode]) -> list[cst.CSTNode]:
        """The nodes of these kinds around a line within its function, outermost first."""
        holding = [
            node
            for node in self.parents
            if isinstance(node, (*kinds, cst.FunctionDef))
            and self.places[node].start.line <= line <= self.places[node].end.line
        ]
        holding.sort(key=lambda node: (self.places[node].start.line, self.places[node].start.column))
        inner = max((n for n, node in enumerate(holding) if isinstance(node, cst.FunctionDef)), default=-1)
        return [node for node in holding[inner + 1 :] if isinstance(node, kinds)]

    def call(self, seen: Call, matches: Callable[[cst.Call], bool] = lambda call: True) -> cst.Call | None:
        """The call that the running program was in; without columns, the only one on the line that matches."""
        calls = [call for call in self.nodes(cst.Call) if call in self.places]
        if seen.span is not None:
            line, end_line, column, end_column = seen.span
            start = (line, self._characters(line, column))
            end = (end_line, self._characters(end_line, end_column))
            for call in calls:
                place = self.places[call]
                if (place.start.line, place.start.column) == start and (place.end.line, place.end.column) == end:
                    return call
        on_line = [
            call
            for call in calls
            if self.places[call].start.line <= seen.line <= self.places[call].end.line and matches(call)
        ]
        return on_line[0] if len(on_line) == 1 else None

    def function(self, name: str, line: int) -> cst.FunctionDef | None:
        """The function of a name that is defined nearest above, or at, a line; its decorators may stand above."""
        named = [one for one in self.nodes(cst.FunctionDef) if one.name.value == name]
        holding = [one for one in named if self._first_line(one) <= line <= self.places[one].end.line]
        return max(holding, key=self._first_line, default=None)

    def statement(self, node: cst.CSTNode) -> cst.BaseStatement | None:
        """The innermost statement around a node, or itself."""
        for one in (node, *self.ancestors(node)):
            if isinstance(one, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                return one
        return None

    def _first_line(self, function: cst.FunctionDef) -> int:
        lines = [self.places[function].start.line]
        lines += [self.places[decorator].start.line for decorator in function.decorators if decorator in self.places]
        return min(lines)

    def _characters(self, line: int, column: int) -> int:
        """A column in bytes of UTF-8, as the interpreter counts, in characters."""
        if not 0 < line <= len(self.lines):
            return column
        return len(self.lines[line - 1].encode()[:column].decode(errors="replace"))


def _note_parents(node: cst.CSTNode, parents: dict[cst.CSTNode, cst.CSTNode]) -> None:
    for one in node.children:
        parents[one] = node
        _note_parents(one, parents)


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all in it."""
    yield node
    for one in node.children:
        yield from walk(one)


def inside(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all in it, but for what is in functions that it defines."""
    yield node
    for one in node.children:
        if not isinstance(one, (cst.FunctionDef, cst.Lambda)):
            yield from inside(one)


def replaced(
    module: cst.Module, old: cst.CSTNode, new: cst.CSTNode | cst.FlattenSentinel[cst.BaseStatement]
) -> cst.Module:
    """The module with one node replaced, which must be in it by identity."""
    changed = module.deep_replace(old, new)  # type: ignore[type-var, arg-type]
    assert isinstance(changed, cst.Module)
    return changed


def with_calls(
    module: cst.Module, calls: Collection[cst.CSTNode], change: Callable[[cst.Call], cst.BaseExpression]
) -> cst.Module:
    """The module with each of these calls, which must be in it by identity, as ``change`` makes it."""
    return module.visit(_Calls(calls, change))


class _Calls(cst.CSTTransformer):
    """Changes some calls, the inner ones of a nest first."""

    def __init__(self, calls: Collection[cst.CSTNode], change: Callable[[cst.Call], cst.BaseExpression]) -> None:
        super().__init__()
        self.calls = set(calls)
        self.change = change

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        return self.change(updated_node) if original_node in self.calls else updated_node


def with_lines_around(
    module: cst.Module, statement: cst.BaseStatement, *, before: Sequence[str] = (), after: Sequence[str] = ()
) -> cst.Module:
    """The module with statements, given as source, put before and after one of its statements."""
    config = module.config_for_parsing
    first = [cst.parse_statement(source, config=config) for source in before]
    last = [cst.parse_statement(source, config=config) for source in after]
    if first and hasattr(statement, "leading_lines"):  # comments stay above what they are about
        first[0] = first[0].with_changes(leading_lines=statement.leading_lines)
        statement_now = statement.with_changes(leading_lines=())
    else:
        statement_now = statement
    return replaced(module, statement, cst.FlattenSentinel([*first, statement_now, *last]))


def name_of(call: cst.Call) -> str:
    """The dotted name that a call calls, or '' when it is not a name."""
    return dotted(call.func)


def dotted(node: cst.BaseExpression) -> str:
    """``a.b.c`` for names and attributes, '' for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr.value}" if base else ""
    return ""


def keyword(call: cst.Call, name: str) -> cst.Arg | None:
    """The argument that a call passes by this name."""
    return next((arg for arg in call.args if arg.keyword is not None and arg.keyword.value == name), None)


def with_keyword(call: cst.Call, name: str, value: str) -> cst.Call:
    """The call with a keyword argument set or added, in the manner in which its arguments are laid out."""
    expression = cst.parse_expression(value)
    present = keyword(call, name)
    if present is not None:
        return call.with_deep_changes(present, value=expression)
    plain = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    added = cst.Arg(expression, cst.Name(name), plain)
    if not call.args:
        return call.with_changes(args=[added])
    *rest, last = call.args
    between: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace(" ")
    if rest and isinstance(rest[0].comma, cst.Comma):
        between = rest[0].comma.whitespace_after
    elif isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace):
        between = call.whitespace_before_args
    end, comma = last.whitespace_after_arg, last.comma
    if isinstance(comma, cst.Comma):
        remark, comma = (
            _comment(comma.whitespace_after),
            comma.with_changes(whitespace_after=_uncommented(comma.whitespace_after)),
        )
    else:
        remark, end = _comment(end), _uncommented(end)
    between = _with_comment(_uncommented(between), remark)
    added = added.with_changes(comma=comma, whitespace_after_arg=end)
    last = last.with_changes(comma=cst.Comma(whitespace_after=between), whitespace_after_arg=cst.SimpleWhitespace(""))
    return call.with_changes(args=[*rest, last, added])


def _comment(space: cst.BaseParenthesizableWhitespace) -> cst.TrailingWhitespace | None:
    """The end of the line with its comment, where the space between two arguments begins with one."""
    if isinstance(space, cst.ParenthesizedWhitespace) and space.first_line.comment is not None:
        return space.first_line
    return None


def _uncommented(space: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    """The same space without its comments: they are about other arguments."""
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return space
    line = space.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
    return space.with_changes(first_line=line, empty_lines=[])


def _with_comment(
    space: cst.BaseParenthesizableWhitespace, line: cst.TrailingWhitespace | None
) -> cst.BaseParenthesizableWhitespace:
    """The space with a comment that belongs to the argument before it."""
    if line is None:
        return space
    if isinstance(space, cst.ParenthesizedWhitespace):
        return space.with_changes(first_line=line)
    return cst.ParenthesizedWhitespace(first_line=line, indent=True)


def without_keyword(call: cst.Call, name: str) -> cst.Call:
    """The call without a keyword argument."""
    kept = [arg for arg in call.args if not (arg.keyword is not None and arg.keyword.value == name)]
    if kept and len(kept) < len(call.args) and kept[-1] is not call.args[-1]:
        last = call.args[-1]
        kept[-1] = kept[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    return call.with_changes(args=kept)


def after_imports(module: cst.Module) -> int:
    """Index in the module's body after its last top-level import (the docstring and ``__future__`` included)."""
    index = 0
    for number, statement in enumerate(module.body):
        if _is_docstring(statement) and not number:
            index = 1
        if isinstance(statement, cst.SimpleStatementLine) and any(
            isinstance(one, (cst.Import, cst.ImportFrom)) for one in statement.body
        ):
            index = number + 1
    return index


def _is_docstring(statement: cst.CSTNode) -> bool:
    return (
        isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], cst.Expr)
        and isinstance(statement.body[0].value, (cst.SimpleString, cst.ConcatenatedString))
    )


def with_import(module: cst.Module, name: str) -> cst.Module:
    """The module with ``import name`` among its first imports, unless its top level has it."""
    for statement in module.body:
        if isinstance(statement, cst.SimpleStatementLine):
            for one in statement.body:
                if isinstance(one, cst.Import) and any(
                    alias.evaluated_name == name and alias.asname is None for alias in one.names
                ):
                    return module
    line = cst.parse_statement(f"import {name}\n", config=module.config_for_parsing)
    index = _first_import(module, name)
    body = list(module.body)
    if index < len(body) and body[index].leading_lines and not _comments(body[index]):  # type: ignore[union-attr]
        line = line.with_changes(leading_lines=body[index].leading_lines)  # type: ignore[union-attr]
        body[index] = body[index].with_changes(leading_lines=())
    return module.with_changes(body=[*body[:index], line, *body[index:]])


def _first_import(module: cst.Module, name: str) -> int:
    """Where ``import name`` sorts among the leading plain imports."""
    index = 0
    for number, statement in enumerate(module.body):
        if _is_docstring(statement) and not number:
            index = 1
            continue
        if not isinstance(statement, cst.SimpleStatementLine):
            break
        first = statement.body[0]
        if (isinstance(first, cst.ImportFrom) and dotted(first.module or cst.Name("")) == "__future__") or (
            isinstance(first, cst.Import) and first.names[0].evaluated_name < name
        ):
            index = number + 1
        else:
            break
    return index


def _comments(statement: cst.CSTNode) -> bool:
    return any(line.comment is not None for line in getattr(statement, "leading_lines", ()))


def clashing(module: cst.Module, names: Sequence[str]) -> str | None:
    """A name of these that the file binds at module level to something other than the module of that name."""
    todo: list[ast.AST] = [ast.parse(module.code)]
    while todo:
        for node in ast.iter_child_nodes(todo.pop()):
            bound: list[str] = []
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                bound = [node.name]
            else:
                todo.append(node)
            if isinstance(node, ast.ImportFrom):
                bound = [one.asname or one.name for one in node.names]
            elif isinstance(node, ast.Import):
                bound = [one.asname for one in node.names if one.asname and one.asname != one.name]
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound = [node.id]
            for name in bound:
                if name in names:
                    return name
    return None


def with_definition(module: cst.Module, source: str) -> cst.Module:
    """The module with a definition (a class, a function) put after its imports, two blank lines around it."""
    index = after_imports(module)
    # A constant that follows the imports stays with them when it is all the definition could need.
    statement = cst.parse_statement(source, config=module.config_for_parsing)
    empty = cst.EmptyLine(indent=False)
    statement = statement.with_changes(leading_lines=[empty, empty])
    body = list(module.body)
    if index < len(body):
        following = body[index]
        lines = list(getattr(following, "leading_lines", ()))
        blank = [line for line in lines if line.comment is None]
        if len(blank) < 2:
            body[index] = following.with_changes(leading_lines=[empty] * (2 - len(blank)) + lines)
    return module.with_changes(body=[*body[:index], statement, *body[index:]])


def code(module: cst.Module, node: cst.CSTNode) -> str:
    """A node's source."""
    return module.code_for_node(node).strip()
