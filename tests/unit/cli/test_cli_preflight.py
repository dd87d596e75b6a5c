"""What the preflight finds, without a machine that has the fault."""

from __future__ import annotations

import socket
from pathlib import Path

from cli.preflight import data_faults, filesystem_of, machine_faults, node_faults
from shared.runtime.config import KubeletConfig
from shared.runtime.settings import Settings

MOUNTS = """\
22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw
30 22 0:40 / /srv rw,relatime shared:9 - nfs4 server:/srv rw
31 30 0:41 / /srv/my\\040disk rw - xfs /dev/vdb rw
32 22 0:42 / /mnt rw - ext4 /dev/vdc rw
33 22 0:43 / /mnt rw - tmpfs tmpfs rw
"""


def test_the_filesystem_of_a_path_is_that_of_the_innermost_mount() -> None:
    assert filesystem_of(Path("/var/lib/podbus"), MOUNTS) == "ext4"
    assert filesystem_of(Path("/srv/data"), MOUNTS) == "nfs4"
    assert filesystem_of(Path("/srv/my disk/data"), MOUNTS) == "xfs"


def test_of_two_mounts_on_one_point_the_later_is_seen() -> None:
    assert filesystem_of(Path("/mnt/x"), MOUNTS) == "tmpfs"


def test_a_data_directory_on_a_network_filesystem_is_refused(tmp_path: Path) -> None:
    text = f"22 1 254:1 / {tmp_path} rw - nfs4 server:/ rw\n"
    assert list(data_faults(tmp_path / "new" / "data", text)) == [
        f"data directory: {tmp_path} is on nfs4, a network filesystem; choose a local one by --data"
    ]


def test_a_data_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert list(data_faults(tmp_path / "file", MOUNTS)) == [f"data directory: {tmp_path / 'file'} is not a directory"]


def test_an_engine_that_does_not_answer_is_one_fault_with_its_remedy(tmp_path: Path) -> None:
    faults = machine_faults(f"unix://{tmp_path}/none.sock", "podbus/pause:3.10")
    engine = [fault for fault in faults if fault.startswith("Docker Engine")]
    assert len(engine) == 1
    assert "systemctl start docker" in engine[0]


def test_an_engine_on_another_machine_is_refused() -> None:
    assert any("not a UNIX socket" in fault for fault in machine_faults("tcp://10.0.0.1:2375", "x"))


def test_a_taken_port_and_a_missing_key_are_told_together(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        config = KubeletConfig(address="127.0.0.1", tls_cert_file=str(tmp_path / "none.crt"))
        faults = node_faults(Settings(data=tmp_path, port=port, config=config))
    assert [fault.partition(":")[0] for fault in faults] == [
        f"port {port} on 127.0.0.1, for the API (--port, PODBUS_PORT)",
        "tlsCertFile",
        "tlsCertFile, tlsPrivateKeyFile",
    ]
