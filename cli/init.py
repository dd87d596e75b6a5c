"""`podbus init`: the one-shot set-up where another supervisor runs the services (compose): keys, bus, databases."""

from __future__ import annotations

import argparse
from pathlib import Path

from cli.console import complain
from cli.up import environment
from shared.runtime.service import EXIT_CONFIG
from shared.runtime.settings import SettingsError, load_settings


def init(arguments: argparse.Namespace) -> int:
    """The command. Idempotent: what is there stays."""
    from cli.db import db_upgrade
    from cli.first_start import first_start
    from cli.nats_config import find_server, server_version
    from shared.storage.migrate import DatabaseUnusable

    try:
        settings = load_settings(environment(arguments))
    except SettingsError as error:
        complain(error.problems)
        return EXIT_CONFIG
    binary = find_server()
    try:
        server = first_start(
            settings,
            bus_host=arguments.bus_host,
            bus_version=server_version(binary) if binary else None,
        )
        lines = db_upgrade(settings.data)
    except (OSError, ValueError, DatabaseUnusable) as error:
        complain([str(error)])
        return 1
    for warning in settings.config_warnings:
        print(f"warning: {warning}")
    print(f"node {settings.node_name}, data {settings.data}, bus {server.url}")
    for line in lines:
        print(line)
    return 0


def nats_config(arguments: argparse.Namespace) -> int:
    """`podbus nats-config`: the configuration of the bus as it is, with passwords."""
    from shared.runtime.paths import DataPaths

    path = DataPaths(Path(arguments.data).absolute()).nats / "nats.conf"
    try:
        print(path.read_text(), end="")
    except FileNotFoundError:
        complain([f"{path} is missing: `podbus up` or `podbus init` makes it"])
        return 1
    except PermissionError:
        complain([f"{path} may be read by root only"])
        return 1
    return 0


def upgrade(arguments: argparse.Namespace) -> int:
    """`podbus db upgrade`"""
    from cli.db import db_upgrade
    from shared.storage.migrate import DatabaseUnusable

    data = Path(arguments.data).absolute()
    if not data.is_dir():
        complain([f"there is no directory {data}: `podbus up` or `podbus init` makes it (--data names another)"])
        return 1
    try:
        for line in db_upgrade(data):
            print(line)
    except (OSError, DatabaseUnusable) as error:
        complain([str(error)])
        return 1
    return 0
