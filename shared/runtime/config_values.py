"""The values of a KubeletConfiguration file: each reader gives the value, None for "the default", or raises Wrong."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from shared.kube.duration import DurationError, parse_seconds
from shared.kube.quantity import Quantity, QuantityError
from shared.kube.validation_names import label_value_errors, qualified_name_errors
from shared.runtime.tls_names import CIPHER_SUITES, TLS13_SUITES

_WORDS = {
    bool: "a boolean",
    int: "a whole number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Wrong(Exception):
    """Why a value is refused: one text or several."""

    def __init__(self, *texts: str) -> None:
        super().__init__("; ".join(texts))
        self.texts = texts


Reader = Callable[[Any], Any]


def word(value: Any) -> str:
    return "null" if value is None else _WORDS.get(type(value), f"a {type(value).__name__}")


def read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise Wrong(f"must be a string, got {word(value)}")
    return value


def read_file(value: Any) -> str:
    text = read_text(value)
    if not text.startswith("/"):
        raise Wrong(f'must be an absolute path, got "{text}"')
    return text


def read_address(value: Any) -> str:
    text = read_text(value)
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise Wrong(f'must be an IP address, got "{text}"') from None
    return text


def read_addresses(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Wrong(f"must be a list, got {word(value)}")
    return tuple(read_address(item) for item in value)


def read_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Wrong(f"must be true or false, got {word(value)}")
    return value


def whole(low: int, high: int, *, zero_is_default: bool = False) -> Reader:
    def read(value: Any) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Wrong(f"must be a whole number, got {word(value)}")
        if value == 0 and zero_is_default:
            return None
        if not low <= value <= high:
            raise Wrong(f"must be from {low} to {high}, got {value}")
        return value

    return read


def duration(low: float, high: float, words: str) -> Reader:
    def read(value: Any) -> float | None:
        """Kubernetes: a duration of zero means the default."""
        text = read_text(value)
        try:
            seconds = parse_seconds(text)
        except DurationError as error:
            raise Wrong(f'must be a duration such as "20s": {error}') from error
        if seconds == 0:
            return None
        if not low <= seconds <= high:
            raise Wrong(f"must be {words}, got {text}")
        return seconds

    return read


def read_bytes(value: Any) -> int:
    amount = read_quantity(value)
    if amount.value() <= 0:
        raise Wrong("must be greater than 0")
    return amount.value()


def read_quantity(value: Any) -> Quantity:
    text = read_text(value)
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        raise Wrong(f'"{text}": {error}') from error


def check_amount(value: Any) -> None:
    if read_quantity(value).nano < 0:
        raise Wrong("must not be negative")


def mapping(names: tuple[str, ...], check: Callable[[Any], None]) -> Reader:
    def read(value: Any) -> dict[str, str]:
        if not isinstance(value, dict):
            raise Wrong(f"must be an object, got {word(value)}")
        wrong = []
        for name, inner in value.items():
            if name not in names:
                wrong.append(f'"{name}" is not one of {", ".join(names)}')
                continue
            try:
                check(inner)
            except Wrong as error:
                wrong.append(f"{name}: {error}")
        if wrong:
            raise Wrong(*wrong)
        return dict(value)

    return read


def check_threshold(value: Any) -> None:
    """kubelet: a quantity, or a percentage from 0 to 100."""
    text = read_text(value)
    if not text.endswith("%"):
        check_amount(text)
        return
    try:
        percent = float(text[:-1])
    except ValueError:
        raise Wrong(f'"{text}" is not a percentage') from None
    if not 0 <= percent <= 100:
        raise Wrong(f"must be from 0% to 100%, got {text}")


def choice(*values: str) -> Reader:
    def read(value: Any) -> str:
        if value not in values:
            raise Wrong(f"must be one of {', '.join(values)}, got {json.dumps(value, default=str)}")
        return str(value)

    return read


def read_driver(value: Any) -> str:
    if value not in ("cgroupfs", "systemd"):
        raise Wrong(f'must be "cgroupfs" or "systemd", got {json.dumps(value, default=str)}')
    return str(value)


def read_ciphers(value: Any) -> tuple[str, ...]:
    """Go's names. kubelet's text for one that isn't there."""
    if not isinstance(value, list):
        raise Wrong(f"must be a list, got {word(value)}")
    names = tuple(read_text(item) for item in value)
    wrong = [name for name in names if name not in CIPHER_SUITES and name not in TLS13_SUITES]
    if wrong:
        raise Wrong(*(f"Cipher suite {name} not supported or doesn't exist" for name in dict.fromkeys(wrong)))
    return names


def read_sysctls(value: Any) -> tuple[str, ...]:
    """kubelet: only sysctls that a pod has for itself, else it would change the node's."""
    if not isinstance(value, list):
        raise Wrong(f"must be a list, got {word(value)}")
    names = [read_text(item).replace("/", ".") for item in value]
    wrong = [name for name in names if not re.match(r"(net|fs\.mqueue)\.|kernel\.(shm|msg|sem$)", name)]
    wrong += [name for name in names if "*" in name[:-1]]
    if wrong:
        raise Wrong(*(f"{json.dumps(name)} is not known to be namespaced" for name in dict.fromkeys(wrong)))
    return tuple(names)


def read_url(value: Any) -> str:
    """An absolute http or https URL."""
    text = read_text(value).strip()
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or re.search(r"[\x00-\x20\x7f]", text):
        raise Wrong("must be an http or https URL with a host")
    return text


def read_headers(value: Any) -> dict[str, tuple[str, ...]]:
    """Name -> values. No text quotes a value: they are often credentials."""
    if not isinstance(value, dict):
        raise Wrong(f"must be an object, got {word(value)}")
    wrong = []
    for name, values in value.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", str(name)):
            wrong.append(f"{json.dumps(str(name))} is not a header's name")
        elif not isinstance(values, list) or not all(isinstance(one, str) for one in values):
            wrong.append(f"{name}: must be a list of strings")
        elif any(not re.fullmatch(r"[\t\x20-\x7e\x80-\xff]*", one) for one in values):
            wrong.append(f"{name}: a value has a character that no header may have")
    if wrong:
        raise Wrong(*wrong)
    return {name: tuple(values) for name, values in value.items()}


def read_taints(value: Any) -> tuple[dict[str, str], ...]:
    if not isinstance(value, list):
        raise Wrong(f"must be a list, got {word(value)}")
    taints: list[dict[str, str]] = []
    wrong: list[str] = []
    for number, item in enumerate(value):
        texts = _taint_errors(item)
        wrong += [f"[{number}]: {text}" for text in texts]
        if not texts:
            taints.append({key: item[key] for key in ("key", "value", "effect") if item.get(key)})
    if wrong:
        raise Wrong(*wrong)
    return tuple(taints)


def _taint_errors(taint: Any) -> list[str]:
    if not isinstance(taint, dict):
        return [f"must be an object, got {word(taint)}"]
    wrong = [f"{key}: must be a string, got {word(taint[key])}" for key in taint if not isinstance(taint[key], str)]
    if wrong:
        return wrong
    wrong += [f"{key}: unknown field" for key in taint if key not in ("key", "value", "effect")]
    wrong += [f"key: {text}" for text in qualified_name_errors(taint.get("key", ""))]
    wrong += [f"value: {text}" for text in label_value_errors(taint.get("value", ""))]
    if taint.get("effect") not in _EFFECTS:
        wrong.append(f"effect: must be one of {', '.join(_EFFECTS)}, got {json.dumps(taint.get('effect'))}")
    return wrong
