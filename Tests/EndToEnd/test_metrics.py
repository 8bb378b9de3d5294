"""/health and /metrics of both processes."""

from prometheus_client.parser import text_string_to_metric_families

from client import listen, request
from media import OGG_OPUS, tone_clip

SONG = tone_clip(440, 20, OGG_OPUS)


async def test_metrics_are_prometheus_text(antiphon, media, new_session):
    media.path(SONG)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(SONG.url)
        await listener.wait_packets(25)
        for server in (antiphon.engine, antiphon.router):
            answer = await request("GET", f"{server.url}/metrics")
            assert answer.status == 200 and isinstance(answer.body, str), answer
            families = list(text_string_to_metric_families(answer.body))
            assert len(families) >= 5, f"{server.name}: {len(families)} metrics"
            names = [(family.name, family.type) for family in families]
            assert len(names) == len(set(names)), f"{server.name}: {names}"
            for family in families:
                assert family.type != "unknown" and family.documentation, (
                    f"{server.name}: {family.name} has no TYPE or HELP"
                )
                assert family.name.startswith(("antiphon_", "process_")), f"{server.name}: {family.name}"
            assert any("session" in name for name, _ in names), f"{server.name}: {names}"
        await listener.command("stop")


async def test_health_tells_how_it_is(antiphon):
    router = await request("GET", f"{antiphon.router.url}/health")
    assert router.status == 200 and router.body["status"] == "ok" and router.body["engine"]["connected"] is True, router
    assert {"version", "uptime_s", "sessions", "listeners"} <= router.body.keys(), router
    engine = await request("GET", f"{antiphon.engine.url}/health")
    assert engine.status == 200 and engine.body["version"] == router.body["engine"]["version"], (engine, router)
