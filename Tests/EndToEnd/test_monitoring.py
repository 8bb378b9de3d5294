"""What deploy/monitoring ships, in a real Prometheus that scrapes a real engine and Router.

Grafana cannot be had on the development machines: of the dashboard, its expressions are run.
"""

import json
import re
import subprocess

import pytest
import yaml

from client import listen, request
from media import OGG_OPUS, tone_clip
from processes import ROOT, Antiphon
from prometheus import SHIPPED, Prometheus

SONG = tone_clip(440, 30, OGG_OPUS)
DASHBOARD = json.loads((SHIPPED / "grafana/dashboards/antiphon.json").read_text())
RULES = yaml.safe_load((SHIPPED / "alerts.yml").read_text())["groups"][0]["rules"]
#: In place of Grafana's, which is four scrapes and more.
RATE_INTERVAL = "10s"


def expressions_of_dashboard() -> list[str]:
    found = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]
    return [expression.replace("$__rate_interval", RATE_INTERVAL) for expression in found]


def metrics_of(expressions: list[str]) -> set[str]:
    """The names of our metrics."""
    return {name for expression in expressions for name in re.findall(r"\b(?:antiphon|process)_\w+\b(?!-)", expression)}


def monitored(antiphon: Antiphon, folder) -> Prometheus:
    return Prometheus(
        folder / "prometheus",
        {"antiphon-engine": antiphon.engine.address, "antiphon-router": antiphon.router.address},
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "alerts_test.yml"),
    ],
    ids=" ".join,
)
def test_promtool_is_content(arguments):
    process = subprocess.run(["promtool", *arguments], cwd=SHIPPED, capture_output=True, text=True, timeout=60)
    assert process.returncode == 0 and "SUCCESS" in process.stdout, process.stdout + process.stderr


def test_every_alert_is_tested_and_tells_what_to_do():
    tested = (SHIPPED / "alerts_test.yml").read_text()
    for rule in RULES:
        assert f'alertname="{rule["alert"]}"' in tested, f"alerts_test.yml does not have {rule['alert']} fire"
        assert rule["labels"]["severity"] in ("critical", "warning"), rule
        assert {"summary"} <= rule["annotations"].keys() and rule["for"], rule


def test_the_alert_for_memory_knows_how_much_there_is():
    """Containers and units have the same limits, and the alert is 80 % of them."""
    [rule] = [rule for rule in RULES if rule["alert"] == "AntiphonMemory"]
    limits = re.findall(r'job="antiphon-(\w+)"} > 0\.8 \* (\d+) \* 2\^20', rule["expr"])
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    for name, mebibytes in limits:
        assert services[name]["mem_limit"].endswith({"1024": ":-1g}", "512": ":-512m}"}[mebibytes]), name
        unit = (ROOT / f"deploy/systemd/antiphon-{name}.service").read_text()
        assert {"1024": "MemoryMax=1G\n", "512": "MemoryMax=512M\n"}[mebibytes] in unit, name
    assert [name for name, _ in limits] == ["engine", "router"]


def test_the_dashboard_asks_the_datasource_that_is_provisioned():
    provisioned = yaml.safe_load((SHIPPED / "grafana/provisioning/datasources/prometheus.yml").read_text())
    (datasource,) = provisioned["datasources"]
    for panel in DASHBOARD["panels"]:
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": datasource["type"], "uid": datasource["uid"]}, panel["title"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]]
    assert len(places) == len(set(places)), "two panels are at one place"
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids)), ids


async def test_both_are_scraped_and_every_expression_has_something_to_say(antiphon, media, tmp_path, new_session):
    media.path(SONG)
    with monitored(antiphon, tmp_path) as prometheus:
        async with listen(antiphon.router.url, new_session()) as listener:
            await listener.play(SONG.url)
            # Commands are counted by what came of them: one that is refused besides.
            nowhere = f"{antiphon.router.url}/api/v1/sessions/{new_session()}/play"
            assert (await request("POST", nowhere, {"url": "media:nowhere.opus"})).status == 404

            async def scraped():
                return len(await prometheus.query("rate(antiphon_router_packets_received_total[10s]) > 0")) == 1

            await prometheus.wait("packets being counted", scraped)
            assert await prometheus.health() == {"antiphon-engine": "up", "antiphon-router": "up"}
            instances = {series["metric"]["instance"] for series in await prometheus.query("up")}
            assert instances == {"engine", "router"}, instances

            for expression in expressions_of_dashboard():

                async def answered(expression=expression):
                    return await prometheus.query(expression)

                # A rate has to have seen its series twice.
                await prometheus.wait(f"an answer to {expression}", answered)
            alerts = [rule["expr"] for rule in RULES]
            for expression in alerts:
                await prometheus.query(expression)
            for name in metrics_of([*expressions_of_dashboard(), *alerts]):
                assert await prometheus.query(name), f"there is no metric {name}"
            await listener.command("stop")


async def test_a_router_with_keys_is_scraped_with_a_token(guarded, mint, tmp_path):
    with monitored(guarded, tmp_path) as prometheus:

        async def refused():
            return "401" in (await prometheus.health()).get("antiphon-router", "")

        # The file that is shipped holds no token.
        await prometheus.wait("the error", refused)
        # Read anew for each scrape.
        (prometheus.folder / "router.token").write_text(mint.token(scope="admin") + "\n")

        async def admitted():
            return (await prometheus.health())["antiphon-router"] == "up"

        await prometheus.wait("a scrape with the token", admitted)


async def test_alerts_fire_when_the_engine_is_killed_and_end_when_it_is_back(mortal, tmp_path):
    expected = {"AntiphonEngineDown", "AntiphonRouterNotReady"}
    with monitored(mortal, tmp_path) as prometheus:

        async def calm():
            up = await prometheus.query("up == 1")
            return len(up) == 2 and not await prometheus.firing()

        await prometheus.wait("a calm beginning", calm)
        mortal.engine.kill()

        async def alarmed():
            return await prometheus.firing() == expected

        await prometheus.wait(f"{expected} firing", alarmed)
        mortal.engine.start()
        await prometheus.wait("the end of the alarm", calm)
