"""Reading and rewriting Python source: one toolkit on libcst and its metadata."""
