"""The stack of compose.yaml, as an operator has it: docker and compose, run for real."""

import json
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from processes import ROOT

#: A start on a machine that is busy with other things.
PATIENCE_SECONDS = 90.0
#: What engine and Router are restarted, killed and looked into as.
OURS = ("engine", "router")
#: The profile of that name, what others need first.
CLUSTER = ("nats-1", "nats-2", "nats-3", "engine-1", "engine-2", "router-1", "router-2", "balancer")


def run(*command: str, check: bool = True) -> subprocess.CompletedProcess:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, stdin=subprocess.DEVNULL)
    assert not check or done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Stack:
    """One project of compose; what it is told is in its environment, as .env would say it."""

    def __init__(self) -> None:
        self.port = free_port()
        self.prometheus_port = free_port()
        os.environ["ANTIPHON_PORT"] = str(self.port)
        os.environ["PROMETHEUS_PORT"] = str(self.prometheus_port)
        #: It finds compose.yaml by itself, in the folder that `run` starts it in.
        self._compose = os.environ["ANTIPHON_COMPOSE"].split()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def compose(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess:
        return run(*self._compose, *arguments, check=check)

    def up(self, *services: str, **settings: str | Path) -> None:
        """Starts it with these settings, made anew where it ran with others, and waits until it is healthy."""
        os.environ.update({name: str(value) for name, value in settings.items()})
        self.compose("up", "-d", "--no-build", *(services or OURS))
        for service in services or OURS:
            if service in OURS:
                self.wait_healthy(service)

    def up_cluster(self) -> None:
        """Several Routers and engines at the port of the one Router, which goes."""
        self.compose("stop", *OURS)
        self.compose("--profile", "cluster", "up", "-d", "--no-build", "balancer")
        for service in CLUSTER:
            self.wait_healthy(service)

    def container(self, service: str) -> str:
        return self.compose("--profile", "cluster", "ps", "-q", service).stdout.strip()

    def inspect(self, service: str) -> dict[str, Any]:
        return json.loads(run("docker", "inspect", self.container(service)).stdout)[0]

    def wait_healthy(self, service: str, since: str = "") -> None:
        """Until its health check has said so; `since` is a `StartedAt` that must be over."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            state = self.inspect(service)["State"]
            if state["Running"] and state["StartedAt"] != since and state["Health"]["Status"] == "healthy":
                return
            assert time.monotonic() < deadline, f"{service}: {state}\n{self.log(service)}"
            time.sleep(0.5)

    def execute(self, service: str, *command: str, check: bool = True) -> subprocess.CompletedProcess:
        """Runs a command inside of a container, as its user."""
        return run("docker", "exec", self.container(service), *command, check=check)

    def crash(self, service: str) -> str:
        """Kills its first process, as the kernel does for want of memory; when it had been started.
        `docker kill` would be an operator's will, and not be made good again."""
        state = self.inspect(service)["State"]
        os.kill(state["Pid"], 9)
        return state["StartedAt"]

    def log(self, service: str) -> str:
        done = run("docker", "logs", "--tail", "40", self.container(service), check=False)
        return f"{done.stdout}{done.stderr}"
