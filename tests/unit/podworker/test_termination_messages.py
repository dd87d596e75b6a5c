"""A log that becomes a status: without the pod's Secrets' values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from services.podworker.adapters.docker_translate import Observed
from services.podworker.adapters.pod_files import PodFiles
from services.podworker.adapters.termination_messages import with_message
from services.podworker.core.container_config import ContainerInputs, container_config
from services.podworker.core.environment import Environment
from services.podworker.core.model import RuntimeContainer
from shared.kube import names
from tests.support.builders import UID, a_container, a_node, a_pod, exited

POD = a_pod(a_container("c", terminationMessagePolicy="FallbackToLogsOnError"))
C = POD.spec.containers[0]


class Log:
    """The engine's side of it."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    def logs(self, _container_id: str, *, stdout: bool, stderr: bool, tail: int) -> bytes:
        assert (stdout, stderr, tail) == (True, True, 80)
        return self.text


def message_of(
    log: bytes, *, env: list[str], labels: dict[str, str], files: list[str] | None = None, code: int = 1
) -> str:
    policy = {names.ANNOTATION_TERMINATION_POLICY: "FallbackToLogsOnError", names.LABEL_POD_UID: UID, **labels}
    seen = Observed(key="", labels=policy, fact=exited(C, code))
    inspect: dict[str, Any] = {"Config": {"Labels": policy, "Env": env}}
    client: Any = Log(log)
    fact = with_message(client, seen, inspect, lambda uid: files or [] if uid == UID else ["other"]).fact
    assert isinstance(fact, RuntimeContainer)
    return fact.termination_message


def test_the_values_of_variables_from_secrets_are_masked() -> None:
    env, log = ["TOKEN=s3cret", "MODE=fast"], b"mode fast, token s3cret\n"
    private = {names.LABEL_PRIVATE_VARIABLES: '["TOKEN"]'}
    assert message_of(log, env=env, labels=private) == "mode fast, token ***\n"
    assert message_of(log, env=env, labels={}) == "mode fast, token s3cret\n"
    assert message_of(log, env=env, labels=private, code=0) == ""


def test_the_files_of_the_pods_secret_volumes_are_masked() -> None:
    assert message_of(b"read s3cret from a file", env=[], labels={}, files=["s3cret\n"]) == "read *** from a file"


def test_a_value_is_masked_before_the_text_is_cut() -> None:
    """Half a value at the cut would be half a secret."""
    log = b"s3cret" * 600
    message = message_of(log, env=["TOKEN=s3cret"], labels={names.LABEL_PRIVATE_VARIABLES: '["TOKEN"]'})
    assert set(message) == {"*"}
    assert len(message) <= 2048


def test_a_container_is_labelled_with_the_names_of_its_private_variables() -> None:
    given = Environment({"B": "s3cret", "A": "x"}, frozenset({"B"}))
    labels = labels_with(given)
    assert labels[names.LABEL_PRIVATE_VARIABLES] == '["B"]'
    assert "s3cret" not in str(labels)
    assert names.LABEL_PRIVATE_VARIABLES not in labels_with(Environment({"A": "x"}))


def labels_with(environment: Environment) -> dict[str, str]:
    config = container_config(
        POD, C, a_node(), 0, sandbox_id="s", source="file", image_user="", inputs=ContainerInputs(environment)
    )
    return dict(config.labels)


def test_secret_volumes_files_are_read_and_their_links_are_not(tmp_path: Path) -> None:
    volume = tmp_path / "pods" / UID / "volumes" / "kubernetes.io~secret" / "v"
    (volume / "..1").mkdir(parents=True)
    (volume / "..1" / "key").write_text("s3cret")
    (volume / "..data").symlink_to("..1")
    (volume / "key").symlink_to("..data/key")
    files = PodFiles(tmp_path, tmp_path / "logs", tmp_path / "flat")
    assert files.secret_values(UID) == ["s3cret"]
    assert files.secret_values("other") == files.secret_values("..") == []
