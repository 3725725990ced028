"""What a run has written."""

from __future__ import annotations

import py_compile

from unstall.prove.left_behind.effects import Content, written


def test_what_a_layer_holds_is_what_was_written_and_is_new(tmp_path):
    machine, upper = tmp_path / "machine", tmp_path / "upper"
    for folder in (machine, upper, upper / "__pycache__"):
        folder.mkdir()
    (machine / "same.txt").write_text("1")
    (upper / "same.txt").write_text("1")
    (upper / "new.bin").write_bytes(b"\0" * (5 << 20))
    (upper / "train.py").write_text("put there")
    (upper / "__pycache__" / "train.cpython-311.pyc").write_bytes(b"\0")
    found = dict(written([(str(machine), upper)], {machine / "train.py": b"put there"}))
    assert list(found) == [str(machine / "new.bin")]
    content = found[str(machine / "new.bin")]
    assert (content.size, content.text, content.digest) == (5 << 20, None, Content.of(b"\0" * (5 << 20)).digest)


def test_an_output_that_a_patch_brings_along_counts_as_written_by_the_original_alone(tmp_path):
    machine, upper = tmp_path / "machine", tmp_path / "upper"
    machine.mkdir()
    upper.mkdir()
    (upper / "model.pt").write_bytes(b"\0trained")
    brought = {machine / "model.pt": b"\0trained"}
    assert list(dict(written([(str(machine), upper)], {}))) == [str(machine / "model.pt")]
    assert not dict(written([(str(machine), upper)], brought))
    (upper / "model.pt").write_bytes(b"\0other")
    assert dict(written([(str(machine), upper)], brought))


def test_only_compiled_modules_that_are_there_are_left_out_of_pycache(tmp_path):
    machine, upper = tmp_path / "machine", tmp_path / "upper"
    for folder in (machine, upper / "__pycache__"):
        folder.mkdir(parents=True)
    (machine / "data.py").touch()
    pythons_own = ("data.cpython-311.pyc", "data.cpython-311.opt-1.pyc", "data.pypy310.pyc")
    others = ("corpus.cpython-311.pyc", "corpus.pkl", "data.rows.pyc", "data.pyc")
    for name in (*pythons_own, *others):
        (upper / "__pycache__" / name).write_bytes(b"\0")
    found = {path.rpartition("/")[2] for path in dict(written([(str(machine), upper)], {}))}
    assert found == {*others}


def test_a_module_that_is_compiled_never_to_be_looked_at_again_is_written(tmp_path):
    machine, cache = tmp_path / "machine", tmp_path / "upper" / "__pycache__"
    machine.mkdir()
    cache.mkdir(parents=True)
    (machine / "data.py").write_text("x = 1\n")
    for number, mode in enumerate(py_compile.PycInvalidationMode):
        compiled = cache / f"data.cpython-{number}.pyc"
        py_compile.compile(str(machine / "data.py"), str(compiled), doraise=True, invalidation_mode=mode)
    found = [path.rpartition("/")[2] for path in dict(written([(str(machine), cache.parent)], {}))]
    unchecked = [*py_compile.PycInvalidationMode].index(py_compile.PycInvalidationMode.UNCHECKED_HASH)
    assert found == [f"data.cpython-{unchecked}.pyc"]
