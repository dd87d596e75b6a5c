"""Token files and certificates -> identities."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.api.adapters.authn import TokenFile, peer_identity
from services.api.core.access import Identity
from services.api.core.token_file import parse_tokens

KEY = b"k" * 32


def test_a_line_is_token_user_uid_and_groups() -> None:
    tokens, problems = parse_tokens('t0k,bob,u1,"podbus:view,extra"\nt1k, eve ,u2\n', KEY)
    assert problems == []
    assert tokens.find("t0k") == Identity("bob", ("podbus:view", "extra", "system:authenticated"), "u1")
    assert tokens.find("t1k") == Identity("eve", ("system:authenticated",), "u2")
    assert tokens.find("t") is None
    assert tokens.find("") is None


def test_comments_and_empty_lines_are_nothing() -> None:
    tokens, problems = parse_tokens("# token,user,uid\n\n   \n", KEY)
    assert (len(tokens), problems) == (0, [])


def test_a_bad_line_is_named_without_its_token_and_leaves_the_others() -> None:
    tokens, problems = parse_tokens("s3cret,bob\n,bob,u\ngood,eve,u\ngood,mallory,u,podbus:admin\n", KEY)
    assert len(problems) == 3
    assert [problem.split(":")[0] for problem in problems] == ["line 1", "line 2", "line 4"]
    assert not any("s3cret" in problem or "good" in problem for problem in problems)
    found = tokens.find("good")
    assert found is not None and found.user == "eve"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def _write(path: Path, text: str) -> None:
    scratch = path.with_suffix(".new")
    scratch.write_text(text)
    scratch.chmod(0o600)
    os.replace(scratch, path)


def test_a_revoked_token_is_refused_a_second_later(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "tokens.csv"
    _write(path, "a,bob,u\n")
    tokens = TokenFile(path, clock)
    assert tokens.find("a") is not None
    _write(path, "b,bob,u\n")
    assert tokens.find("a") is not None  # looked at most once a second
    clock.now += 1
    assert tokens.find("a") is None
    assert tokens.find("b") is not None


def test_a_token_made_a_moment_ago_is_found(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "tokens.csv"
    _write(path, "a,bob,u\n")
    tokens = TokenFile(path, clock)
    assert tokens.find("b") is None
    _write(path, "a,bob,u\nb,eve,u\n")
    clock.now += 0.2
    assert tokens.find("b") is not None


def test_a_file_that_is_gone_lets_nobody_in(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "tokens.csv"
    _write(path, "a,bob,u\n")
    tokens = TokenFile(path, clock)
    assert tokens.find("a") is not None
    path.unlink()
    clock.now += 1
    assert tokens.find("a") is None
    _write(path, "a,bob,u\n")
    clock.now += 1
    assert tokens.find("a") is not None


def test_a_file_that_others_may_read_is_told(tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "tokens.csv"
    _write(path, "a,bob,u\n")
    path.chmod(0o644)
    assert TokenFile(path, clock).find("a") is not None
    assert "others may read the tokens" in caplog.text


def test_a_certificates_cn_is_the_user_and_its_os_are_the_groups() -> None:
    subject = ((("organizationName", "g1"),), (("organizationName", "g2"),), (("commonName", "bob"),))
    assert peer_identity({"subject": subject}) == Identity("bob", ("g1", "g2", "system:authenticated"))


@pytest.mark.parametrize("certificate", [None, {}, {"subject": ()}, {"subject": ((("organizationName", "g"),),)}])
def test_a_certificate_without_a_name_is_nobody(certificate: dict[str, object] | None) -> None:
    assert peer_identity(certificate) is None
