"""Rules for names, labels, keys and ports, with the texts that Kubernetes gives (apimachinery's
util/validation).

Every function returns the list of what is wrong: empty means valid. None of them raises.
"""

from __future__ import annotations

import ipaddress
import re

DNS_LABEL_MAX = 63
DNS_SUBDOMAIN_MAX = 253
LABEL_VALUE_MAX = 63
QUALIFIED_NAME_MAX = 63
CONFIG_KEY_MAX = 253
PORT_NAME_MAX = 15

_LABEL_FORMAT = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORMAT = _LABEL_FORMAT + "(\\." + _LABEL_FORMAT + ")*"
_QUALIFIED_FORMAT = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE_FORMAT = f"({_QUALIFIED_FORMAT})?"
_CONFIG_KEY_FORMAT = "[-._a-zA-Z0-9]+"
_HEADER_FORMAT = "[-A-Za-z0-9]+"
_SYSCTL_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
SYSCTL_FORMAT = f"({_SYSCTL_SEGMENT}[\\./])*{_SYSCTL_SEGMENT}"

_LABEL = re.compile(_LABEL_FORMAT, re.ASCII)
_SUBDOMAIN = re.compile(_SUBDOMAIN_FORMAT, re.ASCII)
_QUALIFIED = re.compile(_QUALIFIED_FORMAT, re.ASCII)
_LABEL_VALUE = re.compile(_LABEL_VALUE_FORMAT, re.ASCII)
_CONFIG_KEY = re.compile(_CONFIG_KEY_FORMAT, re.ASCII)
_HEADER = re.compile(_HEADER_FORMAT, re.ASCII)
_SYSCTL = re.compile(SYSCTL_FORMAT, re.ASCII)
_ENV_NAME = re.compile(r"[ -<>-~]+")
_PORT_CHARACTERS = re.compile(r"[-a-z0-9]+", re.ASCII)
_PORT_LETTER = re.compile(r"[a-z]")


def max_length_error(limit: int) -> str:
    return f"must be no more than {limit} characters"


def regex_error(message: str, pattern: str, *examples: str) -> str:
    """A rule's text with examples and its pattern, spaced exactly as upstream does."""
    shown = " or ".join(f"'{example}', " for example in examples)
    lead = f"e.g. {shown}" if examples else ""
    return f"{message} ({lead}regex used for validation is '{pattern}')"


_LABEL_ERROR = regex_error(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and"
    " end with an alphanumeric character",
    _LABEL_FORMAT,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_ERROR = regex_error(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must"
    " start and end with an alphanumeric character",
    _SUBDOMAIN_FORMAT,
    "example.com",
)
_QUALIFIED_ERROR = regex_error(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _QUALIFIED_FORMAT,
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_VALUE_ERROR = regex_error(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must"
    " start and end with an alphanumeric character",
    _LABEL_VALUE_FORMAT,
    "MyValue",
    "my_value",
    "12345",
)
_CONFIG_KEY_ERROR = regex_error(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY_FORMAT,
    "key.name",
    "KEY_NAME",
    "key-name",
)
_HEADER_ERROR = regex_error(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER_FORMAT, "X-Header-Name"
)
_ENV_NAME_ERROR = "a valid environment variable name must consist only of printable ASCII characters other than '='"


def dns_label_errors(text: str) -> list[str]:
    """RFC 1123 label: container, volume and namespace names."""
    errors = [max_length_error(DNS_LABEL_MAX)] if len(text) > DNS_LABEL_MAX else []
    if not _LABEL.fullmatch(text):
        errors.append(_LABEL_ERROR)
    return errors


def dns_subdomain_errors(text: str) -> list[str]:
    """RFC 1123 subdomain: pod, ConfigMap and Secret names."""
    errors = [max_length_error(DNS_SUBDOMAIN_MAX)] if len(text) > DNS_SUBDOMAIN_MAX else []
    if not _SUBDOMAIN.fullmatch(text):
        errors.append(_SUBDOMAIN_ERROR)
    return errors


def qualified_name_errors(text: str) -> list[str]:
    """`[prefix/]name`: label keys, annotation keys, resource names."""
    prefix, slash, name = text.partition("/")
    if not slash:
        prefix, name = "", text
    elif "/" in name:
        return [
            f"a qualified name {_QUALIFIED_ERROR} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    errors: list[str] = []
    if slash:
        if not prefix:
            errors.append("prefix part must be non-empty")
        else:
            errors += [f"prefix part {text}" for text in dns_subdomain_errors(prefix)]
    if not name:
        errors.append("name part must be non-empty")
    elif len(name) > QUALIFIED_NAME_MAX:
        errors.append(f"name part {max_length_error(QUALIFIED_NAME_MAX)}")
    if not _QUALIFIED.fullmatch(name):
        errors.append(f"name part {_QUALIFIED_ERROR}")
    return errors


label_key_errors = qualified_name_errors


def label_value_errors(text: str) -> list[str]:
    """The value of a label (may be empty)."""
    errors = [max_length_error(LABEL_VALUE_MAX)] if len(text) > LABEL_VALUE_MAX else []
    if not _LABEL_VALUE.fullmatch(text):
        errors.append(_LABEL_VALUE_ERROR)
    return errors


def env_name_errors(text: str) -> list[str]:
    """The name of an environment variable (Kubernetes 1.36: any printable ASCII but "=")."""
    if not text:
        return ["environment variable name must be non-empty"]
    return [] if _ENV_NAME.fullmatch(text) else [_ENV_NAME_ERROR]


def config_key_errors(text: str) -> list[str]:
    """A key of a ConfigMap or Secret; it becomes a file's name."""
    errors = [max_length_error(CONFIG_KEY_MAX)] if len(text) > CONFIG_KEY_MAX else []
    if not _CONFIG_KEY.fullmatch(text):
        errors.append(_CONFIG_KEY_ERROR)
    if text in (".", ".."):
        errors.append(f"must not be '{text}'")
    elif text.startswith(".."):
        errors.append("must not start with '..'")
    return errors


def port_name_errors(text: str) -> list[str]:
    """The name of a port (IANA_SVC_NAME)."""
    errors = [max_length_error(PORT_NAME_MAX)] if len(text) > PORT_NAME_MAX else []
    if not _PORT_CHARACTERS.fullmatch(text):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _PORT_LETTER.search(text):
        errors.append("must contain at least one letter (a-z)")
    if "--" in text:
        errors.append("must not contain consecutive hyphens")
    if text[:1] == "-" or text[-1:] == "-":
        errors.append("must not begin or end with a hyphen")
    return errors


def port_number_errors(port: int) -> list[str]:
    return [] if 1 <= port <= 65535 else ["must be between 1 and 65535, inclusive"]


def http_header_errors(text: str) -> list[str]:
    return [] if _HEADER.fullmatch(text) else [_HEADER_ERROR]


def ip_errors(text: str) -> list[str]:
    """An IPv4 or IPv6 address."""
    try:
        # Go knows no zones here, Python does.
        if "%" not in text:
            ipaddress.ip_address(text)
            return []
    except ValueError:
        pass
    return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]


def is_sysctl_name(text: str) -> bool:
    """A sysctl's name, with "." or "/" between its parts."""
    return len(text) <= DNS_SUBDOMAIN_MAX and _SYSCTL.fullmatch(text) is not None
