"""Bodies of /healthz, as recorded from a kubelet."""

from __future__ import annotations

from services.api.core.health_text import Check, HealthAnswer, healthz, single

GOOD = [Check("ping"), Check("log"), Check("syncloop")]
STALE = [Check("ping"), Check("log"), Check("syncloop", "sync Loop took longer than expected")]


def test_a_healthy_node_says_ok() -> None:
    assert healthz(GOOD, verbose=False, excluded=()) == HealthAnswer(200, "ok", nosniff=True)


def test_an_unknown_exclusion_is_told() -> None:
    assert healthz(GOOD, verbose=True, excluded=("zzz", "yyy")).body == (
        "[+]ping ok\n[+]log ok\n[+]syncloop ok\n"
        'warn: some health checks cannot be excluded: no matches for "yyy","zzz"\nhealthz check passed\n'
    )


def test_a_failure_is_verbose_and_withholds_its_reason() -> None:
    assert healthz(STALE, verbose=False, excluded=()) == HealthAnswer(
        500,
        "[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n",
        nosniff=True,
    )


def test_an_excluded_failure_does_not_count() -> None:
    assert healthz(STALE, verbose=False, excluded=("syncloop",)).body == "ok"


def test_a_checks_own_path_tells_why() -> None:
    assert single(STALE[2]) == HealthAnswer(
        500, "internal server error: sync Loop took longer than expected\n", nosniff=True
    )
    assert single(GOOD[0]) == HealthAnswer(200, "ok", nosniff=False)
