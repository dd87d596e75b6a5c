"""Paths of the metrics pages, and whether they may come packed."""

from __future__ import annotations

import pytest

from services.api.core.access import Identity, allowed, subresources
from services.api.core.params import takes_gzip
from services.api.core.routing import FULL, READ_ONLY, Found, Surface, Unknown, match


@pytest.mark.parametrize("surface", [FULL, READ_ONLY])
@pytest.mark.parametrize("path", ["/metrics/cadvisor", "/metrics/resource"])
def test_metrics_pages_are_plain_paths_on_both_ports(path: str, surface: Surface) -> None:
    assert match(path, surface) == Found(path)
    assert match(f"{path}/", surface) == Unknown()
    assert match(f"{path}/more", surface) == Unknown()


def test_a_metrics_reader_may_see_them() -> None:
    scraper = Identity("scraper", ("podbus:metrics",))
    assert allowed(scraper, "GET", "/metrics/cadvisor")
    assert not allowed(scraper, "GET", "/podbus/cadvisor/api/v1.3/machine")
    assert subresources("/metrics/cadvisor") == ("metrics",)


@pytest.mark.parametrize(
    ("header", "expected"),
    [("gzip", True), ("deflate, GZIP;q=0.5", True), ("gzip;q=0", False), ("", False), ("identity", False)],
)
def test_gzip_is_sent_to_who_names_it(header: str, expected: bool) -> None:
    assert takes_gzip(header) is expected
