"""Validation of regular and init containers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from services.source.core.field_errors import FieldErrors
from services.source.core.validate_env import validate_env, validate_env_from
from services.source.core.validate_probes import PROBES, validate_lifecycle, validate_probes
from services.source.core.validate_resources import validate_resources
from services.source.core.validate_security import validate_container_security
from services.source.core.validate_volumes import validate_file_keys, validate_mounts
from shared.kube.validation_names import dns_label_errors, ip_errors, port_name_errors, port_number_errors

JsonObject = dict[str, Any]

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
RESTART_POLICIES = ("Always", "OnFailure", "Never")
PROTOCOLS = ("SCTP", "TCP", "UDP")
_MAX_RESTART_RULES = 20
_MAX_EXIT_CODES = 255


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What the containers' rules need to know of their pod."""

    volumes: dict[str, JsonObject]
    claims: frozenset[str]
    host_network: bool
    host_users: bool
    grace_seconds: int
    os_name: str
    names: set[str] = field(default_factory=set)


def validate_containers(spec: JsonObject, path: str, facts: PodFacts, errors: FieldErrors) -> None:
    """spec.containers and spec.initContainers; names are unique over both."""
    containers = spec.get("containers") or []
    if not containers:
        errors.required(f"{path}.containers")
    host_ports: set[str] = set()
    for index, container in enumerate(containers):
        place = f"{path}.containers[{index}]"
        _validate_container(container, place, facts, host_ports, errors)
        if "lifecycle" in container:
            validate_lifecycle(container["lifecycle"], f"{place}.lifecycle", facts.grace_seconds, facts.os_name, errors)
        validate_probes(container, place, errors)
    for index, container in enumerate(spec.get("initContainers") or ()):
        place = f"{path}.initContainers[{index}]"
        # An init container's host ports may repeat the regular ones': they never run side by side.
        _validate_container(container, place, facts, set(), errors)
        if container.get("restartPolicy") == "Always":
            if "lifecycle" in container:
                validate_lifecycle(
                    container["lifecycle"], f"{place}.lifecycle", facts.grace_seconds, facts.os_name, errors
                )
            validate_probes(container, place, errors)
            continue
        for name in ("lifecycle", *PROBES):
            if name in container:
                errors.forbidden(f"{place}.{name}", "may not be set for init containers without restartPolicy=Always")


def _validate_container(
    container: JsonObject, path: str, facts: PodFacts, host_ports: set[str], errors: FieldErrors
) -> None:
    name = container.get("name", "")
    if not name:
        errors.required(f"{path}.name")
    else:
        errors.invalid_all(f"{path}.name", name, dns_label_errors(name))
        if name in facts.names:
            errors.duplicate(f"{path}.name", name)
        facts.names.add(name)
    image = container.get("image", "")
    if not image:
        errors.required(f"{path}.image")
    elif image != image.strip():
        errors.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    errors.one_of(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), PULL_POLICIES)
    errors.one_of(
        f"{path}.terminationMessagePolicy",
        container.get("terminationMessagePolicy"),
        ("FallbackToLogsOnError", "File"),
    )
    _validate_ports(container.get("ports") or [], f"{path}.ports", facts, host_ports, errors)
    validate_env(container.get("env") or [], f"{path}.env", errors)
    validate_env_from(container.get("envFrom") or [], f"{path}.envFrom", errors)
    validate_mounts(container, path, facts.volumes, errors)
    validate_file_keys(container, path, facts.volumes, errors)
    if "resources" in container:
        validate_resources(container["resources"], f"{path}.resources", facts.claims, errors)
    if "securityContext" in container:
        validate_container_security(
            container["securityContext"], f"{path}.securityContext", errors, host_users=facts.host_users
        )
    for index, policy in enumerate(container.get("resizePolicy") or ()):
        place = f"{path}.resizePolicy[{index}]"
        errors.one_of(f"{place}.resourceName", policy.get("resourceName", ""), ("cpu", "memory"))
        errors.one_of(f"{place}.restartPolicy", policy.get("restartPolicy", ""), ("NotRequired", "RestartContainer"))
    _validate_restart_policy(container, path, errors)


def _validate_ports(
    ports: list[JsonObject], path: str, facts: PodFacts, host_ports: set[str], errors: FieldErrors
) -> None:
    names: set[str] = set()
    for index, port in enumerate(ports):
        place = f"{path}[{index}]"
        name = port.get("name", "")
        if name:
            errors.invalid_all(f"{place}.name", name, port_name_errors(name))
            if name in names:
                errors.duplicate(f"{place}.name", name)
            names.add(name)
        number, host_port = port.get("containerPort", 0), port.get("hostPort", 0)
        if number == 0:
            errors.required(f"{place}.containerPort")
        else:
            errors.invalid_all(f"{place}.containerPort", number, port_number_errors(number))
        if host_port != 0:
            errors.invalid_all(f"{place}.hostPort", host_port, port_number_errors(host_port))
            if facts.host_network and host_port != number:
                errors.invalid(f"{place}.containerPort", number, "must match `hostPort` when `hostNetwork` is true")
            key = f"{port.get('protocol', 'TCP')}/{port.get('hostIP', '')}/{host_port}"
            if key in host_ports:
                errors.duplicate(f"{place}.hostPort", key)
            host_ports.add(key)
        if port.get("hostIP"):
            errors.invalid_all(f"{place}.hostIP", port["hostIP"], ip_errors(port["hostIP"]))
        errors.one_of(f"{place}.protocol", port.get("protocol"), PROTOCOLS)


def _validate_restart_policy(container: JsonObject, path: str, errors: FieldErrors) -> None:
    policy = container.get("restartPolicy")
    errors.one_of(f"{path}.restartPolicy", policy, RESTART_POLICIES)
    rules = container.get("restartPolicyRules") or []
    place = f"{path}.restartPolicyRules"
    if not rules:
        return
    if not policy:
        errors.required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    if len(rules) > _MAX_RESTART_RULES:
        errors.too_many(place, len(rules), _MAX_RESTART_RULES)
    for index, rule in enumerate(rules):
        action = rule.get("action", "")
        if not action:
            errors.required(f"{place}[{index}].action")
        else:
            errors.one_of(f"{place}[{index}].action", action, ("Restart", "RestartAllContainers"))
        codes = rule.get("exitCodes")
        inner = f"{place}[{index}].exitCodes"
        if codes is None:
            errors.required(inner, "must be specified")
            continue
        if not codes.get("operator"):
            errors.required(f"{inner}.operator")
        else:
            errors.one_of(f"{inner}.operator", codes["operator"], ("In", "NotIn"))
        values = codes.get("values") or []
        if not values:
            errors.required(f"{inner}.values", "must specify at least one value")
        elif len(values) > _MAX_EXIT_CODES:
            errors.too_many(f"{inner}.values", len(values), _MAX_EXIT_CODES)
