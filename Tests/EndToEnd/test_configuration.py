"""Settings from the command line, the environment and a file, of both real processes."""

import json
import os
import re
import subprocess

import aiohttp
import pytest

from client import request
from processes import BINARIES, Antiphon, Server, wait_ready

BOTH = pytest.mark.parametrize(
    ("program", "prefix"), [("Router", "ANTIPHON_ROUTER"), ("AudioEngine", "ANTIPHON_ENGINE")]
)


def run(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs a program that is to end by itself."""
    return subprocess.run(
        [BINARIES / program, *arguments], env=os.environ | environment, capture_output=True, text=True, timeout=15
    )


def table(output: str) -> dict[str, tuple[str, str]]:
    """What --print-config says: by setting, its value and where it comes from."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in output.splitlines()]
    assert rows[0] == ["SETTING", "VALUE", "FROM"], output
    assert all(len(row) == 3 for row in rows), output
    return {name: (value, source) for name, value, source in rows[1:]}


@BOTH
def test_every_option_is_a_setting(program, prefix):
    listed = table(run(program, "--print-config").stdout)
    help_text = run(program, "run", "--help").stdout
    options = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", help_text, re.MULTILINE))
    options -= {"--help", "--version", "--config", "--print-config"}
    assert options == listed.keys() and len(options) > 5, (options, listed)
    assert {source for _, source in listed.values()} == {"the default"}, listed


@pytest.mark.parametrize(
    ("program", "setting", "value"),
    [
        ("AudioEngine", "--max-workers", "60"),
        ("AudioEngine", "--idle-timeout-seconds", "300"),
        ("Router", "--stream-heartbeat-seconds", "30"),
    ],
)
def test_the_seeds_figures_are_the_defaults(program, setting, value):
    assert table(run(program, "--print-config").stdout)[setting] == (value, "the default")


@BOTH
def test_the_order_is_command_line_environment_file_default(program, prefix, tmp_path):
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"listen": "127.0.0.1:3", "log-level": "debug", "log-format": "json"}))
    result = run(
        program,
        "--print-config",
        "--listen=127.0.0.1:1",
        **{f"{prefix}_CONFIG": str(file), f"{prefix}_LISTEN": "127.0.0.1:2", f"{prefix}_LOG_LEVEL": "error"},
    )
    assert result.returncode == 0 and not result.stderr, result
    listed = table(result.stdout)
    assert listed["--listen"] == ("127.0.0.1:1", "the command line"), listed
    assert listed["--log-level"] == ("error", f"{prefix}_LOG_LEVEL in the environment"), listed
    assert listed["--log-format"] == ("json", f'"log-format" in {file}'), listed
    assert listed["--anonymous"] == ("false", "the default"), listed


@BOTH
@pytest.mark.parametrize(
    ("variables", "file", "expected"),
    [
        ({"SOCKET_BUFFER_BYTES": "many"}, None, ["many", "{prefix}_SOCKET_BUFFER_BYTES in the environment"]),
        ({"SOCKET_BUFFER_BYTES": "1"}, None, ["4096 to 16777216", "{prefix}_SOCKET_BUFFER_BYTES in the environment"]),
        ({}, {"listen": "nowhere"}, ["nowhere", '"listen" in {file}']),
        ({}, {"log-level": "loud"}, ["loud", "critical", '"log-level" in {file}']),
        ({}, {"listen": "0.0.0.0:0"}, ["--anonymous", '"listen" in {file}']),
        ({}, {"lisen": "a:1"}, ['there is no setting "lisen"', "{file}"]),
        ({}, {"anonymous": "yes"}, ['"anonymous" in {file}', "true or false"]),
        ({"ANONYMOUS": "maybe"}, None, ["{prefix}_ANONYMOUS in the environment", "true or false"]),
        ({"CONFIG": "/nowhere.json"}, None, ["/nowhere.json", "No such file"]),
    ],
)
def test_a_bad_value_is_named_with_its_place(program, prefix, variables, file, expected, tmp_path):
    path = tmp_path / "settings.json"
    environment = {f"{prefix}_{name}": value for name, value in variables.items()}
    if file is not None:
        path.write_text(json.dumps(file))
        environment[f"{prefix}_CONFIG"] = str(path)
    result = run(program, **environment)
    assert result.returncode == 64, result
    for words in expected:
        assert words.format(prefix=prefix, file=path) in result.stderr, (words, result.stderr)
    # The table is still of use, and says the same.
    printed = run(program, "--print-config", **environment)
    assert printed.returncode == 64 and "--listen" in table(printed.stdout), printed
    assert printed.stderr == result.stderr


def test_a_good_value_beside_a_bad_one_is_not_blamed():
    result = run("Router", ANTIPHON_ROUTER_LOG_LEVEL="loud", ANTIPHON_ROUTER_LISTEN="127.0.0.1:1")
    assert "ANTIPHON_ROUTER_LOG_LEVEL" in result.stderr and "ANTIPHON_ROUTER_LISTEN" not in result.stderr, result.stderr


def test_a_bad_value_on_the_command_line_is_an_error_as_ever():
    result = run("Router", "--socket-buffer-bytes", "7")
    assert result.returncode == 64 and "--socket-buffer-bytes takes 4096 to 16777216" in result.stderr, result
    assert "comes from" not in result.stderr


@BOTH
def test_who_mistypes_is_told_where_the_settings_are_listed(program, prefix):
    result = run(program, "--lisen", "127.0.0.1:1")
    assert result.returncode == 64 and "'--lisen'" in result.stderr and f"'{program} run --help'" in result.stderr, (
        result
    )


@pytest.mark.parametrize("form", ["json", "text"])
async def test_it_runs_with_what_it_was_told(tmp_path, media, form):
    """Both processes with everything from elsewhere, and a variable that sets nothing."""
    with Antiphon(tmp_path / "base", media.root, router=False) as base:
        file = tmp_path / "router.json"
        hosts = ["music.example", "b.example"]
        settings = {"engine-socket": base.socket, "state": str(tmp_path / "state"), "allow-host": hosts}
        file.write_text(json.dumps(settings))
        router = Server(
            "Router",
            ["--config", str(file)],
            tmp_path / "router.log",
            {"ANTIPHON_ROUTER_LOG_FORMAT": form, "ANTIPHON_ROUTER_LISTN": "127.0.0.1:1"},
        )
        try:
            router.start()
            wait_ready(router)
            assert "ignoring the unknown environment variable ANTIPHON_ROUTER_LISTN" in router.log.read_text()
            async with aiohttp.ClientSession() as http:
                for host, status in (("b.example", 200), ("other.example", 403)):
                    async with http.get(f"{router.url}/api/v1/sessions", headers={"Host": host}) as answer:
                        assert answer.status == status, (host, await answer.text())
            for line in router.log.read_text().splitlines():
                assert (form == "json") == line.startswith("{"), line
            assert (await request("GET", f"{router.url}/ready")).status == 200
        finally:
            if router.is_running:
                router.terminate()
            router.kill()
            Server.all.remove(router)


def test_tools_and_help_are_not_disturbed(tmp_path):
    bad = {"ANTIPHON_ENGINE_CONFIG": "/nowhere.json", "ANTIPHON_ENGINE_MAX_WORKERS": "x"}
    made = run("AudioEngine", "make-samples", str(tmp_path / "samples"), **bad)
    assert made.returncode == 0 and any((tmp_path / "samples").iterdir()), made
    assert run("AudioEngine", "--help", **bad).returncode == 0
    assert run("AudioEngine", "--version", **bad).returncode == 0
    assert "--media-root" in run("AudioEngine", "help", "run", **bad).stdout
    listed = table(run("AudioEngine", "run", "--print-config", "--max-workers", "3").stdout)
    assert listed["--max-workers"] == ("3", "the command line"), listed
