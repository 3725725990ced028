"""A contract for import-linter that no built-in one can express; the contracts themselves are in pyproject.toml."""

from __future__ import annotations

import sys
from typing import Any

from importlinter import Contract, ContractCheck, fields, output
from importlinter.application import contract_utils


class StandardLibraryOnly(Contract):
    """Packages that import the standard library only, by whatever chain of modules of ours."""

    type_name = "standard_library_only"

    source_modules = fields.ListField(subfield=fields.ModuleField())
    ignore_imports = fields.SetField(subfield=fields.ImportExpressionField(), required=False)

    def check(self, graph: Any, verbose: bool) -> ContractCheck:
        """Look for a chain of imports from each of the packages to a module that is neither ours nor Python's."""
        warnings = contract_utils.remove_ignored_imports(
            graph=graph, ignore_imports=self.ignore_imports, unmatched_alerting=contract_utils.AlertLevel.ERROR
        )
        ours = self.session_options["root_packages"]
        allowed = {*sys.stdlib_module_names, *ours}
        chains = []
        for source in self.source_modules:
            for name in sorted(graph.find_upstream_modules(source.name, as_package=True)):
                if name.split(".")[0] not in allowed:
                    chains.append(graph.find_shortest_chain(source.name, name, as_packages=True))
        return ContractCheck(kept=not chains, warnings=warnings, metadata={"chains": chains})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print each chain on a line."""
        for chain in check.metadata["chains"]:
            output.print_error(" -> ".join(chain))
        output.new_line()
