"""The examples keep the task's contract, and the quick one learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

torch = pytest.importorskip("torch", reason="torch is not installed")

from deploychain.backends.torch_data import call_model, collect_test, make_loader, split_batch  # noqa: E402
from deploychain.backends.torch_model import build_model  # noqa: E402
from deploychain.settings import PipelineSettings  # noqa: E402
from deploychain.task import Task, TaskRef  # noqa: E402

pytestmark = pytest.mark.chain
PIPELINES = Path(__file__).resolve().parent.parent.parent / "pipelines"
EXAMPLES = ("digits", "fashion", "vit")


def settings_of(name: str) -> PipelineSettings:
    return PipelineSettings.model_validate(
        {k: v for k, v in yaml.safe_load((PIPELINES / name / "pipeline.yaml").read_text()).items() if k != "stages"}
    )


def load(name: str) -> Task:
    if name == "digits":
        pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    text = settings_of(name).task
    assert text is not None
    return TaskRef.parse(text, PIPELINES / name, {}).load()


@pytest.mark.parametrize("name", EXAMPLES)
def test_data_and_metrics_keep_the_contract(name: str) -> None:
    task: Any = load(name)
    inputs, targets = collect_test(task)
    assert list(inputs) == ["image"] and inputs["image"].dtype == np.float32
    perfect = np.eye(10, dtype=np.float32)[targets]
    scores = np.asarray(task.metrics({"output": perfect}, targets)["top1"])
    assert scores.shape == (len(targets),) and scores.mean() == 1.0
    assert np.asarray(task.metrics({"output": -perfect}, targets)["top1"]).mean() == 0.0
    np.testing.assert_array_equal(task.classes(targets), targets)
    x, y = split_batch(next(iter(make_loader(task, "train", 4))))
    loss = task.loss(call_model(task.model(), x), y)
    assert loss.shape == () and bool(torch.isfinite(loss))


@pytest.mark.parametrize("name", EXAMPLES)
def test_training_and_test_images_are_different_ones(name: str) -> None:
    task = load(name)
    train, _ = collect_test(task, split="train")
    test, _ = collect_test(task)
    seen = {row.tobytes() for row in train["image"]}
    assert sum(row.tobytes() in seen for row in test["image"]) <= len(test["image"]) // 50  # the set has a few twins


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_sample_does_not_depend_on_its_batch(name: str) -> None:
    """Any batch size: what the dynamic axis of the exported file promises."""
    task = load(name)
    model = build_model(task)
    x = torch.from_numpy(collect_test(task, 5)[0]["image"])
    with torch.no_grad():
        torch.testing.assert_close(model(x)[3:4], model(x[3:4]), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_pipeline_file_is_short(name: str) -> None:
    lines = (PIPELINES / name / "pipeline.yaml").read_text().splitlines()
    assert len([x for x in lines if x.strip() and not x.lstrip().startswith("#")]) < 15


def test_fashion_reads_the_original_files(tmp_path: Path) -> None:
    import gzip
    import struct

    for split, count in (("train", 7), ("t10k", 3)):
        images = np.arange(count * 784, dtype=np.uint32).astype(np.uint8)
        with gzip.open(tmp_path / f"{split}-images-idx3-ubyte.gz", "wb") as stream:
            stream.write(struct.pack(">HBBIII", 0, 8, 3, count, 28, 28) + images.tobytes())
        with gzip.open(tmp_path / f"{split}-labels-idx1-ubyte.gz", "wb") as stream:
            stream.write(struct.pack(">HBBI", 0, 8, 1, count) + bytes(range(count)))
    task = TaskRef.parse("task.py:FashionTask", PIPELINES / "fashion", {"folder": str(tmp_path)}).load()
    inputs, targets = collect_test(task, split="train")
    assert targets.tolist() == list(range(7))
    assert inputs["image"].shape == (7, 1, 28, 28)
    assert inputs["image"][0, 0, 0, 5] == pytest.approx((5 / 255 - 0.286) / 0.353, rel=1e-5)
