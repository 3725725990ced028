"""The changes as a unified diff that ``git apply`` takes from the repository's root, and their application."""
