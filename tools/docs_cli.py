"""docs/cli.md from argparse: laid out here, since argparse's own help differs between Python versions."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from cli.main import build_parser
from shared.contracts.docs import markdown_table


def cli_markdown() -> str:
    parser = build_parser()
    parts = [
        f"{parser.description} `podbus COMMAND --help` says the same as this page.",
        "Exit codes: 0 done, 1 it failed, 2 wrong usage, 78 wrong settings.",
    ]
    for words, text, command in _commands(parser, ("podbus",)):
        parts.append(f"## {' '.join(words)}")
        parts.append(f"{text[:1].upper()}{text[1:]}.")
        parts.append(f"```text\n{_usage(words, command)}\n```")
        if rows := [_row(action, command) for action in _shown(command)]:
            parts.append(markdown_table(("argument", "meaning"), rows))
    return "\n\n".join(parts)


def _commands(
    parser: argparse.ArgumentParser, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            texts = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, command in action.choices.items():
                inner = list(_commands(command, (*words, name)))
                if inner:
                    yield from inner
                else:
                    yield (*words, name), texts[name], command


def _shown(command: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in command._actions if action.help != argparse.SUPPRESS and action.dest != "help"]


def _usage(words: tuple[str, ...], command: argparse.ArgumentParser) -> str:
    shown = _shown(command)
    flags = [f"[{action.option_strings[0]}{_value(action)}]" for action in shown if action.option_strings]
    names = [_positional(action) for action in shown if not action.option_strings]
    return " ".join([*words, *flags, *names])


def _positional(action: argparse.Action) -> str:
    name = _name(action)
    return {"*": f"[{name} ...]", "+": f"{name} [{name} ...]"}.get(str(action.nargs), name)


def _name(action: argparse.Action) -> str:
    if action.metavar is not None:
        return str(action.metavar)
    return "|".join(map(str, action.choices)) if action.choices else action.dest


def _value(action: argparse.Action) -> str:
    return "" if action.nargs == 0 else f" {_name(action)}"


def _row(action: argparse.Action, command: argparse.ArgumentParser) -> tuple[str, str]:
    name = ", ".join(f"`{flag}{_value(action)}`" for flag in action.option_strings) or f"`{_name(action)}`"
    values = {**vars(action), "prog": command.prog}
    return name, (action.help or "") % values
