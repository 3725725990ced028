"""One report for several machines: what each leaves for the others, where, and how it is put together."""
