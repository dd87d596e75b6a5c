"""A v1.Pod and its events -> the text of `kubectl describe pod` (kubectl 1.36: pkg/describe), and two things more:
why a container waits and for how long still, and the last log lines of one that crashed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from cli.columns import align
from cli.describe_volumes import environment_sources, origin, volumes
from cli.human import NONE, epoch, human_duration, rfc1123, since

Object = Mapping[str, Any]

_MOST_ANNOTATION = 140
_NEXT_TRY = re.compile(r"next try at (\S+Z)")
"""As podworker ends the message of a back-off."""
_HIDDEN_ANNOTATIONS = ("kubectl.kubernetes.io/last-applied-configuration",)


def pod_text(
    pod: Object, events: Sequence[Object] | None, now: float, last_words: Mapping[str, Sequence[str]] | None = None
) -> str:
    """`events`: RecordedEvents of the API (shared.contracts.events), None = they could not be had. `last_words`: log
    lines by container."""
    blocks = [list(_pod(pod, now, last_words or {}))]
    if events is None:
        blocks[0].append("Events:\t<unknown>")
    elif not events:
        blocks[0].append(f"Events:\t{NONE}")
    else:
        blocks.append(list(_events(events, now)))
    # the events' columns are laid out by themselves
    return "".join("\n".join(align(block, minimum=0, padding=2)) + "\n" for block in blocks)


def _pod(pod: Object, now: float, last_words: Mapping[str, Sequence[str]]) -> Iterator[str]:
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    yield from _head(meta, spec, status, now)
    for title, key, of_status in (
        ("Init Containers", "initContainers", "initContainerStatuses"),
        ("Containers", "containers", "containerStatuses"),
        ("Ephemeral Containers", "ephemeralContainers", "ephemeralContainerStatuses"),
    ):
        if spec.get(key) or key == "containers":
            yield from _containers(title, spec.get(key) or [], status.get(of_status), now, last_words)
    if spec.get("readinessGates"):
        found = {c.get("type"): c.get("status") for c in status.get("conditions") or []}
        yield from ("Readiness Gates:", "  Type\tStatus")
        for gate in spec["readinessGates"]:
            yield f"  {gate.get('conditionType')} \t{found.get(gate.get('conditionType'), NONE)} "
    if status.get("conditions"):
        yield from ("Conditions:", "  Type\tStatus")
        for condition in status["conditions"]:
            yield f"  {condition.get('type')} \t{condition.get('status')} "
    yield from volumes(spec.get("volumes") or [])
    yield f"QoS Class:\t{status.get('qosClass', '')}"
    yield from _multiline("Node-Selectors", _pairs(spec.get("nodeSelector") or {}))
    tolerations = sorted(spec.get("tolerations") or [], key=lambda toleration: str(toleration.get("key", "")))
    yield from _multiline("Tolerations", [_toleration(toleration) for toleration in tolerations])


def _head(meta: Object, spec: Object, status: Object, now: float) -> Iterator[str]:
    yield f"Name:\t{meta.get('name', '')}"
    yield f"Namespace:\t{meta.get('namespace', '')}"
    if spec.get("priority") is not None:
        yield f"Priority:\t{spec['priority']}"
    for title, key in (
        ("Priority Class Name", "priorityClassName"),
        ("Runtime Class Name", "runtimeClassName"),
        ("Service Account", "serviceAccountName"),
    ):
        if spec.get(key):
            yield f"{title}:\t{spec[key]}"
    yield f"Node:\t{spec['nodeName']}/{status.get('hostIP', '')}" if spec.get("nodeName") else f"Node:\t{NONE}"
    if status.get("startTime"):
        yield f"Start Time:\t{rfc1123(status['startTime'])}"
    yield from _multiline("Labels", _pairs(meta.get("labels") or {}))
    yield from _annotations(meta.get("annotations") or {})
    if meta.get("deletionTimestamp") and status.get("phase") not in ("Failed", "Succeeded"):
        yield f"Status:\tTerminating (lasts {since(meta['deletionTimestamp'], now)})"
        yield f"Termination Grace Period:\t{meta.get('deletionGracePeriodSeconds', 0)}s"
    else:
        yield f"Status:\t{status.get('phase', '')}"
    for title, key in (("Reason", "reason"), ("Message", "message")):
        if status.get(key):
            yield f"{title}:\t{status[key]}"
    yield f"IP:\t{status.get('podIP', '')}"
    addresses = status.get("podIPs") or []
    if not addresses:
        yield f"IPs:\t{NONE}"
        return
    yield "IPs:"
    for address in addresses:
        yield f"  IP:\t{address.get('ip', '')}"


def _containers(
    title: str,
    containers: Sequence[Object],
    statuses: Sequence[Object] | None,
    now: float,
    last_words: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    yield f"{title}:" + ("" if containers else f" {NONE}")
    by_name = {status["name"]: status for status in statuses or []}
    for container in containers:
        yield f"  {container['name']}:"
        words = last_words.get(container["name"]) or ()
        yield from _indent(4, _container(container, by_name.get(container["name"]), now, words))


def _container(container: Object, status: Object | None, now: float, last_words: Sequence[str]) -> Iterator[str]:
    ports = container.get("ports") or []
    if status is not None:
        yield f"Container ID:\t{status.get('containerID', '')}"
    yield f"Image:\t{container.get('image', '')}"
    if status is not None:
        yield f"Image ID:\t{status.get('imageID', '')}"
    for title, key in (("Port", "containerPort"), ("Host Port", "hostPort")):
        text = ", ".join(_port(port, key) for port in ports)
        yield f"{title}{'s' if len(ports) > 1 else ''}:\t{text or NONE}"
    for title, key in (("Command", "command"), ("Args", "args")):
        if container.get(key):
            yield f"{title}:"
            for word in container[key]:
                yield from _indent(2, word.split("\n"))
    if status is not None:
        yield from _state("State", status.get("state") or {}, now)
        if (status.get("lastState") or {}).get("terminated"):
            yield from _state("Last State", status["lastState"], now)
        if last_words:  # not in kubectl: there it's in another command
            yield from _multiline("Last Log", last_words)
        yield f"Ready:\t{'True' if status.get('ready') else 'False'}"
        yield f"Restart Count:\t{status.get('restartCount', 0)}"
    resources = container.get("resources") or {}
    for title, key in (("Limits", "limits"), ("Requests", "requests")):
        if resources.get(key):
            yield f"{title}:"
            yield from (f"  {name}:\t{resources[key][name]}" for name in sorted(resources[key]))
    for title, key in (
        ("Liveness", "livenessProbe"),
        ("Readiness", "readinessProbe"),
        ("Startup", "startupProbe"),
    ):
        if container.get(key):
            yield f"{title}:\t{_probe(container[key])}"
    yield from environment_sources(container.get("envFrom") or [])
    yield from _environment(container.get("env") or [])
    mounts = sorted(container.get("volumeMounts") or [], key=lambda mount: str(mount.get("mountPath", "")))
    yield "Mounts:" + ("" if mounts else f"\t{NONE}")
    for mount in mounts:
        flags = ["ro" if mount.get("readOnly") else "rw"]
        if mount.get("subPath"):
            flags.append(f'path="{mount["subPath"]}"')
        yield f"  {mount.get('mountPath', '')} from {mount.get('name', '')} ({','.join(flags)})"


def _port(port: Object, key: str) -> str:
    name = f" ({port['name']})" if port.get("name") else ""
    return f"{port.get(key, 0)}/{port.get('protocol') or 'TCP'}{name}"


def _state(title: str, state: Object, now: float) -> Iterator[str]:
    running, terminated, waiting = state.get("running"), state.get("terminated"), state.get("waiting") or {}
    if running is not None:
        yield f"{title}:\tRunning"
        yield f"  Started:\t{rfc1123(running.get('startedAt'))}"
        return
    if terminated is None:
        yield f"{title}:\tWaiting"
        if waiting.get("reason"):
            yield f"  Reason:\t{waiting['reason']}"
        if waiting.get("message"):  # not in kubectl: here a pull says how far it is
            yield f"  Message:\t{_with_remaining(_one_line(waiting['message']), now)}"
        return
    yield f"{title}:\tTerminated"
    if terminated.get("reason"):
        yield f"  Reason:\t{terminated['reason']}"
    if terminated.get("message"):
        yield f"  Message:\t{_one_line(terminated['message'])}"
    yield f"  Exit Code:\t{terminated.get('exitCode', 0)}"
    if terminated.get("signal"):
        yield f"  Signal:\t{terminated['signal']}"
    yield f"  Started:\t{rfc1123(terminated.get('startedAt'))}"
    yield f"  Finished:\t{rfc1123(terminated.get('finishedAt'))}"


def _with_remaining(message: str, now: float) -> str:
    """How long a back-off still lasts."""
    found = _NEXT_TRY.search(message)
    until = epoch(found.group(1)) if found else None
    if found is None or until is None:
        return message
    left = f"in {human_duration(until - now)}" if until > now else "now"
    return f"{message[: found.end()]} ({left}){message[found.end() :]}"


def _environment(variables: Sequence[Object]) -> Iterator[str]:
    yield "Environment:" + ("" if variables else f"\t{NONE}")
    for variable in variables:
        if variable.get("valueFrom"):
            yield f"  {variable['name']}:\t{origin(variable['valueFrom'])}"
            continue
        first, *rest = str(variable.get("value") or "").split("\n")
        yield f"  {variable['name']}:\t{first}"
        yield from (f"  \t{line}" for line in rest)


def _probe(probe: Object) -> str:
    timing = (
        f"delay={probe.get('initialDelaySeconds', 0)}s timeout={probe.get('timeoutSeconds', 1)}s"
        f" period={probe.get('periodSeconds', 10)}s #success={probe.get('successThreshold', 1)}"
        f" #failure={probe.get('failureThreshold', 3)}"
    )
    if act := probe.get("exec"):
        return f"exec [{' '.join(act.get('command') or [])}] {timing}"
    if act := probe.get("httpGet"):
        scheme, path = str(act.get("scheme") or "HTTP").lower(), quote(act.get("path") or "/", safe="/$&+,:;=@~")
        return f"http-get {scheme}://{act.get('host', '')}:{act.get('port')}{path} {timing}"
    if act := probe.get("tcpSocket"):
        return f"tcp-socket {act.get('host', '')}:{act.get('port')} {timing}"
    if act := probe.get("grpc"):
        return f"grpc <pod>:{act.get('port')} {act.get('service') or ''} {timing}"
    return f"unknown {timing}"


def _pairs(labels: Mapping[str, str]) -> list[str]:
    return [f"{key}={labels[key]}" for key in sorted(labels)]


def _multiline(title: str, lines: Sequence[str]) -> Iterator[str]:
    first, *rest = lines or [NONE]
    yield f"{title}:\t{first}"
    yield from (f"\t{line}" for line in rest)


def _annotations(annotations: Mapping[str, str]) -> Iterator[str]:
    lines: list[str] = []
    for key in sorted(set(annotations) - set(_HIDDEN_ANNOTATIONS)):
        value = annotations[key].removesuffix("\n")
        if len(value) + len(key) + 2 <= _MOST_ANNOTATION and "\n" not in value:
            lines.append(f"{key}: {value}")
            continue
        lines.append(f"{key}:")
        lines += [f"  {_shortened(line)}" for line in value.split("\n")]
    return _multiline("Annotations", lines)


def _shortened(line: str) -> str:
    most = _MOST_ANNOTATION - 2
    return line if len(line) <= most else f"{line[:most]}..."


def _toleration(toleration: Object) -> str:
    text = str(toleration.get("key") or "")
    if toleration.get("value"):
        text += f"={toleration['value']}"
    if toleration.get("effect"):
        text += f":{toleration['effect']}"
    if toleration.get("operator") == "Exists" and not toleration.get("value"):
        text += " op=Exists" if text else "op=Exists"
    if toleration.get("tolerationSeconds") is not None:
        text += f" for {toleration['tolerationSeconds']}s"
    return text


def _events(events: Sequence[Object], now: float) -> Iterator[str]:
    yield from ("Events:", "  Type\tReason\tAge\tFrom\tMessage", "  ----\t------\t----\t----\t-------")
    for event in sorted(events, key=lambda event: float(event.get("lastSeen", 0))):
        age = since(event.get("firstSeen"), now)
        if event.get("count", 1) > 1:
            age = f"{since(event.get('lastSeen'), now)} (x{event['count']} over {age})"
        message = _one_line(str(event.get("message", "")).strip())
        yield f"  {event.get('type')}\t{event.get('reason')}\t{age}\t{event.get('component')}\t{message}"


def _indent(blanks: int, lines: Iterable[str]) -> Iterator[str]:
    return (" " * blanks + line for line in lines)


def _one_line(text: str) -> str:
    """A line end or a tab inside would break the columns."""
    return " ".join(text.replace("\t", " ").splitlines())
