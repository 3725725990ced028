import os

import pytest

from unstall.sandbox import mountinfo, proof
from unstall.sandbox.mountinfo import Mount

_LAYER = "/tmp/home/layer-1"
_KNOWN = {"8:1", "0:30"}


def mount(kind, *options, path="/home/me", device="0:99"):
    return Mount(path, kind, frozenset(options or ("rw",)), "7", device)


@pytest.mark.parametrize(
    "harmless",
    [
        mount("ext4", "ro", device="8:1"),
        mount("proc", path="/proc"),
        mount("tmpfs"),
        mount("overlay", "rw", f"upperdir={_LAYER}/upper3"),
        mount("ext4", path="/work/kept/below", device="8:1"),
    ],
    ids=lambda found: f"{found.kind} {found.path}",
)
def test_what_changes_nobodys_files(harmless):
    assert proof.is_safe(harmless, _KNOWN, _LAYER, ["/work/kept"])


@pytest.mark.parametrize(
    "harmful",
    [
        mount("ext4", device="8:1"),
        mount("nfs4"),
        mount("tmpfs", device="0:30"),
        mount("fuse.portal"),
        mount("autofs"),
        mount("overlay", "rw", f"upperdir={_LAYER}/upper3", device="0:30"),
        mount("overlay", "rw", "upperdir=/var/lib/containers/upper"),
        mount("overlay", "rw", f"upperdir={_LAYER}-of-another/upper3"),
        mount("overlay", "rw"),
        mount("ext4", path="/work/kept-not", device="8:1"),
    ],
    ids=lambda found: f"{found.kind} {found.path} {sorted(found.options)}",
)
def test_what_would_be_written_for_real(harmful):
    assert not proof.is_safe(harmful, _KNOWN, _LAYER, ["/work/kept"])


def test_a_layer_whose_path_the_kernel_shows_escaped():
    shown = mount("overlay", "rw", "upperdir=/tmp/a\\:b/layer-1/upper3")
    assert proof.is_safe(shown, _KNOWN, "/tmp/a:b/layer-1", [])


@pytest.mark.skipif(not os.path.exists("/proc/self/mountinfo"), reason="no mountinfo here")
def test_a_process_outside_is_not_safe():
    """The machine's own mounts are no sandbox, unless this one is read-only throughout."""
    if all(proof.is_safe(found, ["0:0"], _LAYER, []) for found in mountinfo.read_all()):
        pytest.skip("nothing can be written to here")
    known = {found.device for found in mountinfo.read_all()}
    with pytest.raises(OSError, match=r"^/.* \(.+\) would be written to for real$"):
        proof.check_mounts(known, _LAYER, [])
    proof.check_mounts(known, _LAYER, ["/"])


def test_probes_are_written_where_they_can_be(tmp_path):
    names = ("open", "written for real", "mounted", "mounted read-only", "kernel")
    for name in names:
        (tmp_path / name).mkdir()
    known, real, mounted, readonly, kernel = (str(tmp_path / name) for name in names)
    machine = [mount("ext4", path=mounted), mount("ext4", "ro", path=readonly), mount("cgroup2", path=kernel)]
    assert proof.write_probes("probe", [known, real, f"{known}/missing"], [real], machine) == [known, mounted]
    assert sorted(path.parent.name for path in tmp_path.rglob("probe")) == ["mounted", "open"]
