"""What every service is told: one frozen Settings, the same for all, from the environment and the configuration file.

`podbus up` loads it once and hands it to its children; in a container each service loads it by itself.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shared.kube.devices import Devices, parse_devices
from shared.kube.node_labels import parse_node_labels
from shared.kube.validation_names import dns_subdomain_errors
from shared.runtime.config import KubeletConfig
from shared.runtime.paths import DataPaths

DEFAULT_DATA = "/var/lib/podbus"
DEFAULT_MANIFESTS = "/etc/podbus/manifests"
DEFAULT_SANDBOX_IMAGE = "podbus/pause:3.10"


VARIABLES = frozenset(
    {
        *(
            "PODBUS_CACHE",
            "PODBUS_CONFIG",
            "PODBUS_CONFIG_DIR",
            "PODBUS_DATA",
            "PODBUS_DEVICES",
            "PODBUS_DOCKERD_LOG",
            "PODBUS_KUBECONFIG",
            "PODBUS_LOG_LEVEL",
            "PODBUS_MANIFESTS",
        ),
        *(
            "PODBUS_NETWORK",
            "PODBUS_NODE_IP",
            "PODBUS_NODE_LABELS",
            "PODBUS_NODE_NAME",
            "PODBUS_NO_PULL",
            "PODBUS_POD_LOGS",
        ),
        *("PODBUS_POLICY", "PODBUS_PORT"),
        *("PODBUS_READY_FD", "PODBUS_SANDBOX_IMAGE", "PODBUS_STRICT", "PODBUS_VENV", "PODBUS_WORKERS"),
    }
)
"""All that somebody reads, the scripts below deploy/ among them; any other is told. PODBUS_TEST_* are the tests'."""


class SettingsError(Exception):
    """Every problem at once: `problems` holds one sentence each, with the setting's name."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Each docstring says: the names (variable, flag, key of the configuration file): effect. Default: value."""

    data: Path = Path(DEFAULT_DATA)
    """PODBUS_DATA, --data: absolute path of all that the node keeps, on a local filesystem.
    Default: /var/lib/podbus."""
    manifests: Path | None = Path(DEFAULT_MANIFESTS)
    """PODBUS_MANIFESTS, --manifests, staticPodPath: directory (or one file) of manifests.
    Default: /etc/podbus/manifests."""
    node_name: str = "localhost"
    """PODBUS_NODE_NAME, --hostname-override: the node's name; fixed at the first start in <data>/node, another one is
    refused later. Default: the host's name in lower case."""
    port: int = 10250
    """PODBUS_PORT, --port, port: TCP port of the HTTPS API. Default: 10250."""
    strict: bool = False
    """PODBUS_STRICT: 1 refuses a manifest that has an unknown field, 0 only warns. Default: 0."""
    workers: int = 1
    """PODBUS_WORKERS, --workers: podworker processes under `podbus up`, 1 to 64. Default: 1."""
    sandbox_image: str = DEFAULT_SANDBOX_IMAGE
    """PODBUS_SANDBOX_IMAGE: image of the sandbox containers; it must be on the engine. Default: podbus/pause:3.10."""
    network: str = ""
    """PODBUS_NETWORK: Docker network of the sandboxes. Default: the engine's bridge."""
    devices: Devices = field(default_factory=dict)
    """PODBUS_DEVICES: extended resources, as `example.com/fuse=/dev/fuse*10 nvidia.com/gpu=nvidia:0,nvidia:1`: devices,
    or ids that a driver of the engine knows; *N = it counts as so many. Default: none."""
    node_ip: str = ""
    """PODBUS_NODE_IP, --node-ip: the node's address in statuses and in the serving certificate. Default: the address of
    the default route's interface."""
    node_labels: dict[str, str] = field(default_factory=dict)
    """PODBUS_NODE_LABELS, --node-labels: labels of the Node that is made at the API server, as `disk=ssd,rack=7`,
    besides those of the machine. Default: none."""
    kubeconfig: Path | None = None
    """PODBUS_KUBECONFIG, --kubeconfig: path of a kubeconfig; this node is registered at the API server that it names,
    keeps its status and Lease there, and runs the pods that it has for the node; the HTTPS API asks it about tokens
    and rights (TokenReview, SubjectAccessReview), after its own. Default: none."""
    policy: Path | None = None
    """PODBUS_POLICY: path of the file that says who may do what besides the roles; it's read again when it changes.
    Default: <data>/pki/policy.yaml."""
    log_root: str = "/var/log/pods"
    """PODBUS_POD_LOGS: directory of the links to the containers' logs. Default: /var/log/pods."""
    log_level: str = "INFO"
    """PODBUS_LOG_LEVEL: DEBUG, INFO, WARNING or ERROR. Default: INFO."""
    docker_host: str = "unix:///var/run/docker.sock"
    """DOCKER_HOST: the engine's socket. Default: unix:///var/run/docker.sock."""
    config: KubeletConfig = field(default_factory=KubeletConfig)
    """PODBUS_CONFIG, --config: path of a KubeletConfiguration file. Default: none."""
    config_dir: Path | None = None
    """PODBUS_CONFIG_DIR, --config-dir: directory of drop-ins, files that end in .conf, in lexical order laid over the
    file and each other. Default: none."""
    config_warnings: tuple[str, ...] = ()
    """What the configuration file and the environment say that has no effect."""

    @property
    def paths(self) -> DataPaths:
        return DataPaths(self.data)


def load_settings(
    environment: Mapping[str, str] | None = None, config_flags: Mapping[str, str] | None = None
) -> Settings:
    """Read PODBUS_*, the configuration file and its drop-ins; `config_flags` (shared.runtime.config_flags) win over
    these. Raises SettingsError with every problem."""
    env = os.environ if environment is None else environment
    problems: list[str] = []
    config = KubeletConfig()
    warnings: list[str] = []
    file = Path(env["PODBUS_CONFIG"]) if env.get("PODBUS_CONFIG") else None
    config_dir = _optional_path(env, "PODBUS_CONFIG_DIR", problems)
    if file is not None or config_dir is not None or config_flags:
        from shared.runtime.config_reader import load_config  # PyYAML only where a file is read

        config, errors, warnings = load_config(file, config_dir, config_flags)
        problems += errors
    data = _absolute(env.get("PODBUS_DATA") or DEFAULT_DATA, "PODBUS_DATA", problems)
    manifests = env.get("PODBUS_MANIFESTS") or config.static_pod_path or DEFAULT_MANIFESTS
    settings = Settings(
        data=data,
        manifests=_absolute(manifests, "PODBUS_MANIFESTS", problems),
        node_name=_node_name(data, env.get("PODBUS_NODE_NAME", ""), problems),
        port=_whole(env, "PODBUS_PORT", config.port, 1, 65535, problems),
        strict=_flag(env, "PODBUS_STRICT", problems),
        workers=_whole(env, "PODBUS_WORKERS", 1, 1, 64, problems),
        sandbox_image=env.get("PODBUS_SANDBOX_IMAGE") or DEFAULT_SANDBOX_IMAGE,
        network=env.get("PODBUS_NETWORK", ""),
        devices=_devices(env, problems),
        node_ip=_ip(env, problems),
        node_labels=_labels(env, problems),
        kubeconfig=_optional_path(env, "PODBUS_KUBECONFIG", problems),
        policy=_optional_path(env, "PODBUS_POLICY", problems),
        log_root=str(_absolute(env.get("PODBUS_POD_LOGS") or "/var/log/pods", "PODBUS_POD_LOGS", problems)),
        log_level=_level(env, problems),
        docker_host=env.get("DOCKER_HOST") or "unix:///var/run/docker.sock",
        config=config,
        config_dir=config_dir,
        config_warnings=(*warnings, *_unknown_variables(env)),
    )
    if config.healthz_port == settings.port and _overlap(config.address, config.healthz_bind_address):
        problems.append(f"healthzPort: {settings.port} is the API's port too; 0 turns /healthz off")
    if problems:
        raise SettingsError(problems)
    return settings


def _unknown_variables(env: Mapping[str, str]) -> list[str]:
    """A mistyped name would be ignored in silence."""
    told = []
    for name in sorted(env.keys() - VARIABLES):
        if name.startswith("PODBUS_") and not name.startswith("PODBUS_TEST_"):
            import difflib  # only where there is something to tell

            near = difflib.get_close_matches(name, VARIABLES, 1, 0.8)
            hint = f"; did you mean {near[0]}?" if near else ""
            told.append(f"{name}: unknown variable, it has no effect{hint}")
    return told


def configured_sources(settings: Settings) -> list[str]:
    """Where desired pods come from on this node; each has a marker on the bus."""
    sources = ["file"] if settings.manifests is not None else []
    sources += ["http"] if settings.config.static_pod_url else []
    return [*sources, "api"] if settings.kubeconfig is not None else sources


def _node_name(data: Path, asked: str, problems: list[str]) -> str:
    """The name fixed at first start wins; another one that is asked for later is refused, not ignored."""
    asked = asked.strip().lower()
    kept_path = DataPaths(data).node_file
    try:
        kept = kept_path.read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        kept = ""
    except OSError as error:
        problems.append(f"PODBUS_DATA: {kept_path}: {(error.strerror or str(error)).lower()}")
        kept = ""
    name = kept or asked or socket.gethostname().strip().lower()
    if kept and asked and kept != asked:
        problems.append(
            f"PODBUS_NODE_NAME: this data directory belongs to node {kept!r} ({kept_path}), not to {asked!r}:"
            " use another data directory"
        )
    problems += [f"PODBUS_NODE_NAME: {name!r}: {text}" for text in dns_subdomain_errors(name)]
    return name


def _absolute(text: str, key: str, problems: list[str]) -> Path:
    if not Path(text).is_absolute():
        problems.append(f"{key}: {text!r} is not an absolute path")
    return Path(text)


def _optional_path(env: Mapping[str, str], key: str, problems: list[str]) -> Path | None:
    text = env.get(key, "")
    return _absolute(text, key, problems) if text else None


def _devices(env: Mapping[str, str], problems: list[str]) -> Devices:
    found, wrong = parse_devices(env.get("PODBUS_DEVICES", ""))
    problems += [f"PODBUS_DEVICES: {text}" for text in wrong]
    return found


def _labels(env: Mapping[str, str], problems: list[str]) -> dict[str, str]:
    found, wrong = parse_node_labels(env.get("PODBUS_NODE_LABELS", ""))
    problems += [f"PODBUS_NODE_LABELS: {text}" for text in wrong]
    return found


def _ip(env: Mapping[str, str], problems: list[str]) -> str:
    text = env.get("PODBUS_NODE_IP", "").strip()
    if not text:
        return ""
    import ipaddress

    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        problems.append(f"PODBUS_NODE_IP: {text!r} is not an IP address")
        return ""


def _overlap(one: str, other: str) -> bool:
    """Whether two listeners with the same port would meet."""
    return one == other or not {one, other}.isdisjoint({"0.0.0.0", "::"})  # noqa: S104  nothing is bound here


def _whole(env: Mapping[str, str], key: str, default: int, low: int, high: int, problems: list[str]) -> int:
    text = env.get(key, "").strip()
    if not text:
        return default
    if not text.isdecimal() or not low <= int(text) <= high:
        problems.append(f"{key}: {text!r} is not a whole number from {low} to {high}")
        return default
    return int(text)


def _flag(env: Mapping[str, str], key: str, problems: list[str]) -> bool:
    text = env.get(key, "").strip().lower()
    if text in ("", "0", "false", "no", "off"):
        return False
    if text not in ("1", "true", "yes", "on"):
        problems.append(f"{key}: {text!r} is neither true nor false")
    return True


def _level(env: Mapping[str, str], problems: list[str]) -> str:
    text = env.get("PODBUS_LOG_LEVEL", "").strip() or "INFO"
    if text.upper() not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        problems.append(f"PODBUS_LOG_LEVEL: {text!r} is none of DEBUG, INFO, WARNING, ERROR")
        return "INFO"
    return text.upper()
