"""A machine that is well, to be varied by msgspec.structs.replace."""

from __future__ import annotations

from services.status.core.model import Disk, NodeSettings, Observation, SystemInfo

MI = 1 << 20
SYSTEM = SystemInfo(
    machine_id="3d1219c7c4c5404aaa1f6d2a48adfda4",
    system_uuid="3d1219c7c4c5404aaa1f6d2a48adfda4",
    boot_id="7d963b2f-e879-46db-8d3c-93fe4957e1f4",
    kernel_version="6.18.44",
    os_image="Debian GNU/Linux 12 (bookworm)",
    architecture="amd64",
)
DISK = Disk(capacity=1000 * MI, available=500 * MI, inodes=1000, inodes_free=500)
FINE = Observation(
    system=SYSTEM,
    cores=2,
    address="192.0.2.2",
    memory_total=1000 * MI,
    memory_available=500 * MI,
    nodefs=DISK,
    imagefs=DISK,
    pids_max=1000,
    pids_running=100,
)
SETTINGS = NodeSettings(
    name="peer",
    port=10250,
    version="0.1.0",
    max_pods=110,
    pods_per_core=0,
    eviction_hard={},
    system_reserved={},
    kube_reserved={},
)
