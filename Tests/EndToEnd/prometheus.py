"""A real Prometheus with the configuration that is shipped, changed only in the addresses and in how long it waits."""

import asyncio
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from yarl import URL

from client import Answer, request
from processes import ROOT, free_port

SHIPPED = ROOT / "deploy" / "monitoring"
#: It starts, scrapes and evaluates: twice what the others are given, as it is three things in a row.
PATIENCE_SECONDS = 40.0
#: How often it scrapes and evaluates here.
INTERVAL = "500ms"


class Prometheus:
    """One process in a folder of its own."""

    def __init__(self, folder: Path, addresses: dict[str, str]) -> None:
        self.folder = folder
        shutil.copytree(SHIPPED, folder, dirs_exist_ok=True)
        self._write_configuration(addresses)
        self._shorten_alerts()
        self._log = folder / "prometheus.log"
        self.url = ""

    def _write_configuration(self, addresses: dict[str, str]) -> None:
        path = self.folder / "prometheus.yml"
        configuration = yaml.safe_load(path.read_text())
        configuration["global"] = dict.fromkeys(("scrape_interval", "evaluation_interval"), INTERVAL)
        for job in configuration["scrape_configs"]:
            del job["dns_sd_configs"]
            job["static_configs"] = [{"targets": [addresses[job["job_name"]]]}]
        path.write_text(yaml.safe_dump(configuration))

    def _shorten_alerts(self) -> None:
        path = self.folder / "alerts.yml"
        rules = yaml.safe_load(path.read_text())
        for rule in rules["groups"][0]["rules"]:
            rule["for"] = "1s"
        path.write_text(yaml.safe_dump(rules))

    def __enter__(self) -> "Prometheus":
        address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{address}"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={self.folder}/prometheus.yml",
                    f"--storage.tsdb.path={self.folder}/data",
                    f"--web.listen-address={address}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    async def get(self, path: str, **query: str) -> Answer:
        url = URL(f"{self.url}/api/v1/{path}").with_query(query)
        deadline = time.monotonic() + PATIENCE_SECONDS
        # One that is starting refuses connections, and then says that it is starting.
        while True:
            try:
                if (answer := await request("GET", str(url))).status != 503:
                    return answer
            except OSError:
                pass
            assert self._process.poll() is None and time.monotonic() < deadline, self.tail()
            await asyncio.sleep(0.1)

    async def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that an expression has now."""
        answer = await self.get("query", query=expression)
        assert answer.status == 200 and answer.body["status"] == "success", f"{expression}: {answer.body}"
        return answer.body["data"]["result"]

    async def wait(self, what: str, look: Callable[[], Any]) -> Any:
        """What an asynchronous look at it finds, once that is true."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (found := await look()):
            assert time.monotonic() < deadline, f"{what} did not happen in {PATIENCE_SECONDS} s\n{self.tail()}"
            await asyncio.sleep(0.2)
        return found

    async def health(self) -> dict[str, str]:
        """How each job's targets are: `up`, `down` or `unknown`, with the last error."""
        targets = (await self.get("targets")).body["data"]["activeTargets"]
        return {target["labels"]["job"]: f"{target['health']} {target['lastError']}".strip() for target in targets}

    async def firing(self) -> set[str]:
        alerts = (await self.get("alerts")).body["data"]["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def tail(self) -> str:
        return self._log.read_text(errors="replace")[-2_000:]
