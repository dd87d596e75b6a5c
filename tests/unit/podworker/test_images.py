"""Image references, the pull decision and its words (lifecycle 7.7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.podworker.core import images
from services.podworker.core.images import InvalidReference, Reference, parse_reference, with_default_tag

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("busybox", Reference("busybox")),
        ("busybox:1.36", Reference("busybox", "1.36")),
        ("library/busybox:1.36", Reference("library/busybox", "1.36")),
        ("localhost:5000/a/b", Reference("localhost:5000/a/b")),
        ("localhost/nope:1", Reference("localhost/nope", "1")),
        ("registry.example.com:5000/a_b/c__d/e-f:v1", Reference("registry.example.com:5000/a_b/c__d/e-f", "v1")),
        (f"busybox@{DIGEST}", Reference("busybox", "", DIGEST)),
        (f"busybox:1@{DIGEST}", Reference("busybox", "1", DIGEST)),
        ("[::1]:5000/a:1", Reference("[::1]:5000/a", "1")),
        ("Registry.Example.com/a", Reference("Registry.Example.com/a")),
    ],
)
def test_a_reference_is_split_into_its_parts(text: str, expected: Reference) -> None:
    assert parse_reference(text) == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Bad/UPPER:1", "invalid reference format: repository name must be lowercase"),
        ("UPPER", "invalid reference format: repository name must be lowercase"),
        ("a b", "invalid reference format"),
        ("busybox:", "invalid reference format"),
        ("busybox:a:b", "invalid reference format"),
        ("-busybox", "invalid reference format"),
        ("a//b", "invalid reference format"),
        ("busybox@sha256:abc", "invalid reference format"),
        ("", "invalid reference format"),
        ("a" * 256, "repository name must not be more than 255 characters"),
        ("a" * 64, f"invalid repository name ({'a' * 64}), cannot specify 64-byte hexadecimal strings"),
    ],
)
def test_what_is_no_reference_is_refused_in_dockers_words(text: str, error: str) -> None:
    with pytest.raises(InvalidReference) as raised:
        parse_reference(text)
    assert str(raised.value) == error


@given(st.text())
def test_any_text_is_a_reference_or_refused(text: str) -> None:
    try:
        reference = parse_reference(text)
    except InvalidReference:
        assert images.invalid_image_message(text)
    else:
        tagged = parse_reference(with_default_tag(text))
        assert tagged.name == reference.name
        assert tagged.tag or tagged.digest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("busybox", "busybox:latest"),
        ("localhost:5000/a", "localhost:5000/a:latest"),
        ("busybox:1", "busybox:1"),
        (f"busybox@{DIGEST}", f"busybox@{DIGEST}"),
        ("UPPER", "UPPER"),
    ],
)
def test_latest_is_added_where_neither_tag_nor_digest_is_given(text: str, expected: str) -> None:
    assert with_default_tag(text) == expected


def test_an_invalid_name_is_told_as_the_newest_kubelet_does() -> None:
    assert images.invalid_image_message("Bad/UPPER:1") == (
        'Failed to apply default image tag "Bad/UPPER:1": couldn\'t parse image name "Bad/UPPER:1": '
        "invalid reference format: repository name must be lowercase"
    )
    assert images.invalid_image_message("busybox:1.36") is None


@pytest.mark.parametrize(
    ("policy", "present", "expected"),
    [
        ("Always", True, "pull"),
        ("Always", False, "pull"),
        ("IfNotPresent", True, "use"),
        ("IfNotPresent", False, "pull"),
        ("Never", True, "use"),
        ("Never", False, "refuse"),
    ],
)
def test_the_pull_policy_decides(policy: str, present: bool, expected: str) -> None:
    assert images.pull_decision(policy, present=present) == expected


@pytest.mark.parametrize(
    ("current", "total", "expected"),
    [
        (12 * 2**20, 27 * 2**20, 'Pulling image "x": 44 % (12/27 MiB)'),
        (0, 0, 'Pulling image "x"'),
        (0, 27 * 2**20, 'Pulling image "x": 0 % (0/27 MiB)'),
        (30 * 2**20, 27 * 2**20, 'Pulling image "x": 100 % (27/27 MiB)'),
        (2**18, 2**19, 'Pulling image "x": 50 % (0.2/0.5 MiB)'),
    ],
)
def test_a_pull_tells_how_far_it_is(current: int, total: int, expected: str) -> None:
    assert images.progress_message("x", current, total) == expected
