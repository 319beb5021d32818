"""Inputs that nobody would write on purpose, and some that people do: pipes, link loops, giant functions, magics."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from deploychain.audit.command import Request, run
from deploychain.audit.formats import as_text
from deploychain.audit.runner import audit_paths, audit_text
from deploychain.errors import ConfigError

LOOP = """\
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
"""
HEAD = 'import torch\nscaler = torch.amp.GradScaler("cuda")\n'


def notebook(tmp_path: Path, *cells: str) -> Path:
    file = tmp_path / "n.ipynb"
    made = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    file.write_text(json.dumps({"cells": made, "nbformat": 4}), encoding="utf-8")
    return file


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    report = audit_paths([tmp_path])
    assert [p.text for p in report.problems] == ["not a file: a folder, pipe, socket or device"]


def test_a_link_to_itself_is_a_problem_and_the_others_are_audited(tmp_path: Path) -> None:
    (tmp_path / "itself.py").symlink_to("itself.py")
    (tmp_path / "nowhere.py").symlink_to("missing.py")
    (tmp_path / "train.py").write_text(HEAD + LOOP, encoding="utf-8")
    report = audit_paths([tmp_path])
    assert "R07" in {f.rule for f in report.findings}
    assert sorted(Path(p.path).name for p in report.problems) == ["itself.py", "nowhere.py"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_that_may_not_be_read_is_no_pass(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    report = audit_paths([tmp_path])
    assert [p.text for p in report.problems] == ["cannot be read: Permission denied"]


def test_an_audit_of_nothing_says_so(tmp_path: Path) -> None:
    report = audit_paths([tmp_path])
    assert report.files == 0
    assert "note: no Python file or notebook was found" in as_text(report)


def test_magics_that_assign_do_not_hide_a_notebook(tmp_path: Path) -> None:
    file = notebook(tmp_path, "%matplotlib inline\n" + HEAD, "files = !ls\n!pip install \\\n    torch\n" + LOOP)
    report = audit_paths([file])
    assert report.problems == ()
    assert [(f.rule, f.line, f.message[:7]) for f in report.findings] == [("R07", 8, "cell 2:")]


def test_a_percent_sign_at_the_start_of_a_line_is_kept_where_it_is_python(tmp_path: Path) -> None:
    file = notebook(tmp_path, HEAD, 'print("%s"\n      % name)\n' + LOOP)
    report = audit_paths([file])
    assert report.problems == ()
    assert [f.line for f in report.findings] == [7]


def test_a_cell_that_is_no_python_is_told_and_the_others_are_audited(tmp_path: Path) -> None:
    file = notebook(tmp_path, HEAD, "this is a note\n", LOOP)
    report = audit_paths([file])
    assert [(f.rule, f.message[:7]) for f in report.findings] == [("R07", "cell 3:")]
    assert [p.text for p in report.problems] == ["cell 2, line 1: syntax error: invalid syntax"]


@pytest.mark.parametrize("text", ["[]", '{"cells": null}', '{"worksheets": [], "nbformat": 3}', '{"cells": ['])
def test_what_is_no_notebook(tmp_path: Path, text: str) -> None:
    (tmp_path / "n.ipynb").write_text(text, encoding="utf-8")
    report = audit_paths([tmp_path])
    assert len(report.problems) == 1
    assert report.problems[0].text.startswith("not a notebook: ")


def test_columns_count_characters_and_not_bytes() -> None:
    report = audit_text(HEAD + LOOP.replace("    torch.nn", "    é = 'ü'; torch.nn"))
    assert [f.column for f in report.findings] == [len("    é = 'ü'; ") + 1]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_comment_counts_with_every_end_of_line(end: str) -> None:
    text = HEAD + LOOP.replace("1.0)\n", "1.0)  # deploychain: ignore[R07]\n")
    report = audit_text(text.replace("\n", end))
    assert (report.findings, report.suppressed) == ((), 1)


def blocks(count: int, clip: int = -1) -> str:
    made = [HEAD, "def train(model, criterion, x, y, optimizer):\n"]
    for i in range(count):
        made.append("    optimizer.zero_grad()\n    loss = criterion(model(x), y)\n    scaler.scale(loss).backward()\n")
        if i != clip:
            made.append("    scaler.unscale_(optimizer)\n")
        made.append(f"    if c{i}:\n        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n")
        made.append("    scaler.step(optimizer)\n    scaler.update()\n")
    return "".join(made)


def test_many_conditions_in_one_function_do_not_multiply() -> None:
    report = audit_text(blocks(200, clip=190))
    assert report.problems == ()
    assert [(f.rule, f.line) for f in report.findings] == [("R07", 2 + 1 + 190 * 8 + 5)]


def test_what_was_not_followed_to_the_end_is_told() -> None:
    report = audit_text(blocks(1) + "    optimizer.zero_grad()\n" * 4000 + "    scaler.step(optimizer)\n")
    assert [p.text for p in report.problems] == [
        "too many paths to follow them all from line 3: R02, R03, R07 and R28 are incomplete"
    ]


def test_opset_without_a_file_is_wrong_usage() -> None:
    with pytest.raises(ConfigError, match="no ONNX file"):
        run(Request(paths=(Path(__file__),), opset=17))


SETTINGS = HEAD + "import torch.onnx\nS = dict(opset_version=13, dynamo=True)\n"


@pytest.mark.parametrize(
    ("change", "found"),
    [("", ["R19"]), ("S['dynamo'] = False\n", []), ("S.update(dynamo=False)\n", []), ("S |= {'dynamo': False}\n", [])],
)
def test_settings_in_a_dictionary_count_only_where_nothing_changes_it(change: str, found: list[str]) -> None:
    report = audit_text(SETTINGS + change + "torch.onnx.export(model, (x,), 'm.onnx', **S)\n")
    assert [f.rule for f in report.findings] == found


def test_functions_that_all_call_each_other_are_followed_no_further_than_the_limit() -> None:
    # 24 functions that hand 3 arguments to each of 8 others: there are 8**n ways of n steps
    lines = ["import torch", "scaler = torch.amp.GradScaler('cuda')"]
    for i in range(1, 25):
        lines += [f"def f{i}(a, b, c):", "    if scaler.get_scale() < a:", "        scaler.update(b)"]
        lines += [f"    c = f{(i + k) % 24 + 1}(b, c, f{(i * k) % 24 + 1}(a, b, c))" for k in range(1, 9)]
        lines += ["    with torch.autocast('cuda', dtype=a):", "        loss = torch.nn.functional.cross_entropy(b, c)"]
        lines += ["    scaler.scale(loss).backward()", "    scaler.step(b)", "    scaler.update()", "    return c"]
    report = audit_text("\n".join(lines) + "\n", "many.py")  # that it ends is the test
    said = "too many names to follow them all: findings of this file may be missing"
    assert said in [p.text for p in report.problems]


@pytest.mark.parametrize(
    "code",
    [
        'for batch in loader:\n    batch = batch["tokens"].to(device)\n    loss = net(batch)\n    loss.backward()\n',
        "from contextlib import contextmanager\n\n\nclass Tuned(Base):\n    @contextmanager\n    def plain(self):\n"
        "        with self.plain():\n            yield\n\n    def forward(self, x):\n        with self.plain():\n"
        "            return self.net(x)\n",
        'opts = opts["model"].get("x")(opts)\nnet = net.build(net)\nnet.half()\n',
        "def a(x):\n    return b(x).half()\n\n\ndef b(x):\n    return a(x)\n\n\n"
        "net = a(net)\nscaler.scale(net(1)).backward()\n",
        "class A:\n    def __init__(self):\n        self.inner = self.inner.inner\n        self.step = self.step\n"
        "        self.cfg = self.cfg[self.cfg.name]\n\n    def run(self):\n"
        "        with self.inner.ctx():\n            self.step()\n",
    ],
    ids=["item-of-itself", "context-manager-of-the-base", "calls-of-itself", "each-other", "attributes-of-themselves"],
)
def test_names_that_stand_for_themselves_end(code: str) -> None:
    report = audit_text(f"{HEAD}model = Net().cuda()\n{code}{LOOP}")
    assert report.problems == ()
    assert "R07" in {f.rule for f in report.findings}
