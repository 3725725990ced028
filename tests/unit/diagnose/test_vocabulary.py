"""What names tell: tables of those that real programs bear."""

from __future__ import annotations

import pytest
from factory import lib, std

from unstall.diagnose import vocabulary as v
from unstall.records.observations import Frame


@pytest.mark.parametrize(
    "name",
    [
        "log_metrics", "log_params", "log_summary", "Trainer.log", "plot_losses", "save_checkpoint", "TensorBoardLogger.write_row",
        "evaluate_everything", "on_train_batch_end", "ConfusionMeter.update", "compute_accuracy", "draw_boxes",
        "dump_state", "PrintCallback.__call__", "print_progress", "report",
        "RunJournal.add",
    ],
)  # fmt: skip
def test_names_that_say_logging_plotting_measuring_or_saving(name):
    assert v.names_callback(name)


@pytest.mark.parametrize(
    "name",
    [
        "forward", "preprocess", "normalize", "train_one_epoch", "login", "dialog_turn", "main",
        "Categorical.log_prob", "LinearChain.log_partition", "log_softmax", "log_sum_exp", "Flow.log_det_jacobian",
    ],
)  # fmt: skip
def test_names_that_say_none_of_it(name):
    assert not v.names_callback(name)


@pytest.mark.parametrize(
    "name",
    [
        "load_batch",
        "make_batches",
        "Photos.__getitem__",
        "read_rows",
        "tokenize",
        "augment",
        "collate",
        "Stream.__iter__",
    ],
)
def test_names_that_say_data(name):
    assert v.names_data(name)


@pytest.mark.parametrize("name", ["forward", "nms", "step", "main", "postprocess_boxes"])
def test_names_that_do_not_say_data(name):
    assert not v.names_data(name)


@pytest.mark.parametrize(
    "frame",
    [
        lib("matplotlib/figure.py", "savefig"),
        lib("torch/utils/tensorboard/writer.py", "add_histogram"),
        lib("sklearn/metrics/_ranking.py", "roc_auc_score"),
        lib("torchmetrics/metric.py", "update"),
        lib("wandb/sdk/wandb_run.py", "log"),
        lib("torch/serialization.py", "save"),
        std("logging/__init__.py", "emit"),
    ],
)
def test_libraries_that_serve_the_person(frame):
    assert v.is_callback_library([Frame("main", "/home/me/train.py", 1), frame])


@pytest.mark.parametrize("frame", [lib("torch/nn/modules/module.py", "_call_impl"), lib("sklearn/svm/_base.py", "fit")])
def test_libraries_that_do_not(frame):
    assert not v.is_callback_library([frame])


@pytest.mark.parametrize(
    "frame",
    [
        lib("litserve/loops/simple_loops.py", "run_single_loop"),
        lib("starlette/routing.py", "app"),
        lib("aiohttp/web_protocol.py", "start"),
        lib("grpc/_server.py", "_call_behavior"),
        std("http/server.py", "handle"),
        std("socketserver.py", "process_request"),
    ],
)
def test_libraries_that_serve_requests(frame):
    assert v.is_server([frame, Frame("predict", "/home/me/app.py", 1)])
    assert not v.is_server([lib("aiohttp/client.py", "get"), lib("grpc/_channel.py", "_blocking")])


@pytest.mark.parametrize(
    "frame",
    [
        lib("requests/sessions.py", "send"),
        lib("urllib3/connectionpool.py", "urlopen"),
        lib("botocore/httpsession.py", "send"),
        std("urllib/request.py", "urlopen"),
        std("http/client.py", "getresponse"),
        std("socket.py", "readinto"),
        std("ssl.py", "read"),
    ],
)
def test_libraries_that_talk_over_a_network(frame):
    assert v.is_network_library([frame])
    assert not v.is_network_library([lib("numpy/core/fromnumeric.py", "sum")])


def test_samplers_are_asked_by_torchs_loader():
    own = lib("pkg/samplers.py", "ByLength.__iter__")
    loading, fetching = (lib("torch/utils/data/dataloader.py", name) for name in ("_next_index", "_next_data"))
    assert v.draws_samples([loading, lib("torch/utils/data/sampler.py", "__iter__"), own])
    assert v.draws_samples([lib("torch/utils/data/dataloader.py", "_BaseDataLoaderIter.__init__"), own])
    begun = lib("torch/utils/data/dataloader.py", "DataLoader.__iter__")
    assert not v.draws_samples([lib("train.py", "main"), begun, lib("torch/utils/data/dataloader.py", "__init__")])
    assert not v.draws_samples([fetching, lib("pkg/data.py", "Rows.__getitem__")])
    assert not v.draws_samples([own])


@pytest.mark.parametrize(
    "call", ["print", "f.write", "writer.writerow", "json.dump", "plt.savefig", "os.fsync", "logger.info"]
)
def test_calls_that_write(call):
    assert v.calls_callback(["len", call])
    assert not v.calls_callback(["len", "rewrite_rules", "prints"])


@pytest.mark.parametrize(
    "call", ["open", "f.read", "path.read_bytes", "db.execute", "cursor.fetchall", "np.fromfile", "np.load", "os.stat"]
)
def test_calls_that_read_files_or_databases(call):
    assert v.calls_storage([call])
    assert not v.calls_storage(["spread", "opened", "executor.submit", "json.load", "up.load"])


@pytest.mark.parametrize(
    "frame", [lib("h5py/_hl/dataset.py", "__getitem__"), std("zipfile.py", "read"), std("pathlib.py", "read_bytes")]
)
def test_library_frames_that_read(frame):
    assert v.reads_storage(frame)
    assert not v.reads_storage(lib("PIL/Image.py", "convert"))


@pytest.mark.parametrize(
    "files, words, cause",
    [
        (["/x/site-packages/matplotlib/figure.py"], "save_checkpoint", "plotting"),
        (["/x/site-packages/sklearn/metrics/_ranking.py"], "", "metrics"),
        (["/x/site-packages/torch/serialization.py"], "log", "checkpoint"),
        (["/home/me/train.py"], "save_model", "checkpoint"),
        (["/home/me/train.py"], "update_accuracy", "metrics"),
        (["/home/me/train.py"], "draw_samples", "plotting"),
        (["/home/me/train.py"], "write_row", "logging"),
        ([], "", "logging"),
    ],
)
def test_the_cause_is_told_by_library_first_then_by_words(files, words, cause):
    assert v.callback_cause(files, words) == cause
