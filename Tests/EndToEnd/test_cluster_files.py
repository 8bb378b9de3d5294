"""compose.yaml's profile `cluster` and deploy/cluster, as far as they can be tried without Docker: Tests/Compose runs them."""

import os
import re
import subprocess
import time
import urllib.request

import yaml

from cluster import CLUSTER_PROGRAM
from processes import PATIENCE_SECONDS, ROOT, free_port

SERVICES = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
CLUSTER = {name: service for name, service in SERVICES.items() if service.get("profiles") == ["cluster"]}
NATS_CONFIGURATION = ROOT / "deploy/cluster/nats.conf"
NODES = ["nats-1", "nats-2", "nats-3"]


def started_with(name: str) -> set[str]:
    """A service and all that is started for it."""
    found = {name}
    for needed in SERVICES[name].get("depends_on", []):
        found |= started_with(needed)
    return found


def test_the_balancer_brings_the_whole_cluster_and_nothing_beside_it():
    assert started_with("balancer") == {*CLUSTER, "samples"}
    assert {"engine", "router"}.isdisjoint(CLUSTER)


def test_its_services_are_as_bound_as_the_others():
    for name, service in CLUSTER.items():
        assert service["read_only"] and service["cap_drop"] == ["ALL"] and service["mem_limit"], name
        assert service["security_opt"] == ["no-new-privileges:true"] and service["cpus"] and service["pids_limit"], name
        # Only the balancer is reached from outside of the networks.
        assert bool(service.get("ports")) == (name == "balancer"), name


def test_each_has_its_name_and_files_and_all_meet_at_the_same_servers():
    servers = ",".join(f"nats://{node}:4222" for node in NODES)
    volumes = []
    for number in (1, 2):
        engine, router = CLUSTER[f"engine-{number}"], CLUSTER[f"router-{number}"]
        assert engine["environment"]["ANTIPHON_ENGINE_NATS"] == servers
        assert router["environment"]["ANTIPHON_ROUTER_NATS"] == servers
        assert router["environment"]["ANTIPHON_ROUTER_CLUSTER_ADDRESS"] == f"router-{number}:8080"
        assert f"router-{number}" in router["environment"]["ANTIPHON_ROUTER_ALLOW_HOST"].split(",")
        volumes += [engine["volumes"][0], router["environment"]["ANTIPHON_ROUTER_STATE"]]
    for node in NODES:
        assert CLUSTER[node]["environment"] == {"NATS_NAME": node} and CLUSTER[node]["networks"] == ["nats"]
        volumes += CLUSTER[node]["volumes"]
    assert len(volumes) == len(set(volumes)), volumes
    # What engine and Router have alone they have here, too.
    for name, own in (("engine", {"ANTIPHON_ENGINE_NATS"}), ("router", None)):
        more = CLUSTER[f"{name}-1"]["environment"].keys() - SERVICES[name]["environment"].keys()
        assert own is None or more == own
        assert SERVICES[name]["environment"].keys() <= CLUSTER[f"{name}-1"]["environment"].keys()


def test_three_nats_servers_with_their_configuration_are_one_cluster(tmp_path):
    """But for the addresses, which are this machine's: one has chosen a leader when it is well."""
    clients, routes, health = ({node: free_port() for node in NODES} for _ in range(3))
    processes = []
    try:
        for node in NODES:
            text = NATS_CONFIGURATION.read_text()
            for old, new in (
                ("0.0.0.0:4222", f"127.0.0.1:{clients[node]}"),
                ("0.0.0.0:6222", f"127.0.0.1:{routes[node]}"),
                ("127.0.0.1:8222", f"127.0.0.1:{health[node]}"),
                ("/var/lib/nats", f"{tmp_path}/{node}"),
            ):
                assert text.count(old) == 1, old
                text = text.replace(old, new)
            text, count = re.subn(r"nats://(nats-\d):6222", lambda found: f"nats://127.0.0.1:{routes[found[1]]}", text)
            assert count == len(NODES)
            (tmp_path / f"{node}.conf").write_text(text)
            with (tmp_path / f"{node}.log").open("wb") as log:
                command = [CLUSTER_PROGRAM, "--config", str(tmp_path / f"{node}.conf")]
                environment = {"PATH": os.environ["PATH"], "NATS_NAME": node}
                processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment))
        deadline = time.monotonic() + PATIENCE_SECONDS
        for node in NODES:
            while not is_well(health[node]):
                assert time.monotonic() < deadline, (tmp_path / f"{node}.log").read_text()
                time.sleep(0.1)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def is_well(port: int) -> bool:
    """As the image's health check sees it."""
    done = subprocess.run([ROOT / "deploy/docker/is-ready", str(port), "/healthz"], capture_output=True, timeout=10)
    if done.returncode != 0:
        return False
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/jsz", timeout=5) as response:
        return b'"leader"' in response.read()
