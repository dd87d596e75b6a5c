"""Admission is one transaction over all admitted pods, whoever owns them."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from services.podworker.adapters.pod_store import SqlitePodStore
from services.podworker.core.model import PodMemory, Preemption, Rejection, Termination
from services.podworker.core.preemption import PREEMPTED
from services.podworker.ports import Demand, NodeLimits
from shared.kube.status import PodStatus
from tests.contract.storage.stores import ROOMY, a_memory, new_store

CPU_TOO_MUCH = (
    "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of "
    "pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 62000), ]"
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlitePodStore]:
    opened = new_store(tmp_path)
    yield opened
    opened.close()


def wants(cpu: int = 0, memory: int = 0, ports: tuple[tuple[str, str, int], ...] = ()) -> Demand:
    return Demand(cpu_milli=cpu, memory_bytes=memory, host_ports=ports)


def reason(store: SqlitePodStore, memory: PodMemory, demand: Demand, limits: NodeLimits = ROOMY) -> str:
    rejection = store.admit(memory, b"", demand, limits)
    assert not isinstance(rejection, Preemption)
    return "" if rejection is None else rejection.reason


def test_a_static_pod_too_big_says_what_the_kubelet_recorded(store: SqlitePodStore) -> None:
    """golden a28: 64 cores on a node of two."""
    rejection = store.admit(a_memory(), b"", wants(cpu=64000), ROOMY)
    assert isinstance(rejection, Rejection)
    assert (rejection.reason, rejection.message) == ("UnexpectedAdmissionError", CPU_TOO_MUCH)


def test_cpu_and_memory_short_are_told_together(store: SqlitePodStore) -> None:
    rejection = store.admit(a_memory(), b"", wants(cpu=2001, memory=(1 << 30) + 5), ROOMY)
    assert isinstance(rejection, Rejection)
    assert rejection.message.endswith("[(res: cpu, q: 1), (res: memory, q: 5), ]")


def test_a_pod_of_the_api_says_out_of_the_resource(store: SqlitePodStore) -> None:
    rejection = store.admit(a_memory(source="api"), b"", wants(cpu=3000), ROOMY)
    assert isinstance(rejection, Rejection) and rejection.reason == "OutOfcpu"
    assert rejection.message == ("Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000")


def test_requests_of_admitted_pods_are_summed(store: SqlitePodStore) -> None:
    assert reason(store, a_memory("u1"), wants(cpu=1500)) == ""
    assert reason(store, a_memory("u2"), wants(cpu=501)) == "UnexpectedAdmissionError"
    assert reason(store, a_memory("u3"), wants(cpu=500)) == ""


def test_a_pod_that_asks_for_nothing_fits_a_full_node(store: SqlitePodStore) -> None:
    assert reason(store, a_memory("u1"), wants(cpu=2000)) == ""
    assert reason(store, a_memory("u2"), wants()) == ""


def test_the_number_of_pods_is_bounded(store: SqlitePodStore) -> None:
    limits = msgspec.structs.replace(ROOMY, pods=1)
    assert reason(store, a_memory("u1"), wants(), limits) == ""
    assert reason(store, a_memory("u2"), wants(), limits) == "UnexpectedAdmissionError"
    assert reason(store, a_memory("u3", source="api"), wants(), limits) == "OutOfpods"


@pytest.mark.parametrize(
    ("taken", "asked", "refused"),
    [
        (("TCP", "", 80), ("TCP", "", 80), True),
        (("TCP", "", 80), ("UDP", "", 80), False),
        (("TCP", "127.0.0.1", 80), ("TCP", "127.0.0.2", 80), False),
        (("TCP", "127.0.0.1", 80), ("TCP", "", 80), True),
        (("TCP", "0.0.0.0", 80), ("TCP", "10.0.0.1", 80), True),
        (("TCP", "", 80), ("TCP", "", 81), False),
    ],
)
def test_a_host_port_belongs_to_one_pod_per_protocol_and_address(
    store: SqlitePodStore, taken: tuple[str, str, int], asked: tuple[str, str, int], refused: bool
) -> None:
    """T16. No address means all addresses."""
    assert reason(store, a_memory("u1"), wants(ports=(taken,))) == ""
    assert reason(store, a_memory("u2"), wants(ports=(asked,))) == ("NodePorts" if refused else "")


def test_the_port_reason_has_the_kubelets_words_and_names_port_and_holder(store: SqlitePodStore) -> None:
    store.admit(a_memory("u1"), b"", wants(ports=(("TCP", "", 80),)), ROOMY)
    rejection = store.admit(a_memory("u2"), b"", wants(ports=(("TCP", "", 80),)), ROOMY)
    assert isinstance(rejection, Rejection) and rejection.message == (
        "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports: "
        "80/TCP is taken by default/web"
    )


def test_an_admitted_pod_is_never_judged_again(store: SqlitePodStore) -> None:
    """At a restart the node may be smaller than it was."""
    assert reason(store, a_memory("u1"), wants(cpu=2000)) == ""
    smaller = msgspec.structs.replace(ROOMY, cpu_milli=100, pods=0)
    assert reason(store, a_memory("u1"), wants(cpu=2000), smaller) == ""
    running = msgspec.structs.replace(a_memory("u2"), admitted=True)
    assert reason(store, running, wants(cpu=2000), smaller) == ""


def test_a_rejected_pod_may_be_judged_again(store: SqlitePodStore) -> None:
    """And takes no room while it is rejected."""
    assert reason(store, a_memory("u1"), wants(cpu=3000)) == "UnexpectedAdmissionError"
    assert reason(store, a_memory("u2"), wants(cpu=2000)) == ""
    store.delete("u2")
    assert reason(store, a_memory("u1"), wants(cpu=2000)) == ""


def test_a_finished_pod_takes_its_room_until_nothing_of_it_runs(store: SqlitePodStore) -> None:
    """Its sidecars and its sandbox end after its phase has become terminal."""
    ports = (("TCP", "", 80),)
    store.admit(a_memory("u1"), b"", wants(cpu=2000, ports=ports), ROOMY)
    status = PodStatus(phase="Succeeded", qos_class="Burstable")
    finished = msgspec.structs.replace(a_memory("u1"), admitted=True, status=status)
    store.save(finished, b"")
    assert reason(store, a_memory("u2"), wants(ports=ports)) == "NodePorts"
    store.save(msgspec.structs.replace(finished, is_at_rest=True), b"")
    assert reason(store, a_memory("u2"), wants(cpu=2000, ports=ports)) == ""


def test_a_pod_that_was_told_to_end_takes_its_room_until_its_containers_have_ended(store: SqlitePodStore) -> None:
    store.admit(a_memory("u1"), b"", wants(cpu=2000), ROOMY)
    ending = msgspec.structs.replace(
        a_memory("u1"), admitted=True, termination=Termination(at=1.0, grace=30, reason="removed")
    )
    store.save(ending, b"")
    assert reason(store, a_memory("u2"), wants(cpu=1)) == "UnexpectedAdmissionError"
    store.save(msgspec.structs.replace(ending, terminated_at=2.0), b"")
    assert reason(store, a_memory("u2"), wants(cpu=1)) == ""


def test_eight_workers_never_admit_more_than_fits(tmp_path: Path) -> None:
    """400 pods of 100m from 8 processes on a node of 2 cores: 20 get in, and a host port has one owner."""
    new_store(tmp_path).close()
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_admit_many, args=(tmp_path, number)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 8
    store = SqlitePodStore(tmp_path)
    pods = store.load_slots(range(256))
    admitted = [pod.memory for pod in pods if pod.memory.admitted]
    assert len(pods) == 408
    assert len([memory for memory in admitted if memory.name.startswith("cpu")]) == 20
    assert len([memory for memory in admitted if memory.name.startswith("port")]) == 1
    store.close()


def _admit_many(directory: Path, number: int) -> None:
    store = SqlitePodStore(directory)
    port = a_memory(f"port-{number}", f"port-{number}")
    store.admit(port, b"", wants(ports=(("TCP", "", 8080),)), ROOMY)
    for count in range(50):
        uid = f"cpu-{number}-{count}"
        store.admit(a_memory(uid, uid), b"{}", wants(cpu=100), ROOMY)
    store.close()


def a_body(**spec: object) -> bytes:
    return msgspec.json.encode({"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c"}], **spec}})


def test_a_critical_pod_waits_for_those_that_it_preempts_and_takes_their_place(store: SqlitePodStore) -> None:
    """A node agent (a static pod) comes to a node that is full of pods of the API."""
    one = msgspec.structs.replace(ROOMY, pods=2)
    assert store.admit(a_memory("u1", "a", "api"), a_body(), wants(cpu=100), one) is None
    assert store.admit(a_memory("u2", "b", "api"), a_body(), wants(cpu=200), one) is None
    agent = a_memory("u3", "agent")
    assert store.admit(agent, a_body(), wants(), one) == Preemption(victims=("u1",))
    assert store.preempted() == {"u1"}
    row = store.load("u3")
    assert row is not None and not row.memory.admitted
    failed = msgspec.structs.replace(a_memory("u1", "a", "api"), admitted=True, failure=PREEMPTED)
    store.save(failed, a_body())
    assert store.admit(agent, a_body(), wants(), one) == Preemption(victims=("u1",))  # nobody else goes meanwhile
    store.save(msgspec.structs.replace(failed, is_at_rest=True), a_body())
    assert store.admit(agent, a_body(), wants(), one) is None
    assert store.preempted() == set()


def test_a_critical_pod_that_is_gone_preempts_nobody(store: SqlitePodStore) -> None:
    one = msgspec.structs.replace(ROOMY, pods=1)
    assert store.admit(a_memory("u1", "a", "api"), a_body(), wants(), one) is None
    assert store.admit(a_memory("u2", "agent"), a_body(), wants(), one) == Preemption(victims=("u1",))
    store.delete("u2")
    assert store.preempted() == set()


def test_a_resize_of_a_critical_pod_preempts_nobody(store: SqlitePodStore) -> None:
    assert store.admit(a_memory("u1", "a", "api"), a_body(), wants(cpu=1500), ROOMY) is None
    agent = msgspec.structs.replace(a_memory("u2", "agent"), admitted=True)
    more = msgspec.structs.replace(wants(cpu=600), is_critical=True)
    rejection = store.resize(agent, a_body(), more, ROOMY)
    assert rejection is not None and rejection.reason == "OutOfcpu"
    assert store.preempted() == set()
