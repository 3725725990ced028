"""What the main loop's loader costs, with and without workers."""

from __future__ import annotations

import pytest
from spanfactory import Recording, train, train_step

from unstall.benchmark import loader
from unstall.benchmark.steps import find_loop
from unstall.child.layout import ERROR, NETWORK

LOADER = 500  # address of the training loader


def config(r, address=LOADER, **facts):
    values = {"num_workers": 0, "batch_size": 16, "prefetch_factor": None, "dataset": "Photos", "collate": "default"}
    r.emit_fact("loader", id=address, **{**values, **facts})


def measure(main, *others):
    process = main.process()
    return loader.measure(process, [process, *(other.process() for other in others)], find_loop(process))


def in_process(steps, **facts):
    """A loop whose batches are made by the main process."""
    r = Recording()
    config(r, **facts)
    r.do("~data.iter", 0.001, arg=LOADER)
    for _ in range(steps):
        with r.span("~data.next"), r.span("~data.fetch", cpu=0.03, delay=0.01):
            r.spend(0.06)
            r.do("~data.collate", 0.04)
        r.do("~forward", 0.02)
        r.do("~backward", 0.03)
        r.do("~optimizer", 0.01)
    return r


def test_a_loop_without_a_loader_has_none():
    r = Recording()
    train(r, 5)
    assert measure(r) is None


def test_batches_made_by_the_main_process_are_measured_there():
    found = measure(in_process(6, pin_memory=True, iterable=True))
    assert (found.workers, found.batch_size, found.dataset, found.collate) == (0, 16, "Photos", "default")
    assert found.pin_memory and found.iterable and not found.persistent_workers
    assert found.batches_per_step == pytest.approx(1.0, abs=0.2)
    assert found.service_s == pytest.approx(0.10)
    assert found.collate_s == pytest.approx(0.04)
    assert found.service_cpu_s == pytest.approx(0.03)
    assert found.service_blocked_s == pytest.approx(0.06)
    assert found.service_network_s == found.network_bytes == 0


def with_workers(*, first_wait=0.0, epochs=1, persistent=False):
    """A loop whose batches come from two workers."""
    main = Recording(pid=100)
    config(main, num_workers=2, prefetch_factor=2, persistent_workers=persistent)
    workers = [Recording(pid=101, parent=100), Recording(pid=102, parent=100)]
    stranger = Recording(pid=900, parent=1)
    for _ in range(epochs):
        main.do("~data.iter", 0.2, arg=LOADER)
        for index in range(10):
            with main.span("~data.next"):
                main.spend(0.01 + (first_wait if index == 0 else 0))
            main.do("~forward", 0.02)
            main.do("~backward", 0.03)
            main.do("~optimizer", 0.01)
    for worker in [*workers, stranger]:
        worker.spend(0.3)
        for _ in range(5):
            with worker.span("~data.fetch", cpu=0.08):
                worker.spend(0.05)
                worker.do("~net.recv", 0.04, flags=NETWORK, arg=2000)
                worker.do("~data.collate", 0.01)
    return measure(main, *workers, stranger)


def test_batches_made_by_workers_are_measured_in_them():
    found = with_workers()
    assert found.workers == 2
    assert found.service_s == pytest.approx(0.10)
    assert found.service_cpu_s == pytest.approx(0.08)
    assert found.collate_s == pytest.approx(0.01)
    assert found.service_network_s == pytest.approx(0.04)
    assert found.network_bytes == pytest.approx(2000)
    assert found.batches_per_step == pytest.approx(1.0, abs=0.2)


def test_opening_an_epoch_costs_its_call_and_the_wait_for_the_first_batch():
    found = with_workers(first_wait=0.5, epochs=3)
    # The first epoch is opened before the first step.
    assert found.epochs == 2
    assert found.start_s * 29 == pytest.approx(2 * (0.2 + 0.5), rel=0.1)


def test_the_end_of_an_epoch_is_no_batch():
    r = in_process(6)
    r.do("~data.next", 0.001, flags=ERROR)
    r.do("~forward", 0.02)
    r.do("~backward", 0.03)
    r.do("~optimizer", 0.01)
    assert measure(r).batches_per_step <= 1.0


def test_the_training_loader_is_told_from_the_validations():
    r = Recording()
    config(r, LOADER, dataset="Train", batch_size=16)
    config(r, LOADER + 1, dataset="Validation", batch_size=64)
    for _ in range(4):
        r.do("~data.iter", 0.001, arg=LOADER)
        for _ in range(6):
            train_step(r)
        r.do("~data.iter", 0.001, arg=LOADER + 1)
        for _ in range(2):
            r.do("~data.next", 0.01)
            r.do("~forward", 0.02, flags=64)
    assert measure(r).dataset == "Train"


@pytest.mark.parametrize("addresses", [(901, 902, 902), (901, 902, 901)], ids=["of their own", "used again"])
def test_a_loader_that_is_opened_first_for_one_batch_does_not_feed_the_loop(addresses):
    """A batch to look at, or a check before training; and a validation in the middle of an epoch."""
    look, train_, check = addresses
    r = Recording()
    config(r, LOADER + 1, dataset="Validation", batch_size=64)
    config(r, LOADER, dataset="Train", batch_size=16)
    r.do("~data.iter", 0.001, arg=LOADER + 1)
    r.do("~data.next", 0.01, arg=look)
    r.do("~data.iter", 0.001, arg=LOADER)
    for step in range(20):
        r.do("~data.next", 0.01, arg=train_)
        r.do("~forward", 0.02)
        r.do("~backward", 0.03)
        r.do("~optimizer", 0.01)
        if step == 9 and check != train_:
            r.do("~data.iter", 0.001, arg=LOADER + 1)
            r.do("~data.next", 0.01, arg=check)
    assert (measure(r).dataset, measure(r).batch_size) == ("Train", 16)


def test_accumulation_takes_several_batches_a_step():
    r = Recording()
    config(r)
    r.do("~data.iter", 0.001, arg=LOADER)
    for _ in range(10):
        train_step(r, batches=4)
    assert measure(r).batches_per_step == pytest.approx(4, rel=0.1)
