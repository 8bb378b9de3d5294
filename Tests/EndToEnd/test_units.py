"""deploy/systemd: how little the units may do, and that a real systemd installs and runs them as it is meant."""

import re
import shutil
import subprocess
import tomllib

import pytest

import sandbox
from machine import SOURCE, Machine, NoMachineError
from processes import BINARIES, ROOT
from services import BOT, SERVICES, UNITS, run

#: systemd's measure of what a unit may do: 0 is nothing, 10 everything.
EXPOSURE_LIMIT = 2.0

needs_analyze = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze (Debian's systemd)"
)


@needs_analyze
@pytest.mark.parametrize("unit", [*SERVICES, BOT])
def test_a_unit_may_do_little(unit):
    table = run("systemd-analyze", "security", "--offline=true", "--no-pager", UNITS / unit)
    exposure = float(re.search(rf"exposure level for {unit}: ([\d.]+)", table)[1])
    assert exposure < EXPOSURE_LIMIT, table


@needs_analyze
def test_the_measure_sees_what_is_taken_away(tmp_path):
    weak = tmp_path / "weak.service"
    kept = [
        line
        for line in (UNITS / SERVICES[0]).read_text().splitlines()
        if not line.startswith(("SystemCall", "Restrict", "CapabilityBoundingSet"))
    ]
    weak.write_text("\n".join(kept))
    table = run("systemd-analyze", "security", "--offline=true", "--no-pager", weak)
    assert float(re.search(r"exposure level for weak.service: ([\d.]+)", table)[1]) > EXPOSURE_LIMIT, table


@needs_analyze
@pytest.mark.parametrize("unit", SERVICES)
def test_the_drop_ins_for_a_cluster_are_understood(unit, tmp_path):
    """Beside the unit, as an operator copies them: systemd names what it does not know."""
    shutil.copytree("/lib/systemd/system", tmp_path / "lib/systemd/system", symlinks=True)
    units = tmp_path / "etc/systemd/system"
    (units / f"{unit}.d").mkdir(parents=True)
    for name in (*SERVICES, "antiphon.target"):
        shutil.copy(UNITS / name, units)
        for program in re.findall(r"^ExecStart=(\S+)", (units / name).read_text(), re.MULTILINE):
            (tmp_path / program[1:]).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / program[1:]).touch(0o755)
    drop_in = UNITS / "cluster" / unit.replace(".service", ".conf")
    verify = ("systemd-analyze", "verify", f"--root={tmp_path}", "--man=no", unit)
    shutil.copy(drop_in, units / f"{unit}.d/cluster.conf")
    said = run(*verify)
    assert "antiphon" not in said, said
    (units / f"{unit}.d/cluster.conf").write_text(drop_in.read_text() + "Nonsense=yes\n")
    assert "cluster.conf" in run(*verify), "the drop-in is not read"


@pytest.mark.parametrize("program", ["AudioEngine", "Router"])
def test_the_drop_ins_set_what_the_program_knows(program):
    """And each credential is one that is loaded."""
    drop_in = UNITS / f"cluster/antiphon-{ {'AudioEngine': 'engine', 'Router': 'router'}[program] }.conf"
    loaded = (UNITS / drop_in.with_suffix(".service").name).read_text() + drop_in.read_text()
    known = run(BINARIES / program, "run", "--help")
    for variable, value in re.findall(r"Environment=ANTIPHON_[A-Z]+?_([A-Z_]+)=(.*)", drop_in.read_text()):
        assert f"--{variable.lower().replace('_', '-')} " in known, variable
        if value.startswith("%d/"):
            assert f"LoadCredential={value[3:]}\n" in loaded, value


# MARK: With a real systemd


@pytest.fixture(scope="module")
def machine(light):
    """A machine of the tests' own, on which nothing is installed yet."""
    machine = Machine(binaries=light)
    try:
        try:
            machine.start()
        except NoMachineError as error:
            pytest.skip(f"no machine of its own can be had here: {error}")
        yield machine
    finally:
        machine.close()


INSTALL = f"{SOURCE}/deploy/install"
ADDRESS = "http://127.0.0.1:8080"


@pytest.fixture(scope="module")
def installed(machine):
    done = machine.run(INSTALL, "--binaries", "/binaries", "--version", "1.0", "--no-yt-dlp", check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}{machine.journal()}"
    assert f"version 1.0 runs: {ADDRESS}/" in done.stderr, done.stderr
    return machine


def main_pid(machine: Machine, unit: str) -> str:
    return machine.show(unit, "MainPID")


def wait_until(machine: Machine, condition: str) -> None:
    """Until the shell says that it is so."""
    done = machine.run("timeout", "60", "sh", "-c", f"until {condition}; do sleep 0.1; done", check=False)
    assert done.returncode == 0, f"not so after 60 s: {condition}\n{machine.journal()}"


READY = f"curl -fsS -o /dev/null {ADDRESS}/ready 2> /dev/null"


def assert_it_plays(machine: Machine) -> None:
    """From the engine's file to a player of the Router's."""
    play = ("-fsS", "-X", "POST", "-d", '{"url": "media:samples/Versicle.wav", "loop": true}')
    machine.run("curl", *play, f"{ADDRESS}/api/v1/sessions/hall/play")
    command = f"curl -sN --max-time 3 {ADDRESS}/listen/hall.ogg | ffmpeg -v error -i - -af volumedetect -f null -"
    heard = machine.run("sh", "-c", f"{command.replace('-v error', '-nostats')} 2>&1").stdout
    loudest = float(re.search(r"max_volume: (-?[\d.]+) dB", heard)[1])
    assert loudest > -30, heard


def test_installed_it_plays(installed):
    """Through the socket that two users share, and through both sandboxes."""
    assert_it_plays(installed)
    for unit in SERVICES:
        assert installed.show(unit, "ActiveState") == "active" and installed.show(unit, "NRestarts") == "0"
        assert installed.show(unit, "StatusText").startswith("listening on http://127.0.0.1:")


def test_each_runs_with_nothing_to_lose(installed):
    users = set()
    for unit in SERVICES:
        status = installed.run("cat", f"/proc/{main_pid(installed, unit)}/status").stdout
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert int(fields["CapEff"], 16) == int(fields["CapBnd"], 16) == 0, fields
        assert fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2", fields
        users.add(fields["Uid"].split()[0])
        inside = ("nsenter", f"--target={main_pid(installed, unit)}", "--mount")
        for path in ("/opt/antiphon", "/etc", "/usr", "/srv/antiphon/media"):
            assert installed.run(*inside, "touch", f"{path}/x", check=False).returncode != 0, f"{unit} can write {path}"
        assert installed.run(*inside, "ls", "/root", check=False).stdout == ""
    # One each, and neither is root: the one that reads strangers' files cannot reach the other's secrets.
    assert len(users) == 2 and "0" not in users
    assert (
        installed.run("stat", "-c", "%U %G %a", "/run/antiphon/engine.sock").stdout == "antiphon-engine antiphon 660\n"
    )
    assert (
        installed.run("stat", "-c", "%U %a", "/var/lib/private/antiphon/router.sqlite").stdout
        == "antiphon-router 600\n"
    )


def test_a_decoder_takes_the_rest_from_itself(installed):
    """Inside of the engine's sandbox, which has to let it."""
    change = installed.root / f"etc/systemd/system/{SERVICES[0]}.d/try.conf"
    change.parent.mkdir(parents=True)
    change.write_text("[Service]\nExecStartPre=/opt/antiphon/current/AudioEngine probe-sandbox\n")
    try:
        installed.run("systemctl", "daemon-reload")
        installed.run("systemctl", "restart", SERVICES[0])
    finally:
        shutil.rmtree(change.parent)
        installed.run("systemctl", "daemon-reload")
    lines = installed.run("journalctl", "--quiet", "--output=cat", "--no-pager", f"--unit={SERVICES[0]}").stdout
    refused, results = sandbox.tried("\n".join(line for line in lines.splitlines() if line.startswith("{")))
    assert not refused
    assert {name: results[name] for name in sandbox.FORBIDDEN} == dict.fromkeys(sandbox.FORBIDDEN, "refused EPERM")
    assert {name: results[name] for name in sandbox.NEEDED} == dict.fromkeys(sandbox.NEEDED, "worked")
    # What its unit gives the engine for its pacer.
    assert results[sandbox.UNPRIVILEGED] == "refused EACCES"


def test_what_goes_first_may(installed):
    """The threads that test_threads.py looks for, without a privilege and in their sandboxes."""
    ahead = {}
    for unit in SERVICES:
        lines = (UNITS / unit).read_text().splitlines()
        kinds = ("SystemCall", "Restrict", "NoNewPrivileges", "DynamicUser")
        sandbox = [line for line in lines if line.startswith(kinds)]
        properties = [f"--property={line}" for line in sandbox]
        ordinary = ("chrt", "--other", "--reset-on-fork", "0", "true")
        installed.run("systemd-run", "--quiet", "--wait", "--collect", *properties, *ordinary)
        lines = installed.run("sh", "-c", f"cat /proc/{main_pid(installed, unit)}/task/*/stat").stdout.splitlines()
        threads = [(line[line.index("(") + 1 : line.rindex(")")], line.rpartition(")")[2].split()) for line in lines]
        # In a better niceness than libdispatch gives, or in real time.
        ahead[unit] = {name for name, fields in threads if int(fields[16]) == -11 or int(fields[38]) == 2}
    limits = installed.run("cat", f"/proc/{main_pid(installed, SERVICES[1])}/limits").stdout
    if not re.search(r"^Max nice priority +31 ", limits, re.M):
        pytest.skip("this container's systemd may not raise its units' limits (CAP_SYS_RESOURCE)")
    assert ahead[SERVICES[0]] == {"pacer", "router-reader"}, ahead
    assert [name[:7] for name in ahead[SERVICES[1]]] == ["NIO-ELT"], ahead


@pytest.mark.parametrize("unit", SERVICES)
def test_one_that_hangs_is_started_again(installed, unit):
    overrides = f"/etc/systemd/system/{unit}.d"
    # A process that is stopped does not even abort: it is killed a second later.
    fast = "[Service]\\nWatchdogSec=5s\\nTimeoutAbortSec=1s\\n"
    installed.run("sh", "-c", f"mkdir -p {overrides} && printf '{fast}' > {overrides}/fast.conf")
    installed.run("systemctl", "daemon-reload")
    installed.run("systemctl", "restart", unit)
    wait_until(installed, READY)
    installed.run("kill", "-STOP", main_pid(installed, unit))
    wait_until(installed, f'[ "$(systemctl show -P NRestarts {unit})" -ge 1 ] && {READY}')
    wait_until(installed, f"journalctl --quiet --unit={unit} --grep='Watchdog timeout' > /dev/null")
    other = next(name for name in SERVICES if name != unit)
    assert installed.show(other, "ActiveState") == "active"
    installed.run("sh", "-c", f"rm -r {overrides} && systemctl daemon-reload && systemctl restart {unit}")
    wait_until(installed, READY)


@pytest.mark.parametrize("unit", SERVICES)
def test_one_that_is_killed_is_started_again(installed, unit):
    before = main_pid(installed, unit)
    installed.run("kill", "-KILL", before)
    wait_until(installed, f'[ "$(systemctl show -P MainPID {unit})" -gt {before} ] && {READY}')


@pytest.mark.parametrize("unit", SERVICES)
def test_one_that_is_killed_again_and_again_comes_back(installed, unit):
    """Each time before it is ready, mostly: no number of deaths leaves a healthy one down for good. systemd's own
    limit, were it not lifted, is five starts in ten seconds."""
    overrides = f"/etc/systemd/system/{unit}.d"
    # The unit's own wait, 20 times, would take minutes.
    fast = "[Service]\\nRestartSec=50ms\\n"
    installed.run("sh", "-c", f"mkdir -p {overrides} && printf '{fast}' > {overrides}/fast.conf")
    installed.run("systemctl", "daemon-reload")
    kills = f"""
      last=0
      for kill in $(seq 20); do
        until pid=$(systemctl show -P MainPID {unit}) && [ $pid -gt 0 ] && [ $pid != $last ]; do sleep 0.02; done
        kill -KILL $pid
        last=$pid
      done
    """
    installed.run("timeout", "110", "sh", "-c", kills)
    wait_until(installed, READY)
    assert installed.show(unit, "ActiveState") == "active" and int(installed.show(unit, "NRestarts")) >= 20
    installed.run("sh", "-c", f"rm -r {overrides} && systemctl daemon-reload && systemctl restart {unit}")
    wait_until(installed, READY)


def test_memory_has_an_end(installed):
    assert installed.show(SERVICES[0], "MemoryMax") == str(1 << 30)
    assert installed.show(SERVICES[1], "MemoryMax") == str(512 << 20)
    for unit in SERVICES:
        assert installed.show(unit, "MemoryHigh") == "infinity", "the pacer would be slowed"
        assert int(installed.show(unit, "OOMScoreAdjust")) < 0


def test_a_setting_that_cannot_be_used_is_not_tried_for_ever(installed):
    installed.run("sh", "-c", "echo ANTIPHON_ENGINE_MAX_WORKERS=many >> /etc/antiphon/engine.env")
    installed.run("systemctl", "restart", SERVICES[0], check=False)
    wait_until(installed, f"systemctl is-failed --quiet {SERVICES[0]}")
    assert installed.show(SERVICES[0], "NRestarts") == "0"
    # What a process says as it ends is in the journal a moment later.
    wait_until(installed, f"journalctl -u {SERVICES[0]} | grep -q 'ANTIPHON_ENGINE_MAX_WORKERS in the environment'")
    installed.run("sh", "-c", "sed -i '$d' /etc/antiphon/engine.env && systemctl start antiphon-engine")
    wait_until(installed, READY)


def test_secrets_come_as_credentials(installed):
    secret, settings = "/etc/credstore/antiphon.token-secret", "/etc/antiphon/router.env"
    installed.run("mkdir", "-p", "-m", "0700", "/etc/credstore")
    installed.run("/opt/antiphon/current/Router", "token", "secret", secret)
    # As the comment in the file tells.
    installed.run("sed", "-i", "s/^#\\(ANTIPHON_ROUTER_TOKEN_SECRET_FILE=\\)/\\1/", settings)
    installed.run("systemctl", "restart", SERVICES[1])
    wait_until(installed, READY)
    sessions = f"{ADDRESS}/api/v1/sessions"
    ask = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", sessions)
    assert installed.run(*ask).stdout == "401"
    token = installed.run(
        "/opt/antiphon/current/Router", "token", "create", "--session", "*", "--scope", "listen", "--expires", "1h",
        "--token-secret-file", secret,
    ).stdout.strip()  # fmt: skip
    assert installed.run(*ask, "-H", f"Authorization: Bearer {token}").stdout == "200"
    installed.run("rm", secret)
    installed.run("sed", "-i", "s/^\\(ANTIPHON_ROUTER_TOKEN_SECRET_FILE=\\)/#\\1/", settings)
    installed.run("systemctl", "restart", SERVICES[1])
    wait_until(installed, READY)


def test_the_tuning_of_the_guide_works(installed):
    """What it proposes to take away is not needed."""
    blocks = re.findall(r"^```ini\n(.*?)^```$", (ROOT / "docs/services.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == len(SERVICES)
    for unit, block in zip(SERVICES, blocks, strict=True):
        (installed.root / f"etc/systemd/system/{unit}.d").mkdir(parents=True, exist_ok=True)
        (installed.root / f"etc/systemd/system/{unit}.d/guide.conf").write_text(block)
    installed.run("systemctl", "daemon-reload")
    installed.run("systemctl", "restart", "antiphon.target")
    wait_until(installed, READY)
    assert installed.show(SERVICES[0], "MemoryMax") == str(2 << 30)
    assert installed.show(SERVICES[0], "MemoryDenyWriteExecute") == "yes"
    assert_it_plays(installed)
    for unit in SERVICES:
        shutil.rmtree(installed.root / f"etc/systemd/system/{unit}.d")
    installed.run("systemctl", "daemon-reload")
    installed.run("systemctl", "restart", "antiphon.target")
    wait_until(installed, READY)


def test_both_are_upgraded_and_rolled_back_together(installed):
    assert_it_plays(installed)
    add = ("-fsS", "-o", "/dev/null", "-X", "POST", "-d", '{"url": "media:samples/Response.wav"}')
    for _ in range(2):
        installed.run("curl", *add, f"{ADDRESS}/api/v1/sessions/kept/queue")
    done = installed.run(INSTALL, "--binaries", "/binaries", "--version", "1.1", "--no-yt-dlp")
    assert f"version 1.1 runs (before: 1.0): {ADDRESS}/" in done.stderr, done.stderr
    for unit in SERVICES:
        program = installed.run("readlink", f"/proc/{main_pid(installed, unit)}/exe").stdout
        assert program.startswith("/opt/antiphon/versions/1.1/"), program
    queue = installed.run("curl", "-fsS", f"{ADDRESS}/api/v1/sessions/kept/queue").stdout
    assert "Response.wav" in queue, "the queue did not outlive the upgrade"
    # What assert_it_plays has begun goes on by itself.
    wait_until(installed, f'curl -fsS {ADDRESS}/api/v1/sessions/hall | grep -q \'"state":"streaming"\'')

    # As a Router of later would leave it: this one refuses it.
    future = "INSERT INTO grdb_migrations VALUES ('of-the-future')"
    change = (
        f"import sqlite3; d = sqlite3.connect('/var/lib/antiphon/router.sqlite'); d.execute({future!r}); d.commit()"
    )
    installed.run("systemctl", "stop", SERVICES[1])
    installed.run("python3", "-c", change)
    done = installed.run(INSTALL, "--roll-back")
    assert "1.0 cannot read the state that 1.1 leaves" in done.stderr and f"{ADDRESS}/" in done.stderr, done.stderr
    for unit in SERVICES:
        program = installed.run("readlink", f"/proc/{main_pid(installed, unit)}/exe").stdout
        assert program.startswith("/opt/antiphon/versions/1.0/"), program
    queue = installed.run("curl", "-fsS", f"{ADDRESS}/api/v1/sessions/kept/queue").stdout
    assert "Response.wav" in queue, "the state of before is not back"


def test_an_upgrade_that_fails_goes_back_by_itself(installed):
    """It runs where it is asked for its version, and not where it is to serve."""
    installed.run("sh", "-c", "cp -r /binaries /tmp/bad && rm /tmp/bad/Router")
    router = (
        '#!/bin/sh\n[ "$1" = --version ] && exec /binaries/Router --version\necho "this one is broken" >&2\nexit 3\n'
    )
    installed.run("sh", "-c", f"printf %s '{router}' > /tmp/bad/Router && chmod 755 /tmp/bad/Router")
    before = installed.run("readlink", "/opt/antiphon/previous", check=False).stdout
    done = installed.run(
        INSTALL, "--binaries", "/tmp/bad", "--version", "2.0", "--no-yt-dlp", "--ready-seconds", "10", check=False
    )
    assert done.returncode == 1, done.stderr
    for words in ("2.0 is not ready", "this one is broken", "going back to 1.0", "version 1.0 is current"):
        assert words in done.stderr, done.stderr
    wait_until(installed, READY)
    assert installed.run("readlink", "/opt/antiphon/current").stdout == "versions/1.0\n"
    assert installed.run("readlink", "/opt/antiphon/previous", check=False).stdout == before


def test_an_interrupted_upgrade_leaves_nothing_stopped(installed):
    """By a signal that comes when the new version is current, and its units are not there yet."""
    shim = installed.root / "shim/install"
    shim.parent.mkdir()
    shim.write_text('#!/bin/sh\n[ -e $0.done ] || kill -TERM $PPID; touch $0.done; exec /usr/bin/install "$@"\n')
    shim.chmod(0o755)
    upgrade = ("--binaries", "/binaries", "--version", "3.0", "--no-yt-dlp")
    path = "PATH=/shim:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    done = installed.run("env", path, INSTALL, *upgrade, check=False)
    assert done.returncode == 143 and f"version 1.0 is current: {ADDRESS}/" in done.stderr, done.stderr
    assert installed.run("readlink", "/opt/antiphon/current").stdout == "versions/1.0\n"
    for unit in SERVICES:
        assert installed.show(unit, "ActiveState") == "active"


@pytest.fixture(scope="module")
def wheels(machine):
    """What the bot needs from PyPI, which the machine cannot reach; for its Python."""
    needed = ["setuptools>=68"]
    for folder in ("discord-bot", "clients/python"):
        project = tomllib.loads((ROOT / "deploy" / folder / "pyproject.toml").read_text())["project"]
        needed += project["dependencies"] + project.get("optional-dependencies", {}).get("discord", [])
    needed = [name for name in needed if not name.startswith("antiphon-client")]
    folder = machine.root / "wheels"
    run("/usr/bin/python3", "-m", "venv", folder / "venv")
    download = [folder / "venv/bin/pip", "download", "--quiet", "--dest", folder, *needed]
    done = subprocess.run(download, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        pytest.skip(f"the bot's packages cannot be had from PyPI: {done.stderr.strip()[-300:]}")
    return folder


#: Discord, to one whose token is wrong.
REFUSING = """
import http.server, ssl
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        answer = b'{"message": "401: Unauthorized", "code": 0}'
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
server = http.server.HTTPServer(("127.0.0.1", 443), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/discord/cert.pem", "/discord/key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def test_the_bot_is_installed_and_says_what_it_misses(installed, wheels):
    """In its sandbox, with all its libraries; first without a token, then with one that Discord refuses."""
    again = (INSTALL, "--binaries", "/binaries", "--version", "1.0", "--no-yt-dlp", "--bot")
    offline = ("env", "PIP_NO_INDEX=1", "PIP_FIND_LINKS=/wheels")
    installed.run("rm", "-rf", "/etc/credstore")
    done = installed.run(*offline, *again, seconds=300)
    assert "put it into /etc/credstore/antiphon.discord-token" in done.stderr, done.stderr
    # As it tells.
    installed.run("sh", "-c", "umask 077 && echo wrong.token.here > /etc/credstore/antiphon.discord-token")
    assert installed.run("stat", "-c", "%a", "/etc/credstore").stdout == "700\n"
    (installed.root / "discord").mkdir()
    (installed.root / "discord/server.py").write_text(REFUSING)
    certificate = "-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=discord.com -addext subjectAltName=DNS:discord.com"
    files = ("-keyout", "/discord/key.pem", "-out", "/discord/cert.pem")
    installed.run("openssl", "req", *certificate.split(), *files)
    (installed.root / "etc/antiphon/bot.env").write_text("SSL_CERT_FILE=/discord/cert.pem\n")
    installed.run("sh", "-c", "echo '127.0.0.1 discord.com' >> /etc/hosts")
    installed.run("systemd-run", "--quiet", "--unit=discord", "python3", "/discord/server.py")
    wait_until(installed, "curl -s -o /dev/null --cacert /discord/cert.pem https://discord.com/")
    installed.run("systemctl", "enable", "--now", "antiphon-bot")
    wait_until(installed, f"systemctl is-failed --quiet {BOT}")
    wait_until(installed, "journalctl -u antiphon-bot | grep -q 'Discord does not accept the token: take a new one'")
    # It is not tried forever.
    assert installed.show(BOT, "ExecMainStatus") == "64" and installed.show(BOT, "NRestarts") == "0"
    installed.run("systemctl", "stop", "discord")


def test_uninstalled_nothing_runs(installed):
    installed.run(INSTALL, "--uninstall", "--purge")
    for unit in (*SERVICES, BOT):
        assert installed.show(unit, "LoadState") == "not-found"
    assert installed.run("ls", "/opt/antiphon", "/var/lib/antiphon", "/etc/antiphon", check=False).stdout == ""
