"""Fixtures of the runtime suite."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.runtime.engines import DockerEngine, Engine, ModelEngine


@pytest.fixture(params=["model", pytest.param("docker", marks=pytest.mark.docker)])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """The model and the real one, in turn."""
    opened: Engine = DockerEngine(tmp_path) if request.param == "docker" else ModelEngine()
    yield opened
    opened.close()


@pytest.fixture
def socket_dir() -> Iterator[Path]:
    """A short directory: the path of a socket may have 107 characters."""
    directory = tempfile.mkdtemp(prefix="podbus-")
    yield Path(directory)
    shutil.rmtree(directory)


@pytest.fixture
def docker_engine(tmp_path: Path) -> Iterator[DockerEngine]:
    opened = DockerEngine(tmp_path)
    yield opened
    opened.close()
