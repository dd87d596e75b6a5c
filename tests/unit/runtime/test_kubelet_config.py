"""KubeletConfiguration files: what counts, what is refused, what is only told."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.runtime.config import UNBOUNDED_PULLS, KubeletConfig, config_document
from shared.runtime.config_names import WITHOUT_EFFECT
from shared.runtime.config_reader import load_config

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kubelet.yaml"


def read(file: Path, body: str, head: str = HEAD) -> tuple[KubeletConfig, list[str], list[str]]:
    file.write_text(head + body)
    config, errors, warnings = load_config(file)
    return (
        config,
        [text.removeprefix(f"{file}:") for text in errors],
        [text.removeprefix(f"{file}:") for text in warnings],
    )


def test_an_empty_configuration_has_the_defaults(file: Path) -> None:
    assert read(file, "") == (KubeletConfig(), [], [])


def test_fields_with_an_effect_are_read(file: Path) -> None:
    config, errors, warnings = read(
        file,
        "staticPodPath: /m\nport: 1234\nhealthzPort: 0\nfileCheckFrequency: 1m30s\nmaxPods: 5\n"
        "crashLoopBackOff: {maxContainerRestartPeriod: 2s}\ncontainerLogMaxSize: 1Mi\n"
        "authentication: {x509: {clientCAFile: /ca}}\nsystemReserved: {cpu: 100m}\nclusterDNS: [10.0.0.10]\n",
    )
    assert (errors, warnings) == ([], [])
    assert config == KubeletConfig(
        static_pod_path="/m",
        port=1234,
        healthz_port=0,
        file_check_seconds=90.0,
        max_pods=5,
        max_restart_period_seconds=2.0,
        log_max_bytes=1 << 20,
        client_ca_file="/ca",
        system_reserved={"cpu": "100m"},
        cluster_dns=("10.0.0.10",),
    )


def test_zero_and_empty_values_mean_the_default(file: Path) -> None:
    """Kubernetes: as kubeadm writes them."""
    body = "port: 0\nmaxPods: 0\nfileCheckFrequency: 0s\nstaticPodPath: ''\nclusterDNS: null\n"
    assert read(file, body) == (KubeletConfig(), [], [])


def test_every_wrong_value_is_told_at_once_with_its_line(file: Path) -> None:
    config, errors, _ = read(
        file,
        "port: 70000\nfileCheckFrequency: 20\nsyncFrequency: soon\ncgroupDriver: cgroup\nclusterDNS: [ten]\n"
        "evictionHard:\n  memory.available: lots\n  nodefs.avail: 5%\ncrashLoopBackOff:\n"
        "  maxContainerRestartPeriod: 301s\nstaticPodPath: here\nmaxPods: many\ncontainerLogMaxFiles: 1\n",
    )
    assert config == KubeletConfig()
    assert [text.split(": ")[0:2] for text in errors] == [
        ["3", "port"],
        ["4", "fileCheckFrequency"],
        ["5", "syncFrequency"],
        ["6", "cgroupDriver"],
        ["7", "clusterDNS"],
        ["8", "evictionHard"],
        ["8", "evictionHard"],
        ["12", "crashLoopBackOff.maxContainerRestartPeriod"],
        ["13", "staticPodPath"],
        ["14", "maxPods"],
        ["15", "containerLogMaxFiles"],
    ]


def test_an_unknown_key_names_the_nearest_known_one(file: Path) -> None:
    _, errors, warnings = read(file, "maxPod: 3\nauthentication: {x509: {clientCAfile: /x}}\n")
    assert errors == []
    assert warnings == [
        '3: maxPod: unknown field; did you mean "maxPods"?',
        '4: authentication.x509.clientCAfile: unknown field; did you mean "clientCAFile"?',
    ]


def test_a_known_field_without_effect_is_told_unless_it_says_what_is_so_anyway(file: Path) -> None:
    _, errors, warnings = read(file, "rotateCertificates: true\nfailSwapOn: false\neventBurst: 100\n")
    assert errors == []
    assert warnings == [
        f"3: rotateCertificates: has no effect: {WITHOUT_EFFECT['rotateCertificates']}",
        f"5: eventBurst: has no effect: {WITHOUT_EFFECT['eventBurst']}",
    ]


def test_another_kind_is_refused(file: Path) -> None:
    _, errors, _ = read(file, "", head="apiVersion: v1\nkind: Pod\n")
    assert errors == [
        '1: apiVersion: must be "kubelet.config.k8s.io/v1beta1", got "v1"',
        '2: kind: must be "KubeletConfiguration", got "Pod"',
    ]


def test_a_key_that_is_there_twice_is_refused(file: Path) -> None:
    assert read(file, "port: 1\nport: 2\n")[1] == ["4: port: the key is there twice, first in line 3"]


def test_broken_yaml_and_a_missing_file_are_told(file: Path, tmp_path: Path) -> None:
    assert len(read(file, "a: [\n")[1]) == 1
    assert load_config(tmp_path / "none")[1] == [f"{tmp_path / 'none'}: No such file or directory"]


def test_json_is_read_too(file: Path) -> None:
    text = '{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",\t"port": 7}'
    assert read(file, text, head="")[0].port == 7


def test_eviction_defaults_are_dropped_by_naming_one_unless_merged(file: Path) -> None:
    """kubelet 1.36: mergeDefaultEvictionSettings."""
    body = "evictionHard: {memory.available: 1Gi}\n"
    assert read(file, body)[0].eviction_hard == {"memory.available": "1Gi"}
    merged = read(file, body + "mergeDefaultEvictionSettings: true\n")[0].eviction_hard
    assert merged == {**KubeletConfig().eviction_hard, "memory.available": "1Gi"}


def test_parallel_pulls_need_serialize_image_pulls_off(file: Path) -> None:
    assert read(file, "serializeImagePulls: false\nmaxParallelImagePulls: 3\n")[0].max_parallel_pulls == 3
    assert read(file, "serializeImagePulls: false\n")[0].max_parallel_pulls == UNBOUNDED_PULLS
    _, errors, _ = read(file, "serializeImagePulls: true\nmaxParallelImagePulls: 3\n")
    assert errors == ["4: maxParallelImagePulls: cannot be larger than 1 unless serializeImagePulls is false"]


def test_the_effective_document_reads_back_as_itself(file: Path) -> None:
    import json

    config, *_ = read(file, "staticPodPath: /m\nmaxPods: 7\nserializeImagePulls: false\nsyncFrequency: 90s\n")
    file.write_text(json.dumps(config_document(config)))
    assert load_config(file) == (config, [], [])


def test_a_url_of_manifests_is_read_with_its_headers(file: Path) -> None:
    body = "staticPodURL: https://me:pw@h/pods\nstaticPodURLHeader: {Authorization: [a, b]}\nhttpCheckFrequency: 5s\n"
    config, errors, warnings = read(file, body)
    assert (errors, warnings) == ([], [])
    assert config.static_pod_url == "https://me:pw@h/pods"
    assert config.static_pod_url_header == {"Authorization": ("a", "b")}
    assert config.http_check_seconds == 5.0


def test_what_a_url_is_asked_with_is_never_shown(file: Path) -> None:
    body = "staticPodURL: https://me:pw@h/pods?a=b@c\nstaticPodURLHeader: {Authorization: [s3cret]}\n"
    config, _, _ = read(file, body)
    document = config_document(config)
    assert document["staticPodURL"] == "https://h/pods?a=b@c"
    assert document["staticPodURLHeader"] == {"Authorization": ["<masked>"]}
    assert "s3cret" not in repr(config)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("staticPodURL: ftp://h/x", "3: staticPodURL: must be an http or https URL with a host"),
        ("staticPodURL: 'http:///x'", "3: staticPodURL: must be an http or https URL with a host"),
        ("staticPodURL: 'http://h/a b'", "3: staticPodURL: must be an http or https URL with a host"),
        ("staticPodURL: http://h:99999/", "3: staticPodURL: must be an http or https URL with a host"),
        ("staticPodURLHeader: {X-A: one}", "3: staticPodURLHeader: X-A: must be a list of strings"),
        ("staticPodURLHeader: {'X A': [one]}", '3: staticPodURLHeader: "X A" is not a header\'s name'),
        (
            'staticPodURLHeader: {X-A: ["s3cret\\nX-B: x"]}',
            "3: staticPodURLHeader: X-A: a value has a character that no header may have",
        ),
        (
            "allowedUnsafeSysctls: [vm.swappiness]",
            '3: allowedUnsafeSysctls: "vm.swappiness" is not known to be namespaced',
        ),
        ("allowedUnsafeSysctls: [net.*.x]", '3: allowedUnsafeSysctls: "net.*.x" is not known to be namespaced'),
    ],
)
def test_a_wrong_url_header_or_sysctl_is_refused(file: Path, body: str, error: str) -> None:
    _, errors, _ = read(file, body)
    assert errors == [error]


def test_unsafe_sysctls_are_allowed_by_name_or_beginning(file: Path) -> None:
    config, errors, _ = read(file, "allowedUnsafeSysctls: ['kernel.msg*', net/core/somaxconn]\n")
    assert errors == []
    assert config.allowed_unsafe_sysctls == ("kernel.msg*", "net.core.somaxconn")


def test_images_are_collected_between_two_thresholds_and_ages(file: Path) -> None:
    config, errors, _ = read(
        file,
        "imageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 60\n"
        "imageMinimumGCAge: 5m\nimageMaximumGCAge: 24h\n"
        "podPidsLimit: 100\nimagePullCredentialsVerificationPolicy: AlwaysVerify\n",
    )
    assert errors == []
    assert (config.image_gc_high_percent, config.image_gc_low_percent) == (70, 60)
    assert (config.image_min_age_seconds, config.image_max_age_seconds) == (300, 86400)
    assert (config.pod_pids_limit, config.pull_verification) == (100, "AlwaysVerify")
    assert read(file, "imageGCLowThresholdPercent: 85\n")[1] == [
        "3: imageGCLowThresholdPercent: must be less than imageGCHighThresholdPercent, 85"
    ]
    assert read(file, "imageMaximumGCAge: 1m\n")[1] == ["3: imageMaximumGCAge: must be greater than imageMinimumGCAge"]
    (told,) = read(file, "imagePullCredentialsVerificationPolicy: Sometimes\n")[1]
    assert "must be one of NeverVerifyPreloadedImages, NeverVerify, AlwaysVerify" in told


def test_who_may_ask_and_by_which_tls_is_read(file: Path) -> None:
    config, errors, warnings = read(
        file,
        "tlsMinVersion: VersionTLS13\ntlsCipherSuites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]\n"
        "authentication:\n  anonymous: {enabled: true}\n  webhook: {enabled: false, cacheTTL: 3m}\n"
        "authorization:\n  mode: AlwaysAllow\n  webhook: {cacheAuthorizedTTL: 1m, cacheUnauthorizedTTL: 2s}\n",
    )
    assert (errors, warnings) == ([], [])
    assert config.tls_min_version == "VersionTLS13"
    assert config.tls_cipher_suites == ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",)
    assert (config.anonymous, config.token_webhook, config.token_webhook_seconds) == (True, False, 180.0)
    assert (config.authorization_mode, config.authorized_seconds, config.unauthorized_seconds) == (
        "AlwaysAllow",
        60.0,
        2.0,
    )


def test_unknown_names_of_tls_are_refused_by_name(file: Path) -> None:
    """kubelet's text for a suite."""
    body = "tlsMinVersion: TLS1.2\ntlsCipherSuites: [TLS_FOO, TLS_RSA_WITH_RC4_128_SHA]\nauthorization: {mode: ABAC}\n"
    assert read(file, body)[1] == [
        '3: tlsMinVersion: must be one of VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13, got "TLS1.2"',
        "4: tlsCipherSuites: Cipher suite TLS_FOO not supported or doesn't exist",
        "4: tlsCipherSuites: Cipher suite TLS_RSA_WITH_RC4_128_SHA not supported or doesn't exist",
        '5: authorization.mode: must be one of Webhook, AlwaysAllow, got "ABAC"',
    ]
