"""source on a real nats-server, a real directory and a real source.db."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.source.adapters import manifest_directory
from shared.bus import connect
from shared.contracts.registry import RELOAD, SOURCES
from shared.contracts.sources import ReloadCommand, SourcesQuery
from tests.component.source.running import manifest, reader, running_source
from tests.support.eventually import eventually_async
from tests.support.nats_server import NatsServer

pytestmark = pytest.mark.nats


async def test_a_dropped_file_is_a_pod_and_a_removed_one_is_none(
    nats_server: NatsServer, data: Path, manifests: Path
) -> None:
    async with running_source(nats_server, data, manifests), reader(nats_server) as shown:
        (manifests / "a.yaml").write_text(manifest("a"))
        await eventually_async(lambda: shown.names == {"a-n1"}, within=5)
        await eventually_async(lambda: shown.marker and shown.marker.uids == list(shown.pods), within=5)
        (manifests / "a.yaml").unlink()
        await eventually_async(lambda: not shown.pods and shown.marker and not shown.marker.uids, within=5)


async def test_a_broken_file_keeps_its_last_good_version_also_over_a_restart(
    nats_server: NatsServer, data: Path, manifests: Path
) -> None:
    (manifests / "a.yaml").write_text(manifest("a"))
    async with reader(nats_server) as shown:
        async with running_source(nats_server, data, manifests):
            await eventually_async(lambda: shown.names == {"a-n1"}, within=5)
            before = next(iter(shown.pods.values()))
            (manifests / "a.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a\n")
            await eventually_async(lambda: shown.errors, within=5)
            assert shown.names == {"a-n1"}
        async with running_source(nats_server, data, manifests):
            await eventually_async(lambda: shown.errors, within=5)
            after = next(iter(shown.pods.values()))
            assert (after.uid, after.hash, after.gen, after.seen) == (before.uid, before.hash, before.gen, before.seen)


async def test_a_wiped_store_is_filled_again(nats_server: NatsServer, data: Path, manifests: Path) -> None:
    """Nothing in NATS is the only copy."""
    (manifests / "a.yaml").write_text(manifest("a"))
    async with running_source(nats_server, data, manifests), reader(nats_server) as shown:
        await eventually_async(lambda: shown.names == {"a-n1"}, within=5)
        nats_server.stop()
        nats_server.wipe()
        (manifests / "b.yaml").write_text(manifest("b"))
        nats_server.start()
        await eventually_async(lambda: shown.names == {"a-n1", "b-n1"} and shown.marker is not None, within=15)


async def test_keys_of_pods_that_went_while_source_was_down_are_deleted(
    nats_server: NatsServer, data: Path, manifests: Path
) -> None:
    (manifests / "a.yaml").write_text(manifest("a"))
    (manifests / "b.yaml").write_text(manifest("b"))
    async with reader(nats_server) as shown:
        async with running_source(nats_server, data, manifests):
            await eventually_async(lambda: len(shown.pods) == 2, within=5)
        (manifests / "b.yaml").unlink()
        async with running_source(nats_server, data, manifests):
            await eventually_async(lambda: shown.names == {"a-n1"}, within=5)


async def test_a_lost_database_makes_generations_larger_not_smaller(
    nats_server: NatsServer, data: Path, manifests: Path
) -> None:
    """Otherwise a worker would take the new version for an old one, and wait for ever."""
    (manifests / "a.yaml").write_text(manifest("a").replace("name: a", "name: a, uid: fixed"))
    async with reader(nats_server) as shown:
        async with running_source(nats_server, data, manifests):
            await eventually_async(lambda: shown.pods, within=5)
            before = shown.pods["fixed"].gen
        for path in data.glob("source.db*"):
            path.unlink()
        async with running_source(nats_server, data, manifests):
            await eventually_async(lambda: shown.pods["fixed"].gen > before, within=5)


async def test_a_missing_directory_is_empty_at_first_and_keeps_its_pods_later(
    nats_server: NatsServer, data: Path, tmp_path: Path
) -> None:
    place = tmp_path / "later"
    async with running_source(nats_server, data, place), reader(nats_server) as shown:
        await eventually_async(lambda: shown.marker and shown.marker.ready and not shown.pods, within=5)
        place.mkdir()
        (place / "a.yaml").write_text(manifest("a"))
        await eventually_async(lambda: shown.names == {"a-n1"}, within=10)
        place.rename(tmp_path / "gone")
        await eventually_async(lambda: any("does not exist" in text for text in shown.errors), within=10)
        assert shown.names == {"a-n1"}
        (tmp_path / "gone").rename(place)
        await eventually_async(lambda: not shown.errors, within=10)
        (place / "a.yaml").unlink()
        await eventually_async(lambda: not shown.pods, within=10)


async def test_of_two_files_with_one_pod_the_running_one_stays_and_both_are_told(
    nats_server: NatsServer, data: Path, manifests: Path
) -> None:
    (manifests / "b.yaml").write_text(manifest("a"))
    async with running_source(nats_server, data, manifests), reader(nats_server) as shown:
        await eventually_async(lambda: shown.names == {"a-n1"}, within=5)
        (manifests / "a.yaml").write_text(manifest("a", "busybox:other"))
        await eventually_async(lambda: len(shown.errors) == 2, within=5)
        assert shown.image_of("a-n1") == "busybox:1.36"
        assert shown.marker is not None
        assert {Path(e.path).name for e in shown.marker.errors} == {"a.yaml", "b.yaml"}


async def test_reload_answers_when_the_listing_is_on_the_bus(
    nats_server: NatsServer, data: Path, manifests: Path
) -> None:
    async with running_source(nats_server, data, manifests), reader(nats_server) as shown:
        api = await connect(nats_server.credentials("api"), node="n1", service="api", name="api")
        (manifests / "a.yaml").write_text(manifest("a"))
        reply = await api.request(RELOAD, ReloadCommand(), timeout=5)
        assert (reply.pods, reply.errors) == (1, 0)
        sources = (await api.request(SOURCES, SourcesQuery())).sources
        assert [s.source for s in sources] == ["file"]
        await eventually_async(lambda: shown.names == {"a-n1"}, within=5)
        await api.drain()


async def test_a_file_that_is_written_in_place_loses_no_pod_on_the_way(
    nats_server: NatsServer, data: Path, manifests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its beginning is sound by itself; what it lost goes only when nobody has written for a while."""
    monkeypatch.setattr(manifest_directory, "FRESH_SECONDS", 3600)
    (manifests / "a.yaml").write_text(manifest("a") + "---\n" + manifest("b"))
    async with running_source(nats_server, data, manifests), reader(nats_server) as shown:
        await eventually_async(lambda: shown.names == {"a-n1", "b-n1"}, within=5)
        api = await connect(nats_server.credentials("api"), node="n1", service="api", name="api")
        with (manifests / "a.yaml").open("w") as file:
            file.write(manifest("a"))
            file.flush()
            assert (await api.request(RELOAD, ReloadCommand(), timeout=5)).pods == 2
            file.write("---\n" + manifest("b", "x:2"))
        await eventually_async(lambda: shown.image_of("b-n1") == "x:2", within=5)
        (manifests / "a.yaml").write_text(manifest("a"))
        assert (await api.request(RELOAD, ReloadCommand(), timeout=5)).pods == 2
        monkeypatch.setattr(manifest_directory, "FRESH_SECONDS", 1.0)
        await eventually_async(lambda: shown.names == {"a-n1"}, within=5)
        await api.drain()
