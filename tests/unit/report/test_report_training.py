"""The loss scale of the training, from the train log through the comparison into the report."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from xml.etree import ElementTree

from gate_synthetic import healthy, write

from deploychain.records import Training, load_comparison
from deploychain.report import html
from deploychain.report.plots import scale_plot

SVG = "{http://www.w3.org/2000/svg}"


def test_the_scale_holds_until_the_next_change() -> None:
    root = ElementTree.fromstring(scale_plot([(1, 65536.0), (50, 32768.0), (90, 65536.0)], [50, 50, 51], 100, "scale"))
    (path,) = root.iter(f"{SVG}path")
    corners = re.findall(r"([MHV])([\d.]+)", path.get("d") or "")
    assert [name for name, _ in corners] == ["M", "H", "V", "H", "V", "H"]
    x = [float(v) for name, v in corners if name in "MH"]
    assert x == sorted(x)
    down, up = (float(v) for name, v in corners if name == "V")
    assert down > up  # a lower scale is drawn lower: SVG counts from the top
    marks = [line for line in root.iter(f"{SVG}line") if line.get("class") == "limit"]
    assert [mark.findtext(f"{SVG}title") for mark in marks] == ["step 50 was skipped", "step 51 was skipped"]


def test_no_plot_of_nothing() -> None:
    assert scale_plot([], [], 100, "scale") == ""
    assert scale_plot([(1, 65536.0)], [], 0, "scale") == ""
    assert scale_plot([(1, float("inf")), (2, 0.0)], [], 10, "scale") == ""


def test_ten_thousand_skipped_steps_stay_small() -> None:
    assert len(scale_plot([(1, 2.0**16)], range(10_000), 10_000, "scale")) < 100_000


def test_the_report_shows_scale_and_skipped_steps(tmp_path: Path) -> None:
    training = Training("fp16-mixed", 200, ((101, 65536.0), (120, 32768.0), (190, 131072.0)), (120, 130))
    made = load_comparison(
        write(dataclasses.replace(healthy(), training=training), tmp_path / "run") / "comparison.json"
    )
    assert made.training == training
    text = html.render(made)
    assert "200 optimiser steps, 2 skipped" in text and "(1.00 %)" in text
    assert "loss scale 65536 at first, 32768 at the lowest, 131072 at the end" in text
    assert "Loss scale" in text and "step 130 was skipped" in text


def test_training_without_a_scaler_says_so() -> None:
    text = html.render(dataclasses.replace(healthy(), training=Training("bf16-mixed", 10)))
    assert "bf16-mixed, 10 optimiser steps, 0 skipped" in text and "no loss scale was used" in text
    assert "0 optimiser steps, 0 skipped" in html.render(dataclasses.replace(healthy(), training=Training("x", 0)))
    assert "<h2>Training" not in html.render(healthy())


def test_a_comparison_of_before_is_still_read(tmp_path: Path) -> None:
    path = write(healthy(), tmp_path / "run") / "comparison.json"
    document = json.loads(path.read_text())
    del document["training"]
    path.write_text(json.dumps(document))
    assert load_comparison(path).training is None
