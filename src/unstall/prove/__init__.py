"""``unstall prove``: is a change faster, and the same? Judged from outside of the program that is changed."""
