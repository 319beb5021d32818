"""The container's state: "building" is told from "broken", in the file and over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_bundle

from deploychain.device.archive import ArchiveReader
from deploychain.device.health import STALE_SECONDS, read_health
from deploychain.device.serve import in_range, misfits
from deploychain.machine import look

STUBS = Path(__file__).parents[2] / "stubs"
ROOT = Path(__file__).parents[3]


class Server:
    """`deploychain device serve` as a process of its own."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.state = folder / "health.json"
        bundle = tiny_bundle.write_bundle(folder)
        ArchiveReader(bundle).unpack(folder / "answers")
        self.env = {
            **os.environ,
            "PATH": f"{STUBS}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "TRTEXEC_STUB_VERSION": "10.3.0.26",
            "TRTEXEC_STUB_ANSWERS": str(folder / "answers"),
            **environment,
        }
        command = [
            "device",
            "serve",
            str(bundle),
            "--port",
            "0",
            "--backend",
            "trtexec",
            "--cache",
            str(folder / "cache"),
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "deploychain", *command, "--state", str(self.state)],
            cwd=folder,
            env=self.env,
            stdout=subprocess.DEVNULL,
            stderr=(folder / "log").open("w"),
        )

    def wait_for(self, state: str) -> dict[str, Any]:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if self.state.is_file():
                found: dict[str, Any] = json.loads(self.state.read_text())
                if found["state"] == state:
                    return found
                assert found["state"] not in ("ready", "broken"), found
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def http(self) -> tuple[int, dict[str, Any]]:
        line = next(x for x in (self.folder / "log").read_text().splitlines() if "http://" in x)
        url = line.split()[2]
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def health(self) -> tuple[int, str]:
        command = [sys.executable, "-m", "deploychain", "device", "health", "--state", str(self.state)]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    started: list[Server] = []
    yield started
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


def test_building_then_ready(tmp_path: Path, servers: list[Server]) -> None:
    server = Server(tmp_path)
    servers.append(server)
    seen = server.wait_for("ready")
    assert seen["engines"] == {"fp32": "built", "fp16": "built", "int8": "built"}
    code, page = server.http()
    assert (code, page["state"]) == (200, "ready")
    assert server.health()[0] == 0
    assert json.loads((tmp_path / "device-result.json").read_text())["bundle"] == "tiny"
    assert server.stop() == 0
    status, words = server.health()
    assert status == 1 and "stopped" in words


def test_a_build_that_takes_long_is_healthy_and_not_ready(tmp_path: Path, servers: list[Server]) -> None:
    server = Server(tmp_path, TRTEXEC_STUB_FAIL="hang_after_help")
    servers.append(server)
    server.wait_for("building")
    code, page = server.http()
    assert code == 503 and page["state"] == "building" and "fp32" in page["detail"]
    status, words = server.health()
    assert status == 0 and words.startswith("building")
    assert server.stop() == 0
    assert not list((tmp_path / "cache/tiny/fp32").glob("*")), "a stopped build leaves nothing"


def test_a_build_that_fails_is_broken_and_stays_readable(tmp_path: Path, servers: list[Server]) -> None:
    server = Server(tmp_path, TRTEXEC_STUB_FAIL="oom")
    servers.append(server)
    seen = server.wait_for("broken")
    assert "memory ran out" in seen["detail"] and "swap" in seen["remedy"]
    code, page = server.http()
    assert code == 500 and page["state"] == "broken"
    status, words = server.health()
    assert status == 1 and "memory ran out" in words
    assert server.process.poll() is None


def test_a_damaged_bundle_is_broken(tmp_path: Path, servers: list[Server]) -> None:
    real = tiny_bundle.write_bundle(tmp_path)
    real.write_bytes(real.read_bytes()[:4000])
    (tmp_path / "second").mkdir()
    server = Server(tmp_path / "second", TRTEXEC_STUB_FAIL="nolib")
    servers.append(server)
    assert "libnvdla_compiler" in server.wait_for("broken")["detail"]


def test_a_silent_process_is_broken(tmp_path: Path) -> None:
    state = tmp_path / "health.json"
    assert read_health(state).state == "broken"
    content = {"state": "building", "detail": "build fp16", "updated": 1000.0}
    state.write_text(json.dumps(content))
    assert read_health(state, now=1000.0 + STALE_SECONDS - 1).state == "building"
    stale = read_health(state, now=1000.0 + STALE_SECONDS + 1)
    assert stale.state == "broken" and "build fp16" in stale.detail
    state.write_text(json.dumps({**content, "state": "ready"}))
    assert read_health(state, now=1000.0 + STALE_SECONDS - 1).state == "ready"
    assert read_health(state, now=1000.0 + STALE_SECONDS + 1).state == "broken"  # a killed server renews nothing
    state.write_text("{")
    assert read_health(state).state == "broken"


@pytest.mark.parametrize(
    ("version", "wanted", "fits"),
    [
        ("36.4.3", ">=36.4,<37", True),
        ("36.4.0", ">=36.4,<37", True),
        ("36.3.0", ">=36.4,<37", False),
        ("39.2.1", ">=36.4,<37", False),
        ("39.2.1", ">=39.2,<40", True),
        ("36.4.3", "nonsense", False),
    ],
)
def test_ranges(version: str, wanted: str, fits: bool) -> None:
    assert in_range(version, wanted) is fits


def test_the_image_is_compared_with_the_host() -> None:
    import dataclasses

    host = dataclasses.replace(look(), l4t="39.2.0")
    image = {"DEPLOYCHAIN_L4T": ">=36.4,<37", "DEPLOYCHAIN_IMAGE": "deploychain:jp6"}
    (line,) = misfits(host, image)
    assert "L4T 39.2.0" in line and "deploychain:jp6" in line
    assert misfits(dataclasses.replace(host, l4t="36.4.3"), image) == ()
    assert misfits(dataclasses.replace(host, l4t=None), image) == ()


def test_the_health_check_loads_nothing_heavy() -> None:
    code = "import sys, deploychain.device.health; print(sorted({'numpy', 'pydantic', 'yaml'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
