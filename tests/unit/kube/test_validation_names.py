"""Names are judged as Kubernetes judges them, in its words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shared.kube import validation_names as names

Rule = Callable[[str], list[str]]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (names.dns_label_errors, "a"),
        (names.dns_label_errors, "a-1"),
        (names.dns_label_errors, "a" * 63),
        (names.dns_subdomain_errors, "a.b-c.d"),
        (names.dns_subdomain_errors, ".".join(["a" * 63] * 3) + "." + "b" * 61),
        (names.qualified_name_errors, "MyName"),
        (names.qualified_name_errors, "example.com/my_name.x"),
        (names.label_value_errors, ""),
        (names.label_value_errors, "My_value.1"),
        (names.env_name_errors, "A B.c-d/e"),
        (names.config_key_errors, "a.b_C-d"),
        (names.config_key_errors, ".dockercfg"),
        (names.port_name_errors, "http-2"),
        (names.http_header_errors, "X-Header"),
        (names.ip_errors, "::1"),
        (names.ip_errors, "10.9.8.7"),
    ],
)
def test_a_good_name_has_no_errors(rule: Rule, text: str) -> None:
    assert rule(text) == []


@pytest.mark.parametrize(
    ("rule", "text", "part"),
    [
        (names.dns_label_errors, "A", "a lowercase RFC 1123 label must consist of"),
        (names.dns_label_errors, "", "a lowercase RFC 1123 label"),
        (names.dns_label_errors, "a\n", "a lowercase RFC 1123 label"),
        (names.dns_label_errors, "a.b", "(e.g. 'my-name',  or '123-abc', regex used for validation is"),
        (names.dns_label_errors, "a" * 64, "must be no more than 63"),
        (names.dns_subdomain_errors, "a..b", "a lowercase RFC 1123 subdomain must consist of"),
        (names.dns_subdomain_errors, "a" * 254, "must be no more than 253"),
        (names.qualified_name_errors, "", "name part must be non-empty"),
        (names.qualified_name_errors, "/a", "prefix part must be non-empty"),
        (names.qualified_name_errors, "A.com/a", "prefix part a lowercase RFC 1123 subdomain"),
        (names.qualified_name_errors, "a/b/c", "a qualified name must consist of"),
        (names.qualified_name_errors, "a" * 64, "name part must be no more than 63"),
        (names.label_value_errors, 'q"uote', "a valid label must be an empty string or consist of"),
        (names.label_value_errors, "-a", "a valid label"),
        (names.env_name_errors, "", "must be non-empty"),
        (names.env_name_errors, "A=B", "printable ASCII characters other than '='"),
        (names.env_name_errors, "\u00e4", "printable ASCII characters"),
        (names.config_key_errors, "a/b", "a valid config key must consist of"),
        (names.config_key_errors, "..", "must not be '..'"),
        (names.config_key_errors, "..a", "must not start with '..'"),
        (names.port_name_errors, "80", "must contain at least one letter (a-z)"),
        (names.port_name_errors, "Http", "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"),
        (names.port_name_errors, "a--b", "must not contain consecutive hyphens"),
        (names.port_name_errors, "-a", "must not begin or end with a hyphen"),
        (names.port_name_errors, "a" * 16, "must be no more than 15"),
        (names.ip_errors, "fe80::1%eth0", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        (names.ip_errors, "256.1.1.1", "must be a valid IP address"),
    ],
)
def test_a_bad_name_says_which_rule_it_breaks(rule: Rule, text: str, part: str) -> None:
    assert any(part in error for error in rule(text)), rule(text)


@pytest.mark.parametrize(("port", "valid"), [(0, False), (1, True), (65535, True), (65536, False)])
def test_ports_go_from_1_to_65535(port: int, valid: bool) -> None:
    assert (names.port_number_errors(port) == []) is valid


def test_a_sysctl_may_have_dots_or_slashes() -> None:
    assert names.is_sysctl_name("net.ipv4.ip_local_port_range")
    assert names.is_sysctl_name("net/ipv4/tcp_syncookies")
    assert not names.is_sysctl_name("Net..x")
