"""Code that ends up in patches: real modules, which :func:`unstall.optimize.source.edit.with_runtime` copies from.

Each uses torch and the standard library only. What it needs in the patched file is written ``import name``; ``from``
imports are of types, which are left out of the copy.
"""
