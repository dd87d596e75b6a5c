"""The command line itself."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.console import Console
from cli.down import left_pods
from cli.log_files import RotatingFile, last_lines
from cli.logs import log_query
from cli.main import build_parser, main, parse
from cli.up import environment
from cli.yaml_text import to_yaml


def test_every_command_names_a_function_that_exists() -> None:
    import importlib

    def runs(parser: argparse.ArgumentParser) -> list[str]:
        found = [parser.get_default("run")] if parser.get_default("run") else []
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for command in action.choices.values():
                    found += runs(command)
        return found

    names = runs(build_parser())
    assert len(names) >= 12
    for name in names:
        module, _, function = name.partition(":")
        assert callable(getattr(importlib.import_module(module), function)), name


def test_help_loads_no_heavy_library() -> None:
    code = (
        "import sys, cli.main\n"
        "try: cli.main.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('nats','yaml','docker','sqlalchemy','ssl','asyncio','uvloop') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_flag_wins_over_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODBUS_PORT", "1")
    monkeypatch.setenv("PODBUS_WORKERS", "3")
    env = environment(build_parser().parse_args(["up", "--port", "2", "--data", "/d"]))
    assert (env["PODBUS_PORT"], env["PODBUS_WORKERS"], env["PODBUS_DATA"]) == ("2", "3", "/d")


def test_wrong_settings_are_all_told_with_the_faults_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "kubelet.yaml"
    config.write_text("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nport: x\nmaxPods: -1\n")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    code = main(["up", "--config", str(config), "--data", str(tmp_path / "d"), "--workers", "0", "--port", "0"])
    told = capsys.readouterr().err
    assert code == 78
    for piece in (":3: port:", ":4: maxPods:", "PODBUS_WORKERS:", "PODBUS_PORT:", "Docker Engine:"):
        assert piece in told
    assert not (tmp_path / "d").exists()


def test_validate_tells_file_line_and_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: busybox}]}\n")
    bad.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: C\n    image: x\n")
    assert main(["validate", str(good)]) == 0
    assert capsys.readouterr().out == f"{good}: ok: Pod default/a\n"
    assert main(["validate", str(good), str(bad)]) == 1
    assert f"{bad}:6: spec.containers[0].name: " in capsys.readouterr().out


def test_logs_options_become_the_apis_parameters() -> None:
    words = ["logs", "x", "-f", "-p", "--tail", "5", "--since", "1m0.5s", "-c", "c"]
    assert log_query(build_parser().parse_args(words)) == {
        "follow": "true",
        "previous": "true",
        "tailLines": "5",
        "sinceSeconds": "61",
    }


def test_a_wrong_since_is_refused() -> None:
    with pytest.raises(ValueError, match="--since"):
        log_query(build_parser().parse_args(["logs", "x", "--since", "5"]))


@pytest.mark.parametrize("tail", ["-2", "-5"])
def test_a_tail_below_minus_one_is_refused(tail: str) -> None:
    with pytest.raises(ValueError, match=f"--tail: must be a number of lines, or -1 for all, got {tail}"):
        log_query(build_parser().parse_args(["logs", "x", "--tail", tail]))


def test_a_tail_of_minus_one_is_the_whole_log() -> None:
    assert log_query(build_parser().parse_args(["logs", "x", "--tail", "-1"])) == {}


def test_objects_are_printed_as_yaml_with_blocks_for_long_texts() -> None:
    assert to_yaml({"b": "one\ntwo\n", "a": [1, "true", None]}) == "a:\n- 1\n- 'true'\n- null\nb: |\n  one\n  two\n"


def test_a_log_is_rotated_by_size_and_three_files_are_kept(tmp_path: Path) -> None:
    log = RotatingFile(tmp_path / "x.log", max_bytes=10, kept=3)
    for number in range(8):
        log.write(f"line {number}\n".encode())
    log.close()
    kept = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert kept == {"x.log": "line 7\n", "x.log.1": "line 6\n", "x.log.2": "line 5\n"}
    assert last_lines(tmp_path / "x.log", 5) == ["line 7"]


def test_the_supervisors_lines_carry_their_time_in_the_file_and_not_on_the_terminal(tmp_path: Path) -> None:
    read, write = os.pipe()
    console = Console(tmp_path / "supervisor.log", write)
    console.say("one\ntwo")
    console.close()
    os.close(write)
    with os.fdopen(read) as seen:
        assert seen.read() == "one\ntwo\n"
    form = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z supervisor "
    assert re.fullmatch(f"{form}one\n{form}two\n", (tmp_path / "supervisor.log").read_text())


def test_upgrading_makes_no_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A typing error must not leave a new node behind."""
    missing = tmp_path / "typo"
    assert main(["db", "upgrade", "--data", str(missing)]) == 1
    assert f"there is no directory {missing}" in capsys.readouterr().err
    assert not missing.exists()


def test_left_pods_are_told_apart_by_their_labels() -> None:
    def entry(id_: str, kind: str, **labels: str) -> dict[str, object]:
        base = {
            "io.kubernetes.pod.uid": "u1",
            "io.kubernetes.pod.name": "web",
            "io.kubernetes.pod.namespace": "default",
            "io.kubernetes.docker.type": kind,
        }
        return {"Id": id_, "Labels": {**base, **labels}}

    grace = {"annotation.io.kubernetes.pod.terminationGracePeriod": "7"}
    (pod,) = left_pods([entry("s", "podsandbox"), entry("c", "container", **grace)])
    assert (pod.name, pod.grace, pod.containers, pod.sandboxes) == ("default/web", 7, ["c"], ["s"])


@pytest.mark.parametrize(
    ("words", "names", "namespace"),
    [
        ("get pods -n other web", ["web"], "other"),
        ("get pods web -n other db", ["web", "db"], "other"),
        ("get pods -o wide web db", ["web", "db"], None),
        ("describe pod web -n other db", ["web", "db"], "other"),
    ],
)
def test_names_may_stand_behind_options(words: str, names: list[str], namespace: str | None) -> None:
    arguments = parse(build_parser(), words.split())
    assert (arguments.names, arguments.namespace) == (names, namespace)


@pytest.mark.parametrize("words", ["get pods -n other web --bogus", "logs web more", "down now"])
def test_words_that_mean_nothing_are_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(build_parser(), words.split())
    assert "unrecognized arguments" in capsys.readouterr().err


def run_to_full_disk(*words: str) -> subprocess.CompletedProcess[str]:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "cli.main", *words]
        return subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)


def test_a_full_disk_behind_the_output_is_told_in_one_line() -> None:
    done = run_to_full_disk("version")
    assert (done.returncode, done.stderr) == (1, "podbus: No space left on device\n")


@pytest.mark.parametrize("words", [("get", "pods"), ("up",), ("logs", "x"), ("down",)])
def test_a_file_for_a_data_directory_is_told_without_a_traceback(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for key in [key for key in os.environ if key.startswith("PODBUS_")]:
        monkeypatch.delenv(key)
    file = tmp_path / "file"
    file.touch()
    main([*words, "--data", str(file)])
    told = capsys.readouterr()
    assert str(file) in told.out + told.err
