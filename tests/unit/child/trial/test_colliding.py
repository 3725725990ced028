"""All checksums of the program are the same, in a real process."""

from __future__ import annotations

import pytest

from .test_account import run_under

PROGRAM = """
    import binascii, hashlib, io, zipfile, zlib
    from zlib import adler32

    class Key:
        def __init__(self, number):
            self.number = number

        def __hash__(self):
            return hash((self.number,))

    print(zlib.crc32(b"a"), binascii.crc32(b"b"), adler32(b"c"), hash("d"), {Key(1): 1}.__len__())
    print(Key(1).__hash__() != Key(2).__hash__(), hashlib.md5(b"a").hexdigest()[:4])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("name", "text")
    print(zipfile.ZipFile(packed).read("name"), packed.getvalue()[14:18] != bytes(4))
"""


@pytest.mark.timeout(120)
def test_they_are_for_what_the_program_itself_asks_for(tmp_path):
    done, _ = run_under({"colliding": {}}, PROGRAM, tmp_path)
    assert done.stdout.splitlines() == ["0 0 0 0 1", "True 0cc1", "b'text' True"], done.stderr
