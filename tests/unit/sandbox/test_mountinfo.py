from hypothesis import given
from hypothesis import strategies as st

from unstall.sandbox.mountinfo import Mount, directly_below, inside, mount_of, parse, read_mounts


def test_a_line_is_read():
    line = "36 35 98:0 /mnt1 /a\\040b rw,nosuid master:1 - ext3 /dev/root ro,errors=continue,upperdir=/a\\054b"
    options = frozenset({"rw", "nosuid", "ro", "errors=continue", "upperdir=/a,b"})
    assert parse(line) == Mount("/a b", "ext3", options, "36", "98:0")
    assert parse(line).readonly


@given(st.text())
def test_any_other_line_is_passed_over_or_read(line):
    parsed = parse(line)
    assert parsed is None or isinstance(parsed.path, str)


def test_the_last_mount_at_a_path_is_the_one_seen(tmp_path):
    table = tmp_path / "mountinfo"
    table.write_text("2 1 0:1 / /b rw - tmpfs t rw\n1 1 0:1 / / rw - ext4 d rw\n3 1 0:1 / /b rw - xfs d rw\nnonsense\n")
    assert [(found.path, found.kind) for found in read_mounts(table)] == [("/", "ext4"), ("/b", "xfs")]
    assert read_mounts(tmp_path / "none") == []


def test_the_mount_that_holds_a_path():
    known = [Mount("/"), Mount("/home"), Mount("/home/me/data")]
    assert mount_of("/home/me", known).path == "/home"
    assert mount_of("/homer", known).path == "/"


def test_mounts_below_a_folder():
    known = [Mount("/"), Mount("/home"), Mount("/home/me"), Mount("/homes")]
    assert directly_below("/", known) == [Mount("/home"), Mount("/homes")]
    assert directly_below("/home", known) == [Mount("/home/me")]
    assert inside("/home", "/home") and inside("/home/me", "/home") and not inside("/homes", "/home")
