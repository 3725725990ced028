"""One source file, parsed, with what libcst's metadata knows of it: positions, parents, scopes, qualified names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import TypeVar

import libcst as cst
from libcst.metadata import (
    BaseAssignment,
    CodeRange,
    ExpressionContext,
    ExpressionContextProvider,
    ImportAssignment,
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    QualifiedNameSource,
    Scope,
    ScopeProvider,
)

from unstall.optimize.source.places import CallSite

N = TypeVar("N", bound=cst.CSTNode)
Definition = TypeVar("Definition", cst.FunctionDef, cst.ClassDef)


class SourceModule:
    """A parsed file. Nothing of it changes: an edit makes another tree, see :mod:`unstall.optimize.source.edit`."""

    def __init__(self, tree: cst.Module):
        self._wrapper = MetadataWrapper(tree, unsafe_skip_copy=True)
        self.tree = self._wrapper.module
        self.text = self.tree.code

    # ------------------------------------------------------------------ metadata

    @cached_property
    def _positions(self) -> Mapping[cst.CSTNode, CodeRange]:
        return self._wrapper.resolve(PositionProvider)

    @cached_property
    def _parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        return self._wrapper.resolve(ParentNodeProvider)

    @cached_property
    def _scopes(self) -> Mapping[cst.CSTNode, Scope | None]:
        return self._wrapper.resolve(ScopeProvider)

    @cached_property
    def _contexts(self) -> Mapping[cst.CSTNode, ExpressionContext | None]:
        return self._wrapper.resolve(ExpressionContextProvider)

    @cached_property
    def _collected(self) -> _Collector:
        collector = _Collector()
        self.tree.visit(collector)
        return collector

    @property
    def _nodes(self) -> list[cst.CSTNode]:
        return self._collected.nodes

    @cached_property
    def _lines(self) -> list[str]:
        return re.split(r"\r\n|\r|\n", self.text)  # as Python counts lines: a form feed ends none

    def first_line(self, node: cst.CSTNode) -> int:
        """The line on which a node begins; a function's decorators are not part of it.

        A node that was put together from nodes of this module is where the first of them is.
        """
        known = node if node in self._positions else next(inner for inner in walk(node) if inner in self._positions)
        return self._positions[known].start.line

    def last_line(self, node: cst.CSTNode) -> int:
        """The line on which a node ends."""
        return self._positions[node].end.line

    def is_on(self, node: cst.CSTNode, line: int) -> bool:
        """Whether a node stands on a line, among others."""
        return node in self._positions and self.first_line(node) <= line <= self.last_line(node)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that a node stands in; None for the module."""
        return self._parents.get(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around a node, innermost first."""
        while (above := self._parents.get(node)) is not None:
            yield above
            node = above

    def scope(self, node: cst.CSTNode) -> Scope:
        """The scope that a node is in."""
        for inner in (node, *self.ancestors(node)):
            scope = self._scopes.get(inner)
            if scope is not None:
                return scope
        return self.global_scope

    @cached_property
    def global_scope(self) -> Scope:
        """The module's own scope."""
        scope = self._scopes[self.tree]
        assert scope is not None
        return scope

    def context(self, node: cst.CSTNode) -> ExpressionContext | None:
        """Whether a name, an attribute or an item is read, set or deleted; None for other nodes."""
        above = self.parent(node)
        is_label = isinstance(above, cst.Arg) and above.keyword is node  # which libcst takes for a name that is read
        return None if is_label else self._contexts.get(node)

    def inside(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """A node and all in it, in the order of the source."""
        first, end = self._collected.extent[node]
        return self._nodes[first:end]

    def lines(self, *nodes: cst.CSTNode) -> set[int]:
        """The lines that these nodes stand on."""
        return {line for node in nodes for line in range(self.first_line(node), self.last_line(node) + 1)}

    # ------------------------------------------------------------------ names

    def name(self, node: cst.CSTNode) -> str:
        """What a name, an attribute or a call's function is called, imports resolved: ``torch.nn.functional.softmax``.

        A builtin has ``builtins.`` before it. What is bound in the file itself is as it is spelled; '' where it is no
        dotted name.
        """
        if isinstance(node, cst.Call):
            node = node.func
        spelled = dotted(node)
        if not spelled:
            return ""
        names = self.scope(node).get_qualified_names_for(node)  # type: ignore[arg-type]
        resolved = [qualified.name for qualified in names if qualified.source is not QualifiedNameSource.LOCAL]
        return resolved[0] if len(resolved) == len(names) == 1 else spelled

    @cached_property
    def imports(self) -> dict[str, str]:
        """What the imports of the module's top level bind: name as spelled → qualified name."""
        qualified_names: dict[str, str] = {}
        for assignment in self.global_scope.assignments:
            if isinstance(assignment, ImportAssignment) and self.parent(self.statement(assignment.node)) is self.tree:
                for qualified in assignment.get_qualified_names_for(assignment.name):
                    qualified_names[assignment.name] = qualified.name
        return qualified_names

    def resolve(self, spelled: str) -> str:
        """A dotted name with the imports of the module's top level resolved: ``F.softmax`` is torch's."""
        head, dot, rest = spelled.partition(".")
        return self.imports.get(head, head) + dot + rest

    def bindings(self, name: cst.Name) -> list[BaseAssignment]:
        """What may bind a name where it stands."""
        return list(self.scope(name)[name.value])

    def uses(self, name: str, within: cst.CSTNode | None = None) -> list[cst.Name]:
        """Where a name stands for a variable: not behind a dot, and not before the value of an argument.

        In the whole module, or ``within`` a node of it.
        """
        nodes = self._nodes if within is None else self.inside(within)
        return [
            node for node in nodes
            if isinstance(node, cst.Name) and node.value == name and self.context(node) is not None
        ]  # fmt: skip

    def alias(self, name: str) -> str | None:
        """How the module can spell a qualified name, by the imports of its top level; None where it has no way to.

        ``numpy`` may be spelled ``xp``, and ``torch.nn.functional``, after ``from torch import nn``, ``nn.functional``.
        """
        spellings = [
            spelled + name[len(qualified) :]
            for spelled, qualified in self.imports.items()
            if name == qualified or name.startswith(qualified + ".")
        ]
        return min(spellings, key=len, default=None)

    # ------------------------------------------------------------------ finding nodes

    def all(self, *kinds: type[N]) -> Iterator[N]:
        """All nodes of these kinds, in the order of the source."""
        return (node for node in self._nodes if isinstance(node, kinds))

    def top_level(self, kind: type[Definition], name: str) -> Definition | None:
        """The function or class of a name that the module itself defines."""
        return next(
            (
                definition
                for definition in self.tree.body
                if isinstance(definition, kind) and definition.name.value == name
            ),
            None,
        )

    def full_name(self, part: cst.FunctionDef | cst.ClassDef | cst.Module) -> str:
        """``Net.forward``: the name of a function or class after those around it; ``<module>`` for the module."""
        around = (part, *self.ancestors(part))
        names = [node.name.value for node in around if isinstance(node, (cst.FunctionDef, cst.ClassDef))]
        return ".".join(reversed(names)) or "<module>"

    def enclosing(self, node: cst.CSTNode, *kinds: type[N]) -> N | None:
        """The innermost node of these kinds around a node."""
        return next((ancestor for ancestor in self.ancestors(node) if isinstance(ancestor, kinds)), None)

    def innermost(self, line: int, *kinds: type[N]) -> N | None:
        """The innermost node of these kinds that stands on a line."""
        return max((inner for inner in self.all(*kinds) if self.is_on(inner, line)), key=self.first_line, default=None)

    def statement(self, node: cst.CSTNode) -> cst.SimpleStatementLine | cst.BaseCompoundStatement:
        """The innermost statement around a node, or the node itself."""
        for ancestor in (node, *self.ancestors(node)):
            if isinstance(ancestor, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                return ancestor
        raise ValueError("a module is in no statement")

    def call(self, site: CallSite, name: str = "") -> cst.Call | None:
        """The call that the running program was in; without columns, the only one on the line whose name ends so."""
        if site.span is not None:
            line, end_line, column, end_column = site.span
            span = (line, self._characters(line, column), end_line, self._characters(end_line, end_column))
            for call in self.all(cst.Call):
                if self._span(call) == span:
                    return call
        on_line = [
            inner for inner in self.all(cst.Call) if self.is_on(inner, site.line) and self.name(inner).endswith(name)
        ]
        return on_line[0] if len(on_line) == 1 else None

    def function(self, name: str, line: int) -> cst.FunctionDef | None:
        """The function of a name that a line is in; a line of its decorators counts."""
        named = [
            inner for inner in self.all(cst.FunctionDef)
            if inner.name.value == name and self._decorated_line(inner) <= line <= self.last_line(inner)
        ]  # fmt: skip
        return max(named, key=self._decorated_line, default=None)

    def _decorated_line(self, function: cst.FunctionDef) -> int:
        return min(self.first_line(node) for node in (function, *function.decorators))

    def code(self, node: cst.CSTNode) -> str:
        """A node's source, without the spaces and comments around it."""
        return self.tree.code_for_node(node).strip()

    def _span(self, node: cst.CSTNode) -> tuple[int, int, int, int]:
        """First line, first column, last line, column after the last; columns from 0 in characters."""
        place = self._positions[node]
        return place.start.line, place.start.column, place.end.line, place.end.column

    def _characters(self, line: int, column: int) -> int:
        """A column in bytes of UTF-8, as the interpreter counts, in characters."""
        if not 0 < line <= len(self._lines):
            return column
        return len(self._lines[line - 1].encode()[:column].decode(errors="replace"))


class _Collector(cst.CSTVisitor):
    """Every node, in the order of the source."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[cst.CSTNode] = []
        self.extent: dict[cst.CSTNode, tuple[int, int]] = {}
        """For each node, its index, and the index after the last node in it."""

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.extent[node] = len(self.nodes), 0
        self.nodes.append(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self.extent[original_node] = self.extent[original_node][0], len(self.nodes)


def walk(node: cst.CSTNode) -> list[cst.CSTNode]:
    """A node and all in it, in the order of the source."""
    collector = _Collector()
    node.visit(collector)
    return collector.nodes


def dotted(node: cst.CSTNode) -> str:
    """``a.b.c`` for names and attributes as they are spelled, '' for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr.value}" if base else ""
    return ""


def method_name(call: cst.Call) -> str:
    """The name of the method that is called, of whatever object; '' where it is a function."""
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else ""


def number_of(node: cst.CSTNode) -> int | float | None:
    """The number that a literal with or without a sign stands for; None for anything else."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        number = number_of(node.expression)
        return None if number is None else -number
    return node.evaluated_value if isinstance(node, (cst.Integer, cst.Float)) else None


def is_reference(node: cst.CSTNode, *keys: type[cst.CSTNode]) -> bool:
    """Whether it is a name, an attribute, or an item of one by a constant of these kinds: asking again does nothing."""
    if isinstance(node, cst.Subscript):
        element = node.slice[0].slice if len(node.slice) == 1 else None
        return isinstance(element, cst.Index) and isinstance(element.value, keys) and bool(dotted(node.value))
    return bool(dotted(node))


def root(node: cst.CSTNode) -> str:
    """The name that attributes, items and calls hang on; '' where it is no name."""
    while isinstance(node, (cst.Attribute, cst.Subscript, cst.Call)):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node.value if isinstance(node, cst.Name) else ""


@lru_cache(maxsize=32)
def parsed(content: bytes) -> SourceModule:
    """A file's content, parsed. Raises cst.ParserSyntaxError; UnicodeDecodeError or LookupError for its encoding."""
    return SourceModule(cst.parse_module(content))
