"""A real control plane of the tests' own, on loopback: etcd, kube-apiserver 1.20.2, and what schedules and controls."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
from pathlib import Path
from typing import Any

from tests.support.certificates import Pair, TestCa
from tests.support.eventually import eventually
from tests.support.nats_server import free_port

_CACHE = os.environ.get("PODBUS_CACHE") or f"{os.environ.get('XDG_CACHE_HOME') or '/var/cache'}/podbus"
BIN = Path(_CACHE) / "kubernetes-1.20.2" / "bin"
"""Made by deploy/cluster/build.sh."""
SERVICE_RANGE = "10.255.0.0/24"
_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


class Cluster:
    """`start` brings all of it up; `stop` ends it. `kill_server` and `start_server` are an outage of the API."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.ca = TestCa(directory / "ca")
        self.port, self._etcd_port, self._peer_port = free_port(), free_port(), free_port()
        addresses = ("127.0.0.1", SERVICE_RANGE.replace("0/24", "1"))
        self._serving = self.ca.server("kube-apiserver", addresses=addresses)
        self._accounts = self.ca.client("service-accounts")
        self._admin = self.ca.client("admin", "system:masters")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        (directory / "audit.yaml").write_text(json.dumps(_AUDIT))

    # -- its processes ----------------------------------------------------------------------------------------

    def start(self) -> None:
        here = f"http://127.0.0.1:{self._etcd_port}"
        peer = f"http://127.0.0.1:{self._peer_port}"
        self._run(
            "etcd",
            *("--data-dir", str(self._directory / "etcd")),
            *("--listen-client-urls", here, "--advertise-client-urls", here),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}", "--unsafe-no-fsync"),
        )
        self.start_server()
        config = str(self.kubeconfig("admin", self._admin))
        self._run(
            "kube-controller-manager",
            f"--kubeconfig={config}",
            "--port=0",
            f"--secure-port={free_port()}",
            "--bind-address=127.0.0.1",
            f"--service-account-private-key-file={self._accounts.key}",
            f"--root-ca-file={self.ca.pair.certificate}",
            f"--cluster-signing-cert-file={self.ca.pair.certificate}",
            f"--cluster-signing-key-file={self.ca.pair.key}",
            "--leader-elect=false",
            "--node-monitor-grace-period=20s",
            "--pod-eviction-timeout=10m",
        )
        self._run(
            "kube-scheduler",
            f"--kubeconfig={config}",
            "--port=0",
            f"--secure-port={free_port()}",
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
        )
        eventually(lambda: self.call("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200, within=90)

    def start_server(self, *extra: str) -> None:
        here = self._directory
        self._run(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--client-ca-file={self.ca.pair.certificate}",
            f"--tls-cert-file={self._serving.certificate}",
            f"--tls-private-key-file={self._serving.key}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--enable-bootstrap-token-auth",
            "--feature-gates=BoundServiceAccountTokenVolume=true",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={self._accounts.key}",
            f"--service-account-key-file={self._accounts.certificate}",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            "--kubelet-preferred-address-types=Hostname,InternalIP",
            f"--kubelet-client-certificate={self._admin.certificate}",
            f"--kubelet-client-key={self._admin.key}",
            f"--audit-policy-file={here / 'audit.yaml'}",
            f"--audit-log-path={here / 'audit.log'}",
            *extra,
        )
        eventually(lambda: self._is_ready("kube-apiserver"), within=120, every=0.2)

    def kill_server(self) -> None:
        self._end("kube-apiserver")

    def stop(self) -> None:
        for name in list(self._processes):
            self._end(name)

    def _run(self, name: str, *arguments: str) -> None:
        with (self._directory / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [str(BIN / name), *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def _end(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def _is_ready(self, name: str) -> bool:
        if (code := self._processes[name].poll()) is not None:
            raise RuntimeError(f"{name} ended with {code}:\n{self.log(name)[-4000:]}")
        return self.call("GET", "/readyz")[0] == 200

    def log(self, name: str) -> str:
        return (self._directory / f"{name}.log").read_text(errors="replace")

    def audited(self, user: str) -> list[dict[str, Any]]:
        """Requests by this user, as the server's audit tells them."""
        lines = (self._directory / "audit.log").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["user"].get("username") == user]

    # -- its clients ------------------------------------------------------------------------------------------

    def call(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> tuple[int, Any]:
        """As the cluster's administrator: (code, the decoded answer, or its text). Raises OSError."""
        context = ssl.create_default_context(cafile=str(self.ca.pair.certificate))
        context.load_cert_chain(self._admin.certificate, self._admin.key)
        link = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=10)
        try:
            data = None if body is None else json.dumps(body)
            link.request(method, path, data, {"Content-Type": content_type})
            answer = link.getresponse()
            text = answer.read()
        finally:
            link.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text.decode(errors="replace")

    def get(self, path: str) -> Any:
        """Raises AssertionError for any code but 200."""
        code, body = self.call("GET", path)
        assert code == 200, (code, body)
        return body

    def pod(self, name: str, namespace: str = "default") -> Any:
        return self.get(f"/api/v1/namespaces/{namespace}/pods/{name}")

    def kubectl(self, *arguments: str, stdin: bytes = b"", within: float = 60, check: bool = True) -> str:
        """Its standard output, and its errors too when they aren't checked."""
        done = subprocess.run(
            self.kubectl_command(*arguments), input=stdin, capture_output=True, timeout=within, check=False
        )
        said = done.stderr.decode(errors="replace")
        assert done.returncode == 0 or not check, (arguments, done.stdout.decode(errors="replace"), said)
        return done.stdout.decode(errors="replace") + ("" if check else said)

    def kubectl_command(self, *arguments: str) -> list[str]:
        """For a test that keeps it running."""
        return [str(BIN / "kubectl"), f"--kubeconfig={self.kubeconfig('admin', self._admin)}", *arguments]

    def apply(self, manifest: str) -> str:
        return self.kubectl("apply", "-f", "-", stdin=manifest.encode())

    def node_kubeconfig(self, node: str) -> Path:
        """With a certificate that the Node authorizer and NodeRestriction know."""
        return self.kubeconfig(node, self.ca.client(f"system:node:{node}", "system:nodes"))

    def kubeconfig(self, name: str, pair: Pair) -> Path:
        path = self._directory / f"{name}.kubeconfig"
        server = {
            "server": f"https://127.0.0.1:{self.port}",
            "certificate-authority": str(self.ca.pair.certificate),
        }
        user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "test",
                    "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
                    "clusters": [{"name": "test", "cluster": server}],
                    "users": [{"name": name, "user": user}],
                }
            )
        )
        return path
