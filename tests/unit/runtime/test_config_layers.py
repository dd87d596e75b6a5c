"""Configuration from several places: a file, drop-ins, flags; which wins, and what is refused where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.runtime.config import KubeletConfig
from shared.runtime.config_checks import CHECKED
from shared.runtime.config_files import drop_ins, merge_patch
from shared.runtime.config_flags import CONFIG_FLAGS
from shared.runtime.config_names import AS_IT_IS, REFUSED, WITHOUT_EFFECT
from shared.runtime.config_reader import EFFECTIVE, load_config

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
FIELDS = (Path(__file__).parent / "kubelet_configuration_fields.txt").read_text().split()

leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
keys = st.sampled_from("abc")
documents = st.recursive(leaves, lambda inner: st.dictionaries(keys, inner, max_size=3), max_leaves=8)
objects = st.dictionaries(keys, documents, max_size=3)


class Place:
    """A configuration file and its directory of drop-ins."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "kubelet.yaml"
        self.directory = directory / "conf.d"
        self.directory.mkdir()
        self.file.write_text(HEAD)

    def read(self, body: str = "", **flags: str) -> tuple[KubeletConfig, list[str], list[str]]:
        self.file.write_text(HEAD + body)
        given_flags = {name.replace("_", "-"): text for name, text in flags.items()}
        config, errors, warnings = load_config(self.file, self.directory, given_flags)
        root = f"{self.file.parent}/"
        return config, [one.removeprefix(root) for one in errors], [one.removeprefix(root) for one in warnings]

    def drop_in(self, name: str, body: str, head: str = HEAD) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + body)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_flag_wins_over_the_file(place: Place) -> None:
    """1"""
    assert place.read("maxPods: 50\n", max_pods="20")[0].max_pods == 20


def test_a_later_drop_in_wins_and_other_names_are_not_read(place: Place) -> None:
    """2"""
    place.drop_in("20-b.conf", "maxPods: 40\n")
    place.drop_in("10-a.conf", "maxPods: 30\npodsPerCore: 7\n")
    place.drop_in("c.yaml", "maxPods: 99\n")
    config, errors, warnings = place.read("maxPods: 20\nclusterDomain: x\n")
    assert (errors, warnings) == ([], [])
    assert (config.max_pods, config.pods_per_core, config.cluster_domain) == (40, 7, "x")
    assert place.read("", max_pods="5")[0].max_pods == 5


def test_drop_ins_of_directories_below_come_in_their_place(place: Place) -> None:
    for name in ("30.conf", "20/z.conf", "20/a.conf", "10.conf", "20/readme"):
        place.drop_in(name, "")
    assert [str(path.relative_to(place.directory)) for path in drop_ins(place.directory)] == [
        "10.conf",
        "20/a.conf",
        "20/z.conf",
        "30.conf",
    ]


def test_drop_ins_need_no_file(place: Place) -> None:
    place.drop_in("a.conf", "maxPods: 9\n")
    assert load_config(None, place.directory)[0].max_pods == 9


def test_objects_are_merged_lists_replaced_and_null_takes_away(place: Place) -> None:
    place.drop_in("a.conf", "evictionHard: {nodefs.available: 1%}\nclusterDNS: [10.0.0.2]\nmaxPods: null\n")
    config, errors, _ = place.read(
        "evictionHard: {memory.available: 1Gi}\nclusterDNS: [10.0.0.1, 10.0.0.3]\nmaxPods: 3\n"
    )
    assert errors == []
    assert config.eviction_hard == {"memory.available": "1Gi", "nodefs.available": "1%"}
    assert (config.cluster_dns, config.max_pods) == (("10.0.0.2",), 110)


def test_gates_of_file_and_flag_are_merged_and_the_flag_wins(place: Place) -> None:
    """4"""
    body = "featureGates: {NodeSwap: true}\n"
    assert place.read(body, feature_gates="ImageVolume=true")[0].feature_gates == {
        "NodeSwap": True,
        "ImageVolume": True,
    }
    assert place.read(body, feature_gates="NodeSwap=false")[0].feature_gates == {"NodeSwap": False}


def test_an_unknown_gate_is_refused_as_by_the_kubelet(place: Place) -> None:
    assert place.read("featureGates: {NodeSwop: true, ImageVolume: 1}\n")[1] == [
        "kubelet.yaml:3: featureGates: unrecognized feature gate: NodeSwop; did you mean NodeSwap?",
        "kubelet.yaml:3: featureGates: ImageVolume: must be true or false, got a whole number",
    ]
    assert place.read("", feature_gates="Foo=true")[1] == [
        "--feature-gates: featureGates: unrecognized feature gate: Foo"
    ]


def test_any_other_map_or_list_of_a_flag_is_all_there_is(place: Place) -> None:
    place.drop_in("a.conf", "kubeReserved: {cpu: 100m, memory: 1Gi}\n")
    config, errors, _ = place.read("clusterDNS: [10.0.0.1]\n", kube_reserved="cpu=1", cluster_dns="10.0.0.7,10.0.0.8")
    assert errors == []
    assert config.kube_reserved == {"cpu": "1"}
    assert config.cluster_dns == ("10.0.0.7", "10.0.0.8")


def test_each_file_says_its_kind_and_a_wrong_one_is_named(place: Place) -> None:
    """5"""
    place.drop_in("a.conf", "maxPods: 3\n", head="")
    place.drop_in("b.conf", "", head=HEAD.replace("KubeletConfiguration", "Pod"))
    assert place.read("maxPod: 2\n")[1:] == (
        [
            'conf.d/a.conf: apiVersion: must be "kubelet.config.k8s.io/v1beta1", it is missing',
            'conf.d/a.conf: kind: must be "KubeletConfiguration", it is missing',
            'conf.d/b.conf:2: kind: must be "KubeletConfiguration", got "Pod"',
        ],
        ['kubelet.yaml:3: maxPod: unknown field; did you mean "maxPods"?'],
    )


def test_every_fault_of_all_places_is_told_at_once_where_it_was_said(place: Place) -> None:
    place.drop_in("a.conf", "\nmaxPods: many\n")
    place.drop_in("b.conf", "a: [\n")
    errors = place.read("maxPods: 1\nport: x\n", healthz_port="70000", cluster_dns="ten", pods_per_core="few")[1]
    assert [error.partition(": ")[0] for error in errors] == [
        "conf.d/b.conf",
        "--pods-per-core",
        "kubelet.yaml:4",
        "conf.d/a.conf:4",
        "--healthz-port",
        "--cluster-dns",
    ]


def test_a_missing_directory_is_told(tmp_path: Path) -> None:
    assert load_config(None, tmp_path / "none")[1] == [f"{tmp_path / 'none'}: No such file or directory"]


def test_soft_eviction_without_a_grace_period_names_the_signal(place: Place) -> None:
    """39"""
    body = (
        "evictionSoft: {memory.available: 1Gi, nodefs.available: 5%}\nevictionSoftGracePeriod: {nodefs.available: 1m}\n"
    )
    assert place.read(body)[1] == [
        "kubelet.yaml:3: evictionSoft: memory.available: "
        "a grace period must be specified for it in evictionSoftGracePeriod"
    ]


def test_numa_alignment_is_refused_with_a_reason_and_none_is_accepted_silently(place: Place) -> None:
    """50"""
    (error,) = place.read("topologyManagerPolicy: single-numa-node\n")[1]
    assert error.startswith("kubelet.yaml:3: topologyManagerPolicy: is not supported: podbus aligns nothing to NUMA")
    assert place.read("topologyManagerPolicy: none\ncpuManagerPolicy: none\nmemoryManagerPolicy: None\n")[1:] == (
        [],
        [],
    )
    assert len(place.read("", topology_manager_policy="restricted")[1]) == 1


def test_what_kubeadm_writes_out_empty_is_neither_refused_nor_warned_of(place: Place) -> None:
    body = (
        "cpuManagerReconcilePeriod: 0s\nevictionPressureTransitionPeriod: 0s\nmemorySwap: {}\n"
        "logging: {flushFrequency: 0, options: {json: {infoBufferSize: '0'}}, verbosity: 0}\n"
        "shutdownGracePeriod: 0s\nruntimeRequestTimeout: 0s\nvolumeStatsAggPeriod: 0s\nfailSwapOn: false\n"
    )
    _, errors, warnings = place.read(body)
    assert errors == []
    assert [warning for warning in warnings if "logging" not in warning] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("enableServer: false", "enableServer"),
        ("cgroupsPerQOS: false", "cgroupsPerQOS"),
        ("cpuCFSQuota: false", "cpuCFSQuota"),
        ("cpuCFSQuotaPeriod: 10ms", "cpuCFSQuotaPeriod"),
        ("cpuManagerPolicy: static", "cpuManagerPolicy"),
        ("enforceNodeAllocatable: [pods, system-reserved]", "enforceNodeAllocatable"),
        ("memoryManagerPolicy: Static", "memoryManagerPolicy"),
        ("memorySwap: {swapBehavior: LimitedSwap}", "memorySwap"),
        ("reservedSystemCPUs: 0-1", "reservedSystemCPUs"),
        ("runOnce: true", "runOnce"),
        ("eventBurst: -1", "eventBurst"),
        ("oomScoreAdj: 1001", "oomScoreAdj"),
        ("hairpinMode: maybe", "hairpinMode"),
        ("shutdownGracePeriodCriticalPods: 5s", "shutdownGracePeriodCriticalPods"),
        ("shutdownGracePeriod: 10ms", "shutdownGracePeriod"),
        ("systemCgroups: /x", "systemCgroups"),
    ],
)
def test_what_a_kubelet_refuses_or_podbus_cannot_do_is_an_error(place: Place, body: str, field: str) -> None:
    (error,) = place.read(f"{body}\n")[1]
    assert error.startswith(f"kubelet.yaml:3: {field}: ")


def test_each_field_of_the_newest_kubernetes_is_in_exactly_one_class() -> None:
    classes = (EFFECTIVE, frozenset(REFUSED), frozenset(WITHOUT_EFFECT))
    assert {name: sum(name in one for one in classes) for name in FIELDS} == dict.fromkeys(FIELDS, 1)
    assert frozenset().union(*classes) == frozenset(FIELDS)
    assert AS_IT_IS.keys() <= WITHOUT_EFFECT.keys()
    assert CHECKED.keys() <= WITHOUT_EFFECT.keys()
    assert all(refused.why for refused in REFUSED.values())
    assert all(WITHOUT_EFFECT.values())


def test_each_flag_is_for_a_known_field() -> None:
    assert {flag.place[0] for flag in CONFIG_FLAGS.values()} <= frozenset(FIELDS)


@pytest.mark.parametrize(
    ("flag", "text", "error"),
    [
        ("max-pods", "few", '--max-pods: must be a whole number, got "few"'),
        ("seccomp-default", "yes", '--seccomp-default: must be true or false, got "yes"'),
        (
            "eviction-hard",
            "memory.available=1Gi",
            '--eviction-hard: must be NAME<VALUE,..., got "memory.available=1Gi"',
        ),
        ("register-with-taints", "a=b", '--register-with-taints: must be KEY[=VALUE]:EFFECT,..., got "a=b"'),
    ],
)
def test_a_flag_that_cannot_be_read_names_itself(flag: str, text: str, error: str) -> None:
    assert load_config(None, None, {flag: text})[1] == [error]


def test_flags_are_read_in_the_kubelets_forms() -> None:
    config, errors, warnings = load_config(
        None,
        None,
        {
            "eviction-hard": "memory.available<200Mi,nodefs.available<10%",
            "register-with-taints": "a=b:NoSchedule,c:NoExecute",
            "anonymous-auth": "T",
            "client-ca-file": "/ca",
            "system-reserved": "cpu=100m, memory=1Gi",
        },
    )
    assert (errors, warnings) == ([], [])
    assert config.eviction_hard == {"memory.available": "200Mi", "nodefs.available": "10%"}
    assert config.register_with_taints == (
        {"key": "a", "value": "b", "effect": "NoSchedule"},
        {"key": "c", "effect": "NoExecute"},
    )
    assert (config.anonymous, config.client_ca_file) == (True, "/ca")
    assert config.system_reserved == {"cpu": "100m", "memory": "1Gi"}


# -- merging, whatever is merged --------------------------------------------------------------------------------


def has_null(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and any(map(has_null, value.values())))


@given(objects)
def test_an_empty_patch_changes_nothing(document: dict[str, Any]) -> None:
    assert merge_patch(document, {}) == document


@given(objects, objects)
def test_the_same_patch_twice_is_once(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge_patch(document, patch)
    assert merge_patch(once, patch) == once


@given(objects, objects)
def test_what_a_patch_says_is_so_and_what_it_does_not_name_stays(document: Any, patch: dict[str, Any]) -> None:
    result = merge_patch(document, patch)
    for key, value in patch.items():
        if value is None:
            assert key not in result
        elif not isinstance(value, dict):
            assert result[key] == value
    assert {key: value for key, value in result.items() if key not in patch} == {
        key: value for key, value in document.items() if key not in patch
    }


@given(objects, objects)
def test_neither_side_of_a_merge_is_changed(document: dict[str, Any], patch: dict[str, Any]) -> None:
    before = json.dumps([document, patch])
    merge_patch(document, patch)
    assert json.dumps([document, patch]) == before


@given(objects, objects)
def test_a_patch_leaves_no_null_of_its_own(document: dict[str, Any], patch: dict[str, Any]) -> None:
    assert has_null(document) or not has_null(merge_patch(document, patch))


# -- whatever is written ----------------------------------------------------------------------------------------

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["0s", "1Gi", "5%"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3),
    max_leaves=6,
)
written = st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5) | st.integers(), anything, max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(written, written)
def test_no_file_and_no_drop_in_is_too_strange_to_be_told_of(tmp_path: Path, one: Any, other: Any) -> None:
    head = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    (tmp_path / "a.conf").write_text(yaml.safe_dump({**one, **head}))
    (tmp_path / "b.conf").write_text(yaml.safe_dump({**other, **head}))
    config, errors, warnings = load_config(None, tmp_path)
    assert not errors or config == KubeletConfig()
    assert all(text.startswith((f"{tmp_path}/a.conf", f"{tmp_path}/b.conf")) for text in (*errors, *warnings))
