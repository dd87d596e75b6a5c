"""`podbus exec`, `port-forward` and `cp` as a person types them, on a whole node."""

from __future__ import annotations

import hashlib
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import ROOT, Node, sleeper

pytestmark = [pytest.mark.nats, pytest.mark.docker, pytest.mark.e2e]


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    docker_client().close()
    with TemporaryDirectory(prefix="pb", dir="/tmp") as directory:
        one = Node(Path(directory))
        try:
            one.start()
            one.apply("web.yaml", sleeper("web", command="nc -ll -p 8080 -e cat & sleep 3600", grace=1))
            eventually(lambda: "web" in one.ready_pods(), within=60)
            yield one
        finally:
            one.close()


def command(node: Node, *words: str) -> list[str]:
    return [sys.executable, "-m", "cli.main", words[0], "--data", str(node.data), *words[1:]]


def run(node: Node, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command(node, *words), cwd=ROOT, input=stdin, capture_output=True, timeout=60)


def test_exec_has_the_commands_output_and_exit_code(node: Node) -> None:
    done = run(node, "exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 5")
    assert (done.returncode, done.stdout) == (5, b"out\n")
    assert done.stderr == b"err\ncommand terminated with exit code 5\n"


def test_exec_passes_stdin_on_to_its_end(node: Node) -> None:
    data = os.urandom(5 << 20)
    done = run(node, "exec", "-i", "web", "--", "cat", stdin=data)
    assert (done.returncode, done.stdout == data) == (0, True)


def test_exec_names_what_is_missing(node: Node) -> None:
    assert run(node, "exec", "nope", "--", "ls").stderr == b'podbus: pods "nope" not found\n'
    assert b"container x is not valid for pod web-n1" in run(node, "exec", "web", "-c", "x", "--", "ls").stderr
    assert run(node, "exec", "web").returncode == 2


def test_exec_with_a_terminal_has_its_size(node: Node) -> None:
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        command(node, "exec", "-it", "web", "--", "sh"), cwd=ROOT, stdin=inner, stdout=inner, stderr=inner
    )
    os.close(inner)
    os.set_blocking(outer, False)
    seen = b""

    def shows(text: bytes) -> bool:
        nonlocal seen
        try:
            seen += os.read(outer, 65536)
        except OSError:
            return text in seen
        return text in seen

    try:
        eventually(lambda: shows(b"# "), within=30)
        subprocess.run(["stty", "rows", "33", "cols", "99"], stdin=outer, check=True)
        process.send_signal(signal.SIGWINCH)  # it would come by itself to a process of that terminal's session
        os.write(outer, b"until stty size | grep '33 99'; do sleep 0.1; done; echo fin''ished\n")
        eventually(lambda: shows(b"finished"), within=30)
        os.write(outer, b"exit 3\n")
        assert process.wait(30) == 3
    finally:
        process.kill()
        process.wait()
        os.close(outer)


def test_port_forward_carries_connections_side_by_side(node: Node) -> None:
    process = subprocess.Popen(command(node, "port-forward", "web", ":8080"), cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        told = process.stdout.readline().decode()
        found = re.fullmatch(r"Forwarding from 127\.0\.0\.1:(\d+) -> 8080\n", told)
        assert found, told
        links = [socket.create_connection(("127.0.0.1", int(found[1])), timeout=30) for _ in range(4)]
        for number, one in enumerate(links):
            one.sendall(b"%d" % number * 100_000)
            one.shutdown(socket.SHUT_WR)
        for number, one in enumerate(links):
            assert _all_of(one) == b"%d" % number * 100_000
            one.close()
    finally:
        process.terminate()
        process.wait(30)


def _all_of(link: socket.socket) -> bytes:
    got = b""
    while data := link.recv(65536):
        got += data
    return got


def test_cp_brings_a_file_and_a_directory_and_fetches_them_again(node: Node, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "big").write_bytes(os.urandom(8 << 20))
    (tree / "sub" / "small file").write_text("x\n")
    assert run(node, "cp", str(tree), "web:/tmp/tree").returncode == 0
    done = run(node, "cp", "default/web-n1:/tmp/tree", str(tmp_path / "back"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert _sums(tmp_path / "back") == _sums(tree)
    assert run(node, "cp", str(tree / "big"), "web:/tmp/one").returncode == 0
    assert run(node, "cp", "web:/tmp/one", f"{tmp_path}/").returncode == 0
    assert (tmp_path / "one").read_bytes() == (tree / "big").read_bytes()


def _sums(root: Path) -> dict[str, str]:
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_cp_tells_what_tar_says(node: Node, tmp_path: Path) -> None:
    done = run(node, "cp", "web:/no/such", str(tmp_path / "x"))
    assert done.returncode == 1
    assert b"no such" in done.stderr.lower()
    assert not (tmp_path / "x").exists()
    assert b"one of source and target must be in a pod" in run(node, "cp", "/a", "/b").stderr
