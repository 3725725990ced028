from pathlib import Path

from unstall.sandbox.trackers import offline


def test_trackers_are_offline():
    changes = offline({"WANDB_MODE": "online"}, Path("/project"))
    assert changes["WANDB_MODE"] == "offline"
    assert changes["CLEARML_OFFLINE_MODE"] == "1"
    assert "MLFLOW_TRACKING_URI" not in changes


def test_what_is_off_already_stays_off():
    assert "WANDB_MODE" not in offline({"WANDB_MODE": "disabled"}, Path("/project"))


def test_a_tracking_server_becomes_files():
    changes = offline({"MLFLOW_TRACKING_URI": "https://mlflow.example"}, Path("/project"))
    assert changes["MLFLOW_TRACKING_URI"] == "file:///project/mlruns"
    assert "MLFLOW_TRACKING_URI" not in offline({"MLFLOW_TRACKING_URI": "./runs"}, Path("/project"))
