"""The `podbus` command: arguments here, the work in modules that are imported only when asked for."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from shared.runtime.config_flags import CONFIG_FLAGS

DEFAULT_DATA = "/var/lib/podbus"
_EXIT_INTERRUPTED = 130
_EXIT_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code: 0 = done, 1 = it failed, 2 = wrong usage, 78 = wrong settings."""
    words = sys.argv[1:] if argv is None else argv
    try:
        arguments = parse(build_parser(), words or ["--help"])
        module, _, function = arguments.run.partition(":")
        code: int = getattr(importlib.import_module(module), function)(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    except BrokenPipeError:  # `podbus logs x | head`
        _drop_output()
        return _EXIT_PIPE
    except OSError as error:  # a full disk behind standard output, a data directory that can't be made
        where = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"podbus: {where}{error.strerror or error}\n")
        _drop_output()
        return 1
    return code


def parse(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """As kubectl, names may stand behind options: argparse takes `get pods -n ns web` for a wrong word."""
    words, after = _split_command(words)
    arguments, rest = parser.parse_known_args(words)
    if rest and (not hasattr(arguments, "names") or any(word.startswith("-") for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        arguments.names = [*arguments.names, *rest]
    if after is not None:
        arguments.words = [*arguments.words, *after]
    return arguments


def _split_command(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str] | None]:
    """What stands behind `--` is the container's command, whatever it looks like."""
    if words[:1] != ["exec"] or "--" not in words:
        return words, None
    place = list(words).index("--")
    return words[:place], words[place + 1 :]


def _drop_output() -> None:
    """So that the interpreter's last flush can't fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def build_parser() -> argparse.ArgumentParser:
    """All commands; each names the function that does it as `run` ("module:function")."""
    parser = argparse.ArgumentParser(
        prog="podbus",
        description="A Kubernetes node without the kubelet: pods on Docker Engine, services that meet on NATS.",
        epilog="`podbus COMMAND --help` tells about one. Settings: PODBUS_* variables, a KubeletConfiguration file.",
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_node_commands(commands)
    _add_pod_commands(commands)
    _add_set_up_commands(commands)
    return parser


class _Version(argparse.Action):
    """Asks for the version only when it's wanted: package metadata costs 20 ms."""

    def __init__(self, option_strings: Sequence[str], dest: str, **_: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help="print the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"podbus {_version()}")
        parser.exit()


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("podbus")
    except PackageNotFoundError:
        return "0.0.0"


def print_version(_arguments: argparse.Namespace) -> int:
    """`podbus version`"""
    print(f"podbus {_version()}")
    return 0


def completion(arguments: argparse.Namespace) -> int:
    """`podbus completion bash|zsh`: put it where the shell looks for completions."""
    import shtab

    print(shtab.complete(build_parser(), shell=arguments.shell))
    return 0


def _command(commands: Any, name: str, run: str, text: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text[:1].upper() + text[1:] + ".")
    made.set_defaults(run=run)
    return made


def _add_data(command: argparse.ArgumentParser) -> None:
    default = os.environ.get("PODBUS_DATA") or DEFAULT_DATA
    _path(command, "--data", "DIR", "the node's data directory (PODBUS_DATA, else %(default)s)", default)


def _path(command: argparse.ArgumentParser, flag: str, name: str, text: str, default: str | None = None) -> None:
    action = command.add_argument(flag, metavar=name, default=default, help=text)
    kind = "dir" if name == "DIR" else "file"
    action.complete = _completes(kind)  # type: ignore[attr-defined]


def _completes(kind: str) -> dict[str, str]:
    """What shtab.FILE and shtab.DIRECTORY are; importing it costs 15 ms."""
    bash, zsh = ("_shtab_compgen_files", "_files") if kind == "file" else ("_shtab_compgen_dirs", "_files -/")
    return {"bash": bash, "zsh": zsh, "tcsh": "f" if kind == "file" else "d"}


def _add_node_settings(command: argparse.ArgumentParser) -> None:
    _path(command, "--config", "FILE", "KubeletConfiguration (kubelet.config.k8s.io/v1beta1) (PODBUS_CONFIG)")
    _path(command, "--config-dir", "DIR", "its drop-ins, files that end in .conf (PODBUS_CONFIG_DIR)")
    _path(command, "--data", "DIR", f"all that the node keeps (PODBUS_DATA, else {DEFAULT_DATA})")
    _path(command, "--manifests", "DIR", "where pods come from (PODBUS_MANIFESTS, else staticPodPath)")
    command.add_argument("--port", metavar="N", help="TCP port of the API (PODBUS_PORT, else the file's, 10250)")
    _path(command, "--kubeconfig", "FILE", "join the cluster of this kubeconfig (PODBUS_KUBECONFIG)")
    command.add_argument(
        "--hostname-override",
        metavar="NAME",
        help="the node's name, fixed at the first start (PODBUS_NODE_NAME, else the host's)",
    )
    command.add_argument("--node-ip", metavar="IP", help="the node's address (PODBUS_NODE_IP)")
    command.add_argument("--node-labels", metavar="KEY=VALUE,...", help="of the Node (PODBUS_NODE_LABELS)")


def _add_config_flags(command: argparse.ArgumentParser) -> None:
    """The kubelet's flags for fields of the file."""
    group = command.add_argument_group("fields of the KubeletConfiguration", "each wins over the file and its drop-ins")
    for name, flag in CONFIG_FLAGS.items():
        if flag.form == "BOOL":
            group.add_argument(f"--{name}", metavar="BOOL", nargs="?", const="true", help=flag.field)
        else:
            group.add_argument(f"--{name}", metavar=flag.form, help=flag.field)


def _add_node_commands(commands: Any) -> None:
    up = _command(commands, "up", "cli.up:up", "start the node: nats-server and the services")
    _add_node_settings(up)
    up.add_argument("--workers", metavar="N", help="podworker processes, 1 to 64 (PODBUS_WORKERS, else 1)")
    _add_config_flags(up)
    up.add_argument("--detach", action="store_true", help="return when the node is ready; it goes on running")
    down = _command(commands, "down", "cli.down:down", "end the agent; the pods keep running")
    _add_data(down)
    down.add_argument("--pods", action="store_true", help="end all pods too, with their own grace")


def _add_pod_commands(commands: Any) -> None:
    get = _command(commands, "get", "cli.get:get", "list pods, or show the node")
    get.add_argument("kind", choices=("pods", "pod", "po", "node", "nodes", "no"), metavar="pods|node")
    get.add_argument("names", nargs="*", metavar="NAME", help="only these; a static pod's short name will do")
    _add_namespace(get)
    get.add_argument("-A", "--all-namespaces", action="store_true", help="of every namespace")
    get.add_argument("-o", "--output", choices=("wide", "json", "yaml"), help="more columns, or the objects")
    _add_data(get)
    describe = _command(commands, "describe", "cli.describe:describe", "tell all about a pod, with its events")
    describe.add_argument("kind", choices=("pod", "pods", "po"), metavar="pod")
    describe.add_argument("names", nargs="+", metavar="NAME", help="a static pod's short name will do")
    _add_namespace(describe)
    _add_data(describe)
    logs = _command(commands, "logs", "cli.logs:logs", "print a container's log")
    logs.add_argument("pod", metavar="POD", help="a static pod's short name will do")
    logs.add_argument("-c", "--container", metavar="NAME", help="which container (the first)")
    logs.add_argument("-f", "--follow", action="store_true", help="go on until the container ends")
    logs.add_argument("-p", "--previous", action="store_true", help="of the container's previous run")
    logs.add_argument("--tail", type=int, metavar="N", help="only the last lines (-1: all)")
    logs.add_argument("--since", metavar="TIME", help="only newer than this, e.g. 30s, 5m, 2h")
    logs.add_argument("--timestamps", action="store_true", help="with each line's time")
    _add_namespace(logs)
    _add_data(logs)
    run = _command(commands, "exec", "cli.exec:exec_command", "run a command in a container")
    run.add_argument("pod", metavar="POD", help="a static pod's short name will do")
    run.add_argument("words", nargs="*", metavar="-- COMMAND", help="the command and its arguments")
    run.add_argument("-c", "--container", metavar="NAME", help="which container (the first)")
    run.add_argument("-i", "--stdin", action="store_true", help="pass standard input on")
    run.add_argument("-t", "--tty", action="store_true", help="with a terminal")
    _add_namespace(run)
    _add_data(run)
    forward = _command(commands, "port-forward", "cli.port_forward:port_forward", "reach a pod's ports from here")
    forward.add_argument("pod", metavar="POD", help="a static pod's short name will do")
    forward.add_argument("ports", nargs="+", metavar="[LOCAL:]REMOTE", help="8080, 8080:80, or :80 for any free port")
    forward.add_argument("--address", default="127.0.0.1", metavar="IP", help="where to listen (%(default)s)")
    _add_namespace(forward)
    _add_data(forward)
    copy = _command(commands, "cp", "cli.cp:cp", "copy files to or from a container (which needs tar)")
    copy.add_argument("source", metavar="SOURCE", help="a path here, or [NS/]POD:PATH")
    copy.add_argument("target", metavar="TARGET", help="a path here, or [NS/]POD:PATH")
    copy.add_argument("-c", "--container", metavar="NAME", help="which container (the first)")
    _add_namespace(copy)
    _add_data(copy)


def _add_namespace(command: argparse.ArgumentParser) -> None:
    command.add_argument("-n", "--namespace", metavar="NS", help="the namespace (default)")


def _add_set_up_commands(commands: Any) -> None:
    token = _command(commands, "token", "cli.tokens:token", "print a bearer token of the API, the admin's by default")
    token.add_argument("--user", metavar="NAME", help="of this user; made when there is none")
    token.add_argument("--role", choices=("admin", "view", "metrics"), help="what it may do (admin)")
    _add_data(token)
    validate = _command(commands, "validate", "cli.validate:validate", "check manifests without running them")
    files = validate.add_argument("files", nargs="+", metavar="FILE", help="YAML or JSON; - is standard input")
    files.complete = _completes("file")  # type: ignore[attr-defined]
    validate.add_argument("--strict", action="store_true", help="unknown fields are errors")
    init = _command(commands, "init", "cli.init:init", "make keys, bus configuration and databases, for compose")
    _add_node_settings(init)
    init.add_argument("--bus-host", default="127.0.0.1", metavar="IP", help="where the bus listens (%(default)s)")
    database = commands.add_parser("db", help="the node's databases")
    steps = database.add_subparsers(metavar="COMMAND", required=True)
    _add_data(_command(steps, "upgrade", "cli.init:upgrade", "bring every database to this version's schema"))
    _add_data(_command(commands, "nats-config", "cli.init:nats_config", "print the bus's configuration"))
    shell = _command(commands, "completion", "cli.main:completion", "print the shell's completion script")
    shell.add_argument("shell", choices=("bash", "zsh"))
    _command(commands, "version", "cli.main:print_version", "print the version")


if __name__ == "__main__":
    sys.exit(main())
