"""Validation of a defaulted pod: kubelet 1.36 ValidatePodCreate, every error at once."""

from __future__ import annotations

import re
from typing import Any

from services.source.core.field_errors import FieldErrors
from services.source.core.validate_containers import RESTART_POLICIES, PodFacts, validate_containers
from services.source.core.validate_meta import validate_object_meta
from services.source.core.validate_pod_resources import validate_pod_consistency
from services.source.core.validate_resources import validate_resource_list, validate_resources
from services.source.core.validate_scheduling import validate_scheduling
from services.source.core.validate_security import validate_pod_security
from services.source.core.validate_volumes import validate_volumes
from shared.kube.validation_names import dns_label_errors, dns_subdomain_errors, ip_errors

JsonObject = dict[str, Any]

DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
MAX_NAMESERVERS = 3
MAX_SEARCHES = 32
MAX_SEARCH_CHARACTERS = 2048
_MAX_HOSTNAME = 64
# kubelet 1.34: RelaxedDNSSearchValidation allows underscores and a lone dot.
_SEARCH = re.compile(r"\.|([a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*\.?", re.ASCII)


def validate_pod(pod: JsonObject, prefix: str, errors: FieldErrors) -> None:
    """`pod` conforms to v1.Pod and has its defaults; `prefix` goes before every path ("items[0].")."""
    validate_object_meta(pod.get("metadata") or {}, f"{prefix}metadata", errors)
    spec: JsonObject = pod.get("spec") or {}
    path = f"{prefix}spec"
    volumes = validate_volumes(spec.get("volumes") or [], f"{path}.volumes", errors)
    claims = _validate_claims(spec.get("resourceClaims") or [], f"{path}.resourceClaims", errors)
    facts = PodFacts(
        volumes=volumes,
        claims=claims,
        host_network=spec.get("hostNetwork") is True,
        host_users=spec.get("hostUsers") is not False,
        grace_seconds=spec.get("terminationGracePeriodSeconds", 30),
        os_name=(spec.get("os") or {}).get("name", ""),
    )
    validate_containers(spec, path, facts, errors)
    if spec.get("ephemeralContainers"):
        errors.forbidden(f"{path}.ephemeralContainers", "cannot be set on create")
    errors.one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES)
    errors.not_negative(f"{path}.terminationGracePeriodSeconds", spec.get("terminationGracePeriodSeconds"))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        errors.invalid(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    _validate_dns(spec, path, errors)
    _validate_host_names(spec, path, errors)
    validate_scheduling(spec, path, errors)
    validate_pod_security(spec, path, errors)
    if "resources" in spec:
        validate_resources(spec["resources"], f"{path}.resources", claims, errors, of_pod=True)
        validate_pod_consistency(spec, path, errors)
    validate_resource_list(spec.get("overhead") or {}, f"{path}.overhead", errors)
    for field in ("serviceAccountName", "runtimeClassName"):
        if spec.get(field):
            errors.invalid_all(f"{path}.{field}", spec[field], dns_subdomain_errors(spec[field]))
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            errors.required(f"{path}.imagePullSecrets[{index}].name")
    if "os" in spec:
        name = facts.os_name
        if not name:
            errors.required(f"{path}.os.name")
        else:
            errors.one_of(f"{path}.os.name", name, ("linux", "windows"))


def _validate_dns(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    policy, config = spec.get("dnsPolicy"), spec.get("dnsConfig") or {}
    errors.one_of(f"{path}.dnsPolicy", policy, DNS_POLICIES)
    place = f"{path}.dnsConfig"
    servers = config.get("nameservers") or []
    if policy == "None" and not servers:
        errors.required(
            f"{place}.nameservers" if config else place,
            "must provide at least one DNS nameserver when `dnsPolicy` is None",
        )
    if len(servers) > MAX_NAMESERVERS:
        errors.invalid(f"{place}.nameservers", servers, f"must not have more than {MAX_NAMESERVERS} nameservers")
    for index, server in enumerate(servers):
        errors.invalid_all(f"{place}.nameservers[{index}]", server, ip_errors(server))
    searches = config.get("searches") or []
    if len(searches) > MAX_SEARCHES:
        errors.invalid(f"{place}.searches", searches, f"must not have more than {MAX_SEARCHES} search paths")
    if len(" ".join(searches)) > MAX_SEARCH_CHARACTERS:
        errors.invalid(
            f"{place}.searches",
            searches,
            f"must not have more than {MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list",
        )
    for index, search in enumerate(searches):
        if len(search) > 254 or not _SEARCH.fullmatch(search):
            errors.invalid(f"{place}.searches[{index}]", search, dns_subdomain_errors("!")[0])
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.required(f"{place}.options[{index}]", "must not be empty")


def _validate_host_names(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            errors.invalid_all(f"{path}.{field}", spec[field], dns_label_errors(spec[field]))
    override = spec.get("hostnameOverride")
    if override is not None:
        place = f"{path}.hostnameOverride"
        if spec.get("hostNetwork"):
            errors.forbidden(place, "can not be set when `hostNetwork` is true")
        if spec.get("setHostnameAsFQDN"):
            errors.forbidden(place, "can not be set when `setHostnameAsFQDN` is true")
        if len(override) > _MAX_HOSTNAME:
            errors.too_long(place, _MAX_HOSTNAME)
        errors.invalid_all(place, override, dns_subdomain_errors(override))
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        place = f"{path}.hostAliases[{index}]"
        ip = alias.get("ip", "")
        if not ip:
            errors.required(f"{place}.ip")
        else:
            errors.invalid_all(f"{place}.ip", ip, ip_errors(ip))
        for number, name in enumerate(alias.get("hostnames") or ()):
            errors.invalid_all(f"{place}.hostnames[{number}]", name, dns_subdomain_errors(name))


def _validate_claims(claims: list[JsonObject], path: str, errors: FieldErrors) -> frozenset[str]:
    names: set[str] = set()
    for index, claim in enumerate(claims):
        place, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            errors.required(f"{place}.name")
        else:
            errors.invalid_all(f"{place}.name", name, dns_label_errors(name))
            if name in names:
                errors.duplicate(f"{place}.name", name)
            names.add(name)
        given = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field)]
        if len(given) != 1:
            errors.invalid(
                place, claim, "must specify exactly one of: `resourceClaimName`, `resourceClaimTemplateName`"
            )
    return frozenset(names)
