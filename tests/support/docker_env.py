"""The real Docker Engine for tests: an instance label of the test's own, swept away at its end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from shared.kube import names

if TYPE_CHECKING:
    from docker import APIClient


def docker_client() -> APIClient:
    """A client; where no engine answers CI fails and a person is told."""
    from docker import APIClient
    from docker.errors import DockerException

    try:
        return APIClient(base_url=os.environ.get("DOCKER_HOST"), version="auto")
    except DockerException as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"Docker doesn't answer: {error}; run make setup")
        pytest.skip(f"Docker doesn't answer: {error}; run make setup")


def sweep(client: APIClient, instance: str) -> None:
    """Remove all containers of a test's instance."""
    label = f"{names.LABEL_INSTANCE}={instance}"
    for found in client.containers(all=True, filters={"label": [label]}):
        client.remove_container(found["Id"], force=True, v=True)
