"""A Docker Engine of a test's own, with its own bridge and store: it can be killed without disturbing others.

Never `--bridge=none` in this network namespace: that would delete the other engine's docker0.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.eventually import eventually

IMAGES = ("busybox:1.36", "podbus/pause:3.10")


class PrivateEngine:
    """Start, end, kill -9, start again. `close` removes everything that it made."""

    def __init__(self, directory: Path, *, live_restore: bool = False, number: int = 77) -> None:
        self._directory = directory
        self._live_restore = live_restore
        self._bridge = f"pb{os.getpid() % 100000}x{number % 10}"
        self._address = f"172.29.{number}.1/24"
        self._process: subprocess.Popen[bytes] | None = None
        self.host = f"unix://{directory / 'docker.sock'}"

    def start(self, *, within: float = 60) -> None:
        if shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            if os.environ.get("CI") == "true":
                pytest.fail("dockerd is missing: run make setup")
            pytest.skip("dockerd is missing: run make setup")
        self._directory.mkdir(parents=True, exist_ok=True)
        if not Path("/sys/class/net", self._bridge).exists():
            _run("ip", "link", "add", self._bridge, "type", "bridge")
            _run("ip", "address", "add", self._address, "dev", self._bridge)
            _run("ip", "link", "set", self._bridge, "up")
        for stale in (self._directory / "docker.pid", self._directory / "exec" / "containerd" / "containerd.pid"):
            # after kill -9 a new dockerd takes any process of that number, even a zombie, for its containerd
            if stale.exists() and not _is_alive(stale.read_text().strip()):
                stale.unlink()
        command = [
            "dockerd",
            *("--host", self.host, "--bridge", self._bridge, "--iptables=false", "--ip-masq=false"),
            *("--data-root", str(self._directory / "data"), "--exec-root", str(self._directory / "exec")),
            *("--pidfile", str(self._directory / "docker.pid"), "--config-file", str(self._directory / "none.json")),
            *(["--live-restore"] if self._live_restore else []),
        ]
        (self._directory / "none.json").write_text("{}")
        with (self._directory / "dockerd.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        eventually(self._answers, within=within, every=0.2)
        for image in IMAGES:
            if not self._docker("images", "-q", image).stdout.strip():
                saved = subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE)
                subprocess.run(["docker", "--host", self.host, "load", "-q"], stdin=saved.stdout, check=True)
                assert saved.wait(30) == 0

    def _answers(self) -> bool:
        return self._docker("version").returncode == 0

    def _docker(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["docker", "--host", self.host, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def stop(self, how: signal.Signals = signal.SIGTERM, *, within: float = 60) -> None:
        """By SIGTERM it ends its containers first, unless it has live-restore."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(within)
        self._process = None

    def kill_everything(self) -> None:
        """As a reset of the machine does: the engine, its containerd, the shims and every container, by kill -9."""
        if self._process is not None:
            self.stop(signal.SIGKILL)
        marker = str(self._directory)
        for _ in range(5):  # a shim that dies leaves its container to us
            victims = [pid for pid, line in _processes() if marker in line and pid != os.getpid()]
            children = [child for pid in victims for child in _descendants(pid)]
            for pid in {*victims, *children}:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue

    def close(self) -> None:
        if self._process is not None:
            for line in self._docker("ps", "-aq").stdout.split():
                self._docker("rm", "-f", line)
            self.stop(signal.SIGTERM)
        self.kill_everything()
        for line in sorted(Path("/proc/self/mounts").read_text().splitlines(), reverse=True):
            target = line.split()[1]
            if target.startswith(str(self._directory)):
                subprocess.run(["umount", "-l", target], capture_output=True)
        subprocess.run(["ip", "link", "delete", self._bridge], capture_output=True)
        eventually(self._remove, within=20)

    def _remove(self) -> bool:
        shutil.rmtree(self._directory)
        return True


def _is_alive(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=20)


def _processes() -> list[tuple[int, str]]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append((int(path.parent.name), path.read_bytes().replace(b"\0", b" ").decode(errors="replace")))
        except OSError:
            continue
    return found


def _descendants(pid: int) -> list[int]:
    try:
        text = " ".join(p.read_text() for p in Path(f"/proc/{pid}/task").glob("*/children"))
    except OSError:
        return []
    children = [int(child) for child in text.split()]
    return children + [grandchild for child in children for grandchild in _descendants(child)]
