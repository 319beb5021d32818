"""`deploychain docker build` and `docker run`: the image table, the command lines, and what the usual failures mean."""

from __future__ import annotations

import grp
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from deploychain.errors import ArtifactError, CapabilityError, ConfigError, StageError
from deploychain.machine import Machine

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOOLS = ("docker", "podman", "nerdctl")
IMAGES = Path("docker/images.toml")
ENGINES_VOLUME = "deploychain-engines"


@dataclass(frozen=True, slots=True)
class Image:
    """One row of docker/images.toml."""

    target: str
    dockerfile: str
    base: str
    tag: str
    image: str  # name:tag that the build gives
    platform: str
    jetpack: str
    l4t: str
    python: str
    tensorrt: str
    cuda: str
    lock: str


def find_context(given: Path | None) -> Path:
    """The source tree with docker/images.toml: given, here or above, or where this package is installed from.

    Raises:
        ConfigError: there is none.
    """
    here = Path.cwd()
    package = Path(__file__).resolve().parents[2]
    for folder in [given] if given is not None else [here, *here.parents, package]:
        if (folder / IMAGES).is_file():
            return folder.resolve()
    raise ConfigError(
        f"there is no {IMAGES} {'in ' + str(given) if given else 'here or above'}",
        remedy="run it in a checkout of deploychain, or name one with --context",
    )


def read_images(context: Path) -> dict[str, Image]:
    """The image table.

    Raises:
        ArtifactError: it is no TOML, or a row lacks a key or has one too many.
    """
    path = context / IMAGES
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ArtifactError(f"the image table cannot be read: {error}", where=str(path)) from None
    keys = {f.name for f in fields(Image)} - {"target"}
    images = {}
    for target, row in raw.items():
        if not isinstance(row, dict) or set(row) != keys or not all(isinstance(v, str) for v in row.values()):
            wrong = set(row) ^ keys if isinstance(row, dict) else {"the whole row"}
            raise ArtifactError(f"[{target}]: {', '.join(sorted(wrong)) or 'a value'} is wrong", where=str(path))
        images[target] = Image(target=target, **row)
    return images


def choose_image(images: Mapping[str, Image], target: str) -> Image:
    """
    Raises:
        ConfigError: there is no such target; the nearest is named.
    """
    if target not in images:
        near = get_close_matches(target, images, n=1, cutoff=0.0)
        raise ConfigError(
            f"there is no image {target!r}",
            where="--target",
            remedy=f"there are {', '.join(images)}; did you mean {near[0]}?",
        )
    return images[target]


def choose_tool(wanted: str, *, installed: bool = True) -> str:
    """The container tool: docker, else podman, else nerdctl. ``installed=False``: only to print its command.

    Raises:
        CapabilityError: none is installed, or not the one asked for.
        ConfigError: it is none of the three.
    """
    if wanted != "auto" and wanted not in TOOLS:
        raise ConfigError(f"{wanted!r} is no container tool", where="--tool", remedy=f"use one of {', '.join(TOOLS)}")
    if not installed:
        return wanted if wanted != "auto" else TOOLS[0]
    for tool in TOOLS if wanted == "auto" else (wanted,):
        if shutil.which(tool):
            return tool
    missing = f"{wanted} is not installed" if wanted != "auto" else f"none of {', '.join(TOOLS)} is installed"
    package = "docker.io docker-buildx" if wanted in ("auto", "docker") else wanted
    raise CapabilityError(missing, remedy=f"sudo apt-get install {package}")


def build_command(tool: str, image: Image, context: Path, *, revision: str = "unknown") -> list[str]:
    """The build of one image. Values come from the table, as arguments of their own."""
    values = {
        "BASE_IMAGE": f"{image.base}:{image.tag}",
        "LOCK": image.lock,
        "IMAGE": image.image,
        "REVISION": revision,
    }
    if image.target != "cpu":
        values |= {
            "JETPACK": image.jetpack,
            "L4T": image.l4t,
            "PYTHON": image.python,
            "TENSORRT": image.tensorrt,
            "CUDA": image.cuda,
        }
    command = [tool, "build", "--platform", image.platform, "--file", str(context / image.dockerfile)]
    for name, value in values.items():
        command += ["--build-arg", f"{name}={value}"]
    if tool == "podman":
        command += ["--format", "docker"]  # HEALTHCHECK is not in the OCI format
    return [*command, "--tag", image.image, str(context)]


def run_command(
    tool: str,
    image: Image,
    machine: Machine,
    *,
    bundle: Path | None,
    engines: str = ENGINES_VOLUME,
    port: int | None = None,
    arguments: Sequence[str] = (),
    groups: Sequence[int] | None = None,
) -> list[str]:
    """Run an image with the GPU, the engine cache and the bundle.

    Args:
        engines: a volume name or a folder.
        port: of the host, for the health page; None: not published.
        arguments: instead of serving: ``doctor``, ``device build ...``.
        groups: group numbers that may open the GPU's device files; None: as found here.
    """
    command = [tool, "run", "--rm", "--init"]
    command += gpu_options(tool, image, machine)
    for number in gpu_groups() if groups is None else groups:
        command += ["--group-add", str(number)]
    # A bare name is a volume to every tool, also where a folder of that name lies here.
    place = str(Path(engines).resolve()) if Path(engines).is_dir() or "/" in engines else engines
    command += ["--volume", f"{place}:/engines"]
    if machine.l4t is not None:  # so that the container can tell which JetPack it runs on
        command += ["--volume", "/etc/nv_tegra_release:/etc/nv_tegra_release:ro"]
    if bundle is not None:
        command += ["--volume", f"{bundle.resolve()}:/models/bundle.tar:ro"]
    if port is not None:
        command += ["--publish", f"127.0.0.1:{port}:8080"]
    return [*command, image.image, *arguments]


def gpu_options(tool: str, image: Image, machine: Machine) -> list[str]:
    """How each tool gives a container the GPU. The CPU image gets none."""
    if image.target == "cpu":
        return []
    if tool == "podman":
        return ["--device", "nvidia.com/gpu=all", "--security-opt", "label=disable"]  # CDI
    if image.platform == "linux/arm64" or machine.jetson:
        return ["--runtime", "nvidia"]  # on a Jetson `--gpus` does not bring the host's libraries
    return ["--gpus", "all"]


def gpu_groups(root: Path = Path("/")) -> tuple[int, ...]:
    """Groups that own the GPU's device files here: the container's user is none of root."""
    numbers = set()
    for name in ("nvmap", "nvhost-gpu", "nvgpu/igpu0/ctrl"):
        path = root / "dev" / name
        if path.exists():
            numbers.add(path.stat().st_gid)
    dri = root / "dev/dri"
    if numbers and dri.is_dir():  # a Jetson; on a desktop /dev/dri belongs to the display
        numbers |= {p.stat().st_gid for p in dri.glob("renderD*")}
    return tuple(sorted(numbers - {0}))


def group_names(numbers: Sequence[int]) -> str:
    """For people: ``44 (video)``."""
    known = {g.gr_gid: g.gr_name for g in grp.getgrall()}
    return ", ".join(f"{n} ({known[n]})" if n in known else str(n) for n in numbers)


def run_tool(command: Sequence[str], *, action: Literal["build", "run"], note: Callable[[str], None]) -> int:
    """Run a container tool, its output going where ours goes, and explain a failure.

    Returns:
        The exit status of a container that ran. 0 for a build.

    Raises:
        CapabilityError, StageError: it failed, with the usual reason where the output shows one.
    """
    seen: list[str] = []
    try:
        process = subprocess.Popen(command, stdout=None, stderr=subprocess.PIPE)
    except OSError as error:
        raise CapabilityError(f"{command[0]} does not start: {error.strerror}") from None
    assert process.stderr is not None
    try:
        for raw in process.stderr:
            line = raw.decode(errors="replace").rstrip("\n")
            note(line)
            seen.append(line)
            del seen[:-400]
        status = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if status == 0:
        return 0
    text = "\n".join(seen)
    found = explain(text)
    if found is not None:
        reason, remedy = found
        raise CapabilityError(f"{command[0]} {action}: {reason}", remedy=remedy)
    # 125 to 127 are the tool's own; anything else is the program in the container.
    if action == "run" and status not in (125, 126, 127):
        return status
    last = next((line for line in reversed(seen) if line.strip()), "it said nothing")
    raise StageError(f"{command[0]} {action} ended with status {status}: {last.strip()[:300]}")


_USUAL: tuple[tuple[str, str, str], ...] = (
    (
        r"unknown or invalid runtime name: nvidia|could not select device driver .* with capabilities: \[\[gpu\]\]",
        "the NVIDIA container runtime is not set up",
        "sudo apt-get install nvidia-container-toolkit && sudo nvidia-ctk runtime configure --runtime=docker && "
        "sudo systemctl restart docker",
    ),
    (
        r"unresolvable CDI devices|nvidia\.com/gpu.*(?:not found|unresolv)",
        "the GPU is not registered with CDI",
        "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
    ),
    (
        r"manifest unknown|manifest for .* not found|not found: manifest|no such image|name unknown",
        "the base image or its tag does not exist",
        "compare base and tag in docker/images.toml with NVIDIA's catalogue",
    ),
    (
        r"unauthorized|denied: requested access|authentication required",
        "the registry refuses without a login",
        "docker login nvcr.io (user $oauthtoken, password: an NGC key)",
    ),
    (
        r"no space left on device|disk quota exceeded",
        "the disk is full",
        "docker system prune, or move the data-root of docker to another disk: a JetPack base takes 10 GB",
    ),
    (
        r"exec format error|no match for platform|does not match the (?:detected|specified) (?:host )?platform",
        "the image is for another processor",
        "build on the device, or install emulation: docker run --privileged --rm tonistiigi/binfmt --install arm64",
    ),
    (
        r"IP_NF_RAW|iptables.*(?:can't initialize|Table does not exist|table `raw')|failed to create NAT chain",
        "the Jetson kernel lacks an iptables table that this docker wants",
        "sudo update-alternatives --set iptables /usr/sbin/iptables-legacy, or use docker 27",
    ),
    (
        r"permission denied while trying to connect to the Docker daemon|Got permission denied",
        "this user may not use docker",
        "sudo usermod -aG docker $USER, then log in again; or use podman",
    ),
    (
        r"Cannot connect to the Docker daemon|docker daemon is not running|failed to connect to the docker API",
        "the docker daemon does not run",
        "sudo systemctl start docker; or use podman",
    ),
    (
        r"libnvdla_compiler\.so|libcuda\.so\.1: cannot open",
        "TensorRT was loaded without the host's NVIDIA libraries",
        "they are there at run time only: start with --runtime nvidia, and load no TensorRT during the build",
    ),
    (
        r"--mount option requires BuildKit|BuildKit is enabled but the buildx component is missing",
        "this docker builds without BuildKit",
        "sudo apt-get install docker-buildx (Ubuntu's package; docker-buildx-plugin in Docker's own repository)",
    ),
    (
        r"port is already allocated|address already in use",
        "the port of the health page is taken",
        "choose another with --port",
    ),
    (
        r"Could not resolve host|Temporary failure (?:in name resolution|resolving)|network is unreachable",
        "the network cannot be reached",
        "check the network; behind a proxy set HTTPS_PROXY for the daemon and the build",
    ),
)


def explain(text: str) -> tuple[str, str] | None:
    """Reason and remedy of a failure that container tools are known for."""
    for pattern, reason, remedy in _USUAL:
        if re.search(pattern, text, re.IGNORECASE):
            return reason, remedy
    return None


def suggest_target(machine: Machine) -> str:
    """The image that fits this host.

    Raises:
        CapabilityError: none does; what was found is told.
    """
    from deploychain.device.serve import in_range

    if machine.l4t is not None:
        for target, wanted in (("jetpack6", ">=36.4,<37"), ("jetpack7", ">=39.2,<40")):
            if in_range(machine.l4t, wanted):
                return target
        raise CapabilityError(
            f"no image is made for L4T {machine.l4t}",
            remedy="JetPack 6.1 and later have jetpack6, 7.2 and later jetpack7; update the device",
        )
    return "x86" if machine.gpus and machine.architecture == "x86_64" else "cpu"


def revision_of(context: Path) -> str:
    """The commit of the source tree, for the image's label; ``unknown`` outside a checkout."""
    head = context / ".git/HEAD"
    try:
        text = head.read_text().strip()
        if text.startswith("ref: "):
            text = (context / ".git" / text[5:]).read_text().strip()
    except OSError:
        return "unknown"
    return text if re.fullmatch(r"[0-9a-f]{40}", text) else "unknown"


def shown(command: Sequence[str]) -> str:
    """A command line that can be pasted into a shell."""
    return shlex.join(command)
