"""What the commands do, one file a command: everything between the parsed options and the answer that is shown.

Nothing here prints or parses; problems that do not stop a command are returned as lines.
"""
