"""Which pod a person means."""

from __future__ import annotations

from typing import Any

import pytest

from cli.get import NotFound, find_pod


def pod(name: str, namespace: str = "default", source: str = "file") -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {"kubernetes.io/config.source": source},
        },
        "spec": {"nodeName": "n1"},
    }


def test_a_static_pods_short_name_is_accepted_while_unique() -> None:
    assert find_pod([pod("web-n1"), pod("db-n1")], "default", "web")["metadata"]["name"] == "web-n1"


def test_the_full_name_wins_over_a_short_one() -> None:
    assert find_pod([pod("web-n1-n1"), pod("web-n1")], "default", "web-n1")["metadata"]["name"] == "web-n1"


def test_a_pod_of_the_api_server_has_no_short_name() -> None:
    with pytest.raises(NotFound):
        find_pod([pod("web-n1", source="api")], "default", "web")


def test_a_pod_of_another_namespace_is_hinted_at() -> None:
    with pytest.raises(NotFound, match="there is one in other"):
        find_pod([pod("web-n1", "other")], "default", "web")
