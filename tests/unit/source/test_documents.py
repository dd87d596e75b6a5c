"""Files become documents by Kubernetes' rules, and every fault has its line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.source.core.documents import MAX_FILE_BYTES, ParsedFile, parse_documents


def parse(text: str | bytes) -> ParsedFile:
    return parse_documents("f", text if isinstance(text, bytes) else text.encode())


def only_value(text: str) -> object:
    parsed = parse(text)
    assert parsed.problems == ()
    (document,) = parsed.documents
    return document.value


def texts(parsed: ParsedFile) -> list[str]:
    return [problem.text() for problem in parsed.problems]


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("yes", True),
        ("On", True),
        ("y", True),
        ("TRUE", True),
        ("no", False),
        ("OFF", False),
        ("n", False),
        ("yEs", "yEs"),
        ("~", None),
        ("null", None),
        ("", None),
        ("12", 12),
        ("+5", 5),
        ("-5", -5),
        ("0644", 420),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b101", 5),
        ("1_000", 1000),
        ("08", 8),
        ("1.50", 1.5),
        ("1e3", 1000),
        ("1.0", 1),
        ("12:30:45", "12:30:45"),
        ("2020-01-01", "2020-01-01"),
        ("2020-01-01T10:00:00Z", "2020-01-01T10:00:00Z"),
        ("1.36.1", "1.36.1"),
        ("-", "-"),
        ("'yes'", "yes"),
        ('"5"', "5"),
        ("!!str 5", "5"),
        ("!!int 5", 5),
        ("!!bool yes", True),
        ("0x", "0x"),
        ("1e999", "1e999"),
    ],
)
def test_a_plain_scalar_means_what_it_means_to_kubernetes(scalar: str, value: object) -> None:
    """YAML 1.1 booleans, octal numbers, no dates, no base 60 (sigs.k8s.io/yaml)."""
    if scalar == "-":
        scalar = "'-'"
    assert only_value(f"a: {scalar}\n") == {"a": value}


def test_keys_become_strings() -> None:
    assert only_value("1: a\nyes: b\n1.5: c\n'x': d\n") == {"1": "a", "true": "b", "1.5": "c", "x": "d"}


def test_anchors_and_merge_keys_expand_and_what_is_written_wins() -> None:
    text = "a: &a {x: 1, z: 2}\nb: *a\nc: {<<: *a, z: 3}\nd: {<<: [{x: 5}, *a]}\n"
    assert only_value(text) == {
        "a": {"x": 1, "z": 2},
        "b": {"x": 1, "z": 2},
        "c": {"x": 1, "z": 3},
        "d": {"x": 5, "z": 2},
    }


def test_several_documents_are_read_and_empty_ones_skipped() -> None:
    parsed = parse("# first\n---\na: 1\n---\n---\n# nothing\n--- # comment\nb: 2\n...\n---\nc: 3\n")
    assert [document.value for document in parsed.documents] == [{"a": 1}, {"b": 2}, {"c": 3}]
    assert [document.index for document in parsed.documents] == [1, 2, 3]
    assert [document.line for document in parsed.documents] == [3, 8, 11]
    assert parsed.problems == ()


def test_a_directive_belongs_to_the_document_after_it() -> None:
    assert only_value("%YAML 1.1\n---\na: 1\n") == {"a": 1}


def test_three_dashes_inside_a_block_scalar_do_not_cut_it() -> None:
    assert only_value("a: |\n  x\n  ---\n  y\n") == {"a": "x\n---\ny\n"}


def test_windows_line_ends_are_fine() -> None:
    assert [document.value for document in parse("a: 1\r\n---\r\nb: 2\r\n").documents] == [{"a": 1}, {"b": 2}]


def test_json_is_recognised_by_its_first_character_and_may_hold_several_values() -> None:
    parsed = parse('\n {"a": [1, 2.5, true, null]}\n{"b": "x"}')
    assert [document.value for document in parsed.documents] == [{"a": [1, 2.5, True, None]}, {"b": "x"}]
    assert [document.line for document in parsed.documents] == [2, 3]


def test_a_byte_order_mark_is_dropped() -> None:
    assert parse(b"\xef\xbb\xbfa: 1").documents[0].value == {"a": 1}


YAML = """\
# comment
kind: Pod
metadata:
  labels: {a.b/c: x}
spec:
  containers:
  - name: one
    command:
    - sleep
    - "10"
  - {name: two,
     image: x}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 2),
        ("kind", 2),
        ("metadata.labels[a.b/c]", 4),
        ("spec.containers", 6),
        ("spec.containers[0]", 7),
        ("spec.containers[0].command[1]", 10),
        ("spec.containers[1].image", 12),
        ("spec.containers[1].missing.deeper", 11),
        ("spec.containers[7].name", 6),
        ("nowhere", 2),
    ],
)
def test_a_field_has_its_line_and_a_missing_one_its_parents(path: str, line: int) -> None:
    assert parse(YAML).documents[0].line_of(path) == line


def test_json_fields_have_lines_too() -> None:
    text = '{"kind": "Pod",\n "spec": {\n  "a\\n{": [1,\n   {"x": "}"},\n  {"y": 2}]}}\n\n{"kind":\n"B"}'
    first, second = parse(text).documents
    assert first.line_of("spec") == 2
    assert first.line_of("spec[a\n{]") == 3
    assert first.line_of("spec[a\n{][1].x") == 4
    assert first.line_of("spec[a\n{][2].y") == 5
    assert second.line == 7
    assert second.line_of("kind") == 7


def test_a_merged_field_has_the_line_where_it_is_written() -> None:
    assert parse("a: &a\n  x: 1\nb:\n  <<: *a\n").documents[0].line_of("b.x") == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3\n", 'f:3: duplicate key "a": it is already on line 1'),
        ("x: 1\n---\n\ns:\n  m: 1\n  m: 2\n", 'f:6: duplicate key "m": it is already on line 5'),
        ('{"a": {"c": 1,\n"c": 2}}', 'f:2: duplicate key "c": it is already on line 1'),
        ("yes: 1\ntrue: 2\n", 'f:2: duplicate key "true": it is already on line 1'),
    ],
)
def test_a_duplicate_key_is_named_with_both_lines(text: str, expected: str) -> None:
    assert texts(parse(text)) == [expected]


def test_a_tab_is_told_as_such_with_its_line() -> None:
    (text,) = texts(parse("a:\n  b: 1\n\tc: 2\n"))
    assert text.startswith("f:3: not valid YAML")
    assert "indented with a tab" in text


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"a: [1, 2\n", "not valid YAML"),
        (b"a: *nope", "undefined alias"),
        (b"a: b: c", "f:1: not valid YAML: mapping values are not allowed"),
        (b"a: .inf", "f:1: .inf can't be expressed in JSON"),
        (b"a: !foo x", "f:1: unknown tag !foo"),
        (b"a: !!int x", "f:1: the value is not a !!int"),
        (b"? [a]\n: b", "a key must be a string"),
        (b"~: b", "a key can't be null"),
        (b"a: {<<: 5}", "map merge"),
        (b"a: \x01", "control characters are not allowed"),
        (b'{"a": 1,}', "f:1: not valid JSON"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": ' + b"1" * 5000 + b"}", "not valid JSON"),
        (b'{"a": 1} x', "not valid JSON"),
        (b'{"a": 1', "not valid JSON"),
        (b'{"a":1,"a":2,', "not valid JSON"),
        ("a: 1".encode("utf-16"), "UTF-16"),
        ("a: 1".encode("utf-16-le"), "UTF-16"),
        (b"a: x\nb: \0", "f:2: the file holds a NUL byte"),
        (b"a: x\nb: \xff", "f:2: not valid UTF-8"),
        (b"", "the file is empty"),
        (b" \n\t\n", "the file is empty"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(data: bytes, part: str) -> None:
    parsed = parse(data)
    assert any(part in text for text in texts(parsed)), texts(parsed)
    assert parsed.unread >= 1
    assert parsed.problems[0].is_error


def test_a_file_of_comments_is_an_empty_set_and_a_warning() -> None:
    parsed = parse("# nothing here\n---\n")
    assert (parsed.documents, parsed.unread) == ((), 0)
    assert not parsed.problems[0].is_error


def test_a_bad_document_leaves_the_others_readable() -> None:
    parsed = parse("a: [1\n---\nb: 2\n---\n\tc: 3\n---\nd: 4\nd: 5\n---\ne: 6\n")
    assert [document.value for document in parsed.documents] == [{"b": 2}, {"e": 6}]
    assert parsed.unread == 3
    assert [problem.document for problem in parsed.problems] == [1, 3, 4]


def test_the_size_is_bounded() -> None:
    assert "larger than 10 MiB" in texts(parse(b"a" * (MAX_FILE_BYTES + 1)))[0]


def test_an_alias_bomb_is_refused() -> None:
    rows = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    rows += [f"{chr(c)}: &{chr(c)} [{', '.join(['*' + chr(c - 1)] * 9)}]" for c in range(98, 107)]
    (text,) = texts(parse("\n".join(rows)))
    assert "values in one document" in text


@pytest.mark.parametrize(
    "text",
    ["[" * 5000, "- " * 5000, "[" * 500 + "]" * 500, '{"a":' * 5000, '{"a":' * 200 + "1" + "}" * 200, "a: &x [*x]"],
)
def test_depth_is_bounded(text: str) -> None:
    (problem,) = parse(text).problems
    assert "deep" in problem.message or "depth" in problem.message


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    assert only_value('{"a\\udc00": "\\ud800", "b": "\\ud83d\\ude00"}') == {"a\ufffd": "\ufffd", "b": "\U0001f600"}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60)
@given(st.dictionaries(st.text(), json_values, max_size=4), st.sampled_from([None, 1]))
def test_what_json_dumps_is_read_back(value: dict[str, object], indent: int | None) -> None:
    (document,) = parse(json.dumps(value, indent=indent)).documents
    assert document.value == value
    for key in value:
        assert document.line_of(f"[{key}]") >= document.line


@settings(max_examples=150)
@given(st.binary(max_size=60) | st.text("ab:-[]{}\"'&*!|>#%?,\n \t0<~.", max_size=60).map(str.encode))
def test_no_bytes_raise(data: bytes) -> None:
    parsed = parse(data)
    for document in parsed.documents:
        assert document.line >= 1
    for problem in parsed.problems:
        assert 0 <= problem.line <= data.count(b"\n") + 1
