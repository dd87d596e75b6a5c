"""Images of a registry that wants a password: who shows it gets them, who doesn't gets none, not even a present one."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_pull import reasons, waiting
from tests.support.docker_env import docker_client
from tests.support.eventually import eventually
from tests.support.node import Node, NodeMaker, is_ready, sleeper
from tests.support.registry import PASSWORD, USER, Registry

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.nats]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    made = Registry(tmp_path / "registry", is_private=True)
    made.start()
    yield made
    made.stop()


def secret(name: str, kind: str, registry: str, password: str) -> str:
    auth = base64.b64encode(f"{USER}:{password}".encode()).decode()
    entries: Any = {registry: {"auth": auth}}
    key = ".dockercfg" if kind == "dockercfg" else ".dockerconfigjson"
    text = json.dumps(entries if kind == "dockercfg" else {"auths": entries})
    head = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\ntype: kubernetes.io/{kind}\n"
    return f"{head}stringData:\n  {key}: '{text}'\n"


def pod(name: str, image: str, *secrets: str, policy: str = "IfNotPresent") -> str:
    manifest = sleeper(name).replace("image: busybox:1.36", f"image: {image}\n    imagePullPolicy: {policy}")
    listed = ", ".join(f"{{name: {one}}}" for one in secrets)
    return manifest.replace("spec:\n", f"spec:\n  imagePullSecrets: [{listed}]\n", 1)


def test_a_private_image_is_for_pods_with_its_secret_only(a_node: NodeMaker, registry: Registry) -> None:
    """Both types of Secret, the right one behind a wrong one and one that isn't there (which only warns); a pod without
    any is refused by the registry, and isn't given the image when it's there."""
    image = registry.push("busybox:1.36", "podbus-test/private:1")
    other = registry.push("busybox:1.36", "podbus-test/other:1")
    node = a_node()
    try:
        node.apply("good.yaml", secret("good", "dockerconfigjson", f"http://{registry.address}/v2/", PASSWORD))
        node.apply("old.yaml", secret("old", "dockercfg", registry.address, PASSWORD))
        node.apply("bad.yaml", secret("bad", "dockerconfigjson", registry.address, "guess"))
        node.apply("without.yaml", pod("without", image))
        eventually(lambda: waiting(node, "without").get("reason") == "ImagePullBackOff", within=30)
        assert "no basic auth credentials" in waiting(node, "without")["message"]
        node.apply("wrong.yaml", pod("wrong", image, "bad"))
        eventually(lambda: "unauthorized" in waiting(node, "wrong").get("message", ""), within=30)

        node.apply("right.yaml", pod("right", image, "missing", "bad", "good"))
        eventually(lambda: is_ready(node.pod("right")), within=30)
        eventually(lambda: "FailedToRetrieveImagePullSecret" in reasons(node, "right"), within=15)
        node.apply("dockercfg.yaml", pod("dockercfg", other, "old"))
        eventually(lambda: is_ready(node.pod("dockercfg")), within=30)

        assert not is_ready(node.pod("without"))
        node.apply("late.yaml", pod("late", image))
        node.apply("never.yaml", pod("never", image, policy="Never"))
        node.apply("again.yaml", pod("again", image, "old"))
        eventually(lambda: is_ready(node.pod("again")), within=30)
        eventually(lambda: waiting(node, "late").get("reason") == "ImagePullBackOff", within=30)
        eventually(lambda: waiting(node, "never").get("reason") == "ErrImageNeverPull", within=30)
        eventually(lambda: "already present" in _messages(node, "again"), within=15)
        assert PASSWORD not in json.dumps(node.pods()) + node.log() + json.dumps(node.json("/podbus/events"))
    finally:
        node.close()
        for reference in (image, other):
            docker_client().remove_image(reference, force=True)


def _messages(node: Node, name: str) -> str:
    events = node.json(f"/podbus/events?namespace=default&name={name}-{node.name}")["events"]
    return "\n".join(str(e.get("message", "")) for e in events)
