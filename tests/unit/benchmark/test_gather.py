"""Parts of several machines: written, read back as strangers' files, clocks put on one, and merged."""

import gzip
import os

import msgspec
import numpy as np
import pytest
from factory import measurement
from gathercase import Job, exchanges
from hypothesis import given, settings
from hypothesis import strategies as st

from unstall.benchmark.gather import clocks, parts
from unstall.benchmark.gather.merge import merge
from unstall.benchmark.gather.store import FolderStore, MemoryStore, StoreError, open_store


@pytest.fixture(params=["folder", "fsspec"])
def store(request, tmp_path):
    if request.param == "fsspec":
        pytest.importorskip("fsspec")
        return open_store(f"file://{tmp_path}/shared")
    return FolderStore(tmp_path / "shared")


def own(job):
    return measurement({"forward": 0.05, "backward": 0.15}, world_size=job.world_size)


def test_a_part_comes_back_as_it_was(store):
    job = Job()
    part = job.part(1)
    name = parts.publish(store, part, job.stacks(1), "0123abcd")
    assert parts.names(store, "job", None) == [name]
    assert msgspec.msgpack.encode(parts.read(store, "job", name)) == msgspec.msgpack.encode(part)
    assert parts.read_stacks(store, "job", name) == job.stacks(1)


def test_what_came_another_way_is_kept_for_this_process():
    store, job = MemoryStore(), Job()
    names = [parts.publish(store, job.part(number), job.stacks(number), f"{number:08x}") for number in (0, 1)]
    store.write("other/report.json", b"{}")
    assert parts.names(store, "job", since=5.0) == sorted(names)
    assert parts.read_stacks(store, "job", names[1]) == job.stacks(1)
    store.remove(f"job/{names[0]}")
    assert parts.names(store, "job", None) == [names[1]]
    for name, most in ((names[0], 1 << 20), (names[1], 10)):
        with pytest.raises(StoreError):
            store.read(f"job/{name}", most)


def test_parts_from_before_the_run_began_are_another_runs(store):
    job = Job()
    name = parts.publish(store, job.part(0), [], "0123abcd")
    (modified,) = (file.modified for file in store.files("job") if file.name == name)
    assert parts.names(store, "job", modified + 1) == []
    assert parts.names(store, "job", modified - 1) == [name]


def put(folder, data, name="0000000-node-0123abcd.part"):
    (folder / "job").mkdir(exist_ok=True)
    (folder / "job" / name).write_bytes(data)
    return name


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not packed",
        gzip.compress(b"\x93"),
        gzip.compress(msgspec.msgpack.encode({"job": "job"})),
        gzip.compress(msgspec.msgpack.encode(Job().part(0)))[:-9],
        gzip.compress(bytes(parts.MOST_BYTES + 10)),
        gzip.compress(msgspec.msgpack.encode(Job().part(0, version=99))),
    ],
    ids=["empty", "text", "cut off inside", "fields missing", "half written", "bomb", "newer"],
)
def test_what_is_no_part_is_one_line(tmp_path, data):
    name = put(tmp_path, data)
    with pytest.raises(StoreError) as error:
        parts.read(FolderStore(tmp_path), "job", name)
    assert "\n" not in str(error.value)


@given(st.binary(max_size=400))
@settings(max_examples=200)
def test_no_bytes_break_the_reader(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("parts")
    name = put(folder, gzip.compress(data))
    with pytest.raises(StoreError):
        parts.read(FolderStore(folder), "job", name)


def test_links_and_pipes_are_neither_followed_nor_waited_for(tmp_path):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "0000000-a-0123abcd.part").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "job" / "0000001-b-0123abcd.part")
    store = FolderStore(tmp_path)
    assert parts.names(store, "job", None) == []
    for name in os.listdir(tmp_path / "job"):
        with pytest.raises(StoreError):
            parts.read(store, "job", name)


@pytest.mark.parametrize(
    "changes",
    [
        {"ranks": []},
        {"world_size": 1},
        {"ranks": [Job().rank(0), Job().rank(0)]},
        {"world_size": 1 << 30},
    ],
)
def test_ranks_that_cannot_be_are_no_part(changes):
    with pytest.raises(ValueError):
        Job().part(0, **changes)


def test_a_folder_that_takes_no_file_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write"):
        FolderStore(tmp_path / "file").write("job/part", b"")


@pytest.mark.parametrize("offset, drift", [(0.0, 0.0), (50_000.0, 0.0), (-9_000.0, 5e-5), (3.0, -1e-4)])
def test_clocks_hours_apart_are_put_on_one(offset, drift):
    job = Job(steps=3000, offsets={1: (offset, drift)})
    kind, clock = clocks.between(job.rank(0), job.rank(2))
    assert kind == "backward"
    ends = job.rank(2).exchanges[0].ends
    reference = job.rank(0).exchanges[0].ends
    assert abs(clock.aligned(ends) - reference).max() < 0.003
    middle = offset + drift * (job.ends[-1] - job.ends[0]) / 2
    assert clock.offset_s == pytest.approx(middle, abs=0.001)
    assert clock.drift == pytest.approx(drift, abs=2e-6)
    assert clock.error_s < 0.001


@pytest.mark.parametrize("drift", [0.0, 5e-5])
def test_a_rank_that_wakes_up_late_moves_the_clock_of_those_that_it_waits_for_no_further_than_causes_allow(drift):
    random, job = np.random.default_rng(3), Job(steps=2000, offsets={1: (4_000.0, drift)})
    together = job.ends
    # The reference waits for the other for 50 ms, and for its core 1.4 ms in the median once the call is over.
    woken = together + 0.0001 + random.exponential(0.002, len(together))
    waits = msgspec.structs.replace(job.rank(0), exchanges=[exchanges("backward", together - 0.05, woken)])
    last = exchanges("backward", job.on_clock(1, together - 0.0002), job.on_clock(1, together))
    _, clock = clocks.between(waits, msgspec.structs.replace(job.rank(2), exchanges=[last]))
    middle = 4_000.0 + drift * (together[-1] - together[0]) / 2
    assert clock.offset_s == pytest.approx(middle, abs=0.0007)
    assert clock.drift == pytest.approx(drift, abs=2e-6)


@given(st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 2), min_size=5, max_size=40))
def test_no_series_of_calls_breaks_the_clocks(calls):
    starts, ends = (np.array(side) for side in zip(*calls))
    own = msgspec.structs.replace(Job().rank(0), exchanges=[exchanges("backward", starts, ends)])
    _, clock = clocks.between(own, own)
    assert np.isfinite(clock.ahead).all()


def test_ranks_that_made_different_numbers_of_calls_have_some_in_common():
    job = Job(steps=1200, offsets={1: (70.0, 0.0)}, ended={2: 500})
    first, second = job.rank(0), job.rank(2)
    assert first.exchanges[0].stride != second.exchanges[0].stride
    assert clocks.between(first, second)[1].offset_s == pytest.approx(70.0, abs=0.001)


def test_without_calls_in_common_no_clock_is_known():
    job = Job()
    other = msgspec.structs.replace(job.rank(2), exchanges=[exchanges("all_gather", job.ends, job.ends)])
    assert clocks.between(job.rank(0), other) is None


def test_the_ranks_of_all_machines_are_merged():
    job = Job(nodes=3, late={4: 0.1}, offsets={2: (5000.0, 0.0)})
    merged = merge(own(job), [job.part(0), job.part(2)])
    ranks = merged.measurement.ranks
    assert [rank.rank for rank in ranks] == [0, 1, 4, 5]
    assert list(merged.measurement.unseen_ranks) == [2, 3]
    assert len({rank.pid for rank in ranks}) == 4  # though both machines have the same process ids
    assert merged.of_rank(4) == 1
    last = {rank.rank: rank.arrives_last for rank in ranks}
    assert last[4] > 0.95 and sum(last.values()) == pytest.approx(1)
    first, second = merged.measurement.nodes
    assert (first.host, first.clock_offset_s) == ("node0", 0.0)
    assert second.clock_offset_s == pytest.approx(5000, abs=0.001)


def test_stacks_stay_with_their_rank():
    job = Job(late={3: 0.1})
    merged = merge(own(job), [job.part(0), job.part(1)])
    samples = merged.with_stacks({1: job.stacks(1)}).samples
    late = next(rank for rank in merged.measurement.ranks if rank.rank == 3)
    assert [sample.frames[-1].function for sample in samples if sample.pid == late.pid] == ["fetch_slowly"]
