"""Hostile and odd files: reported, never a crash, never executed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deploychain.audit.runner import audit_paths, audit_text
from deploychain.audit.settings import AuditSettings

PLANTED = sorted((Path(__file__).parents[2] / "audit_set" / "planted").glob("*.py"))
BAD_LOOP = (PLANTED[0].parent / "r07_plain.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"def f(:\n    pass\n", "line 1: syntax error"),
        (b"print 'hello'\n", "Python 2"),
        (b"import torch\n\x00\x00\n", "null bytes"),
        (b"# -*- coding: utf-8 -*-\nx = '\xff\xfe'\n", "cannot be decoded"),
        (b"# -*- coding: nonsense -*-\nx = 1\n", "unknown encoding"),
        (b"x = 1\n" * 900_000, "5.4 MB"),
    ],
    ids=["syntax", "python2", "null", "not-utf8", "encoding", "large"],
)
def test_unreadable_files_are_problems(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "odd.py"
    file.write_bytes(data)
    good = tmp_path / "good.py"
    good.write_text(BAD_LOOP)
    report = audit_paths([tmp_path])
    assert report.files == 2
    assert [p.path for p in report.problems] == [str(file)]
    assert said in report.problems[0].text
    assert [f.rule for f in report.findings] == ["R07"]


def test_latin_1_with_a_declaration_and_a_bom_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"# coding: latin-1\n# caf\xe9\n" + BAD_LOOP.encode())
    (tmp_path / "b.py").write_bytes(b"\xef\xbb\xbf" + BAD_LOOP.encode())
    (tmp_path / "c.py").write_bytes(BAD_LOOP.replace("\n", "\r\n").encode())
    report = audit_paths([tmp_path])
    assert report.problems == ()
    assert [f.rule for f in report.findings] == ["R07"] * 3


def test_deeply_nested_code_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text(
        "import torch\nx = " + "(" * 150 + "1" + ")" * 150 + "\ny = " + "+".join(["x.half()"] * 4000) + "\n"
    )
    report = audit_paths([tmp_path])
    assert report.files == 1
    assert all("nested too deeply" in p.text or "cannot be parsed" in p.text for p in report.problems)


def test_code_is_never_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    (tmp_path / "setup.py").write_text(f"import torch\nopen({str(marker)!r}, 'w')\n" + BAD_LOOP)
    audit_paths([tmp_path])
    assert not marker.exists()


def test_notebook_cells_and_magics(tmp_path: Path) -> None:
    lines = BAD_LOOP.splitlines(keepends=True)
    cells = [
        {"cell_type": "markdown", "source": ["# loss.backward()"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "!pip install torch\n", "import torch\n"]},
        {"cell_type": "code", "source": ["%%bash\n", "echo hi\n"]},
        {"cell_type": "code", "source": lines},
    ]
    (tmp_path / "train.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}))
    (tmp_path / "broken.ipynb").write_text("{")
    report = audit_paths([tmp_path])
    wanted = next(i for i, line in enumerate(lines, start=1) if line.strip().startswith("clip_grad_norm_("))
    assert [(Path(f.path).name, f.line, f.rule) for f in report.findings] == [("train.ipynb", wanted, "R07")]
    assert report.findings[0].message.startswith("cell 4: ")
    assert "not a notebook" in report.problems[0].text


def test_folders_are_walked_once_and_caches_skipped(tmp_path: Path) -> None:
    for name in ("a.py", "pkg/b.py", ".venv/lib/c.py", "__pycache__/d.py", "skip/e.py"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x = 1\n")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert audit_paths([tmp_path, tmp_path / "a.py"]).files == 3
    assert audit_paths([tmp_path], AuditSettings(exclude=("skip",))).files == 2


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_prefix_of_any_snippet_is_no_crash(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(PLANTED)).read_text(encoding="utf-8")
    cut = data.draw(st.integers(0, len(text)))
    report = audit_text(text[:cut])
    assert report.files == 1


def test_many_files_give_the_same_as_one_by_one(tmp_path: Path) -> None:
    for index in range(160):  # enough for several processes
        (tmp_path / f"m{index:03}.py").write_text(PLANTED[index % len(PLANTED)].read_text(encoding="utf-8"))
    together = audit_paths([tmp_path])
    single = [f for file in sorted(tmp_path.iterdir()) for f in audit_paths([file]).findings]
    assert sorted(together.findings, key=lambda f: f.order) == sorted(single, key=lambda f: f.order)


def test_names_that_depend_on_themselves_end(tmp_path: Path) -> None:
    (tmp_path / "cycle.py").write_text(
        "import torch\n"
        "device = device.type\n"
        "a = b\nb = a\n"
        "def f(x):\n    return g(x)\n"
        "def g(x):\n    return f(x)\n"
        "class C(torch.nn.Module):\n"
        "    def __init__(self):\n        self.x = self.y\n        self.y = self.x\n"
        "    def forward(self, x):\n        return self(self.x(x))\n"
        "ps = [p for p in ps]\n"
        "for p in ps:\n    p = p.half()\n    torch.norm(p)\n"
        "scaler = torch.amp.GradScaler(device)\n"
        "with torch.autocast(device, enabled=a):\n    f(C()(ps)).backward()\n    scaler.step(a)\n"
    )
    assert audit_paths([tmp_path]).problems == ()
