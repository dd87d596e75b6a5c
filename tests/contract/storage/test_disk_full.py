"""A worker that can't commit is told so, keeps what it had, and goes on once there is room again."""

from __future__ import annotations

import resource
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.podworker.ports import StoreUnavailable
from tests.contract.storage.stores import a_memory, new_store

BODY = b"x" * 20_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 1 MiB; where mounting isn't allowed the other test covers the rule."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "podbus-test", tmp_path], check=False)
    if mounted.returncode != 0:
        pytest.skip("needs the right to mount a tmpfs")
    yield tmp_path
    subprocess.run(["umount", "-l", tmp_path], check=True)


def test_a_full_disk_is_store_unavailable_and_loses_nothing(small_disk: Path) -> None:
    store = new_store(small_disk)
    store.save(a_memory("kept"), b"body")
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError):
        while True:
            file.write(b"\0" * 4096)
    with pytest.raises(StoreUnavailable, match=r"pods\.db: .*(full|disk)"):
        for number in range(100):
            store.save(a_memory(f"u{number}"), BODY)
    kept = store.load("kept")
    assert kept is not None and kept.body == b"body"
    ballast.unlink()
    assert store.save(a_memory("kept"), b"newer") == 2
    store.close()


def test_a_file_size_limit_is_store_unavailable(tmp_path: Path) -> None:
    """The same by a limit of the process, which needs no rights; in a process of its own."""
    new_store(tmp_path).close()
    code = f"""
        import pathlib, resource, sys
        from services.podworker.adapters.pod_store import SqlitePodStore
        from services.podworker.ports import StoreUnavailable
        from tests.contract.storage.stores import a_memory
        store = SqlitePodStore(pathlib.Path({str(tmp_path)!r}))
        store.save(a_memory("kept"), b"body")
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
        try:
            for number in range(100):
                store.save(a_memory(f"u{{number}}"), {BODY!r})
        except StoreUnavailable as error:
            print(error)
        assert store.load("kept").body == b"body"
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert store.save(a_memory("kept"), b"newer") == 2
        sys.exit(0)
    """
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "pods.db" in done.stdout
