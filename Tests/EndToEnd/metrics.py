"""Single figures of `/metrics`."""

import asyncio

from prometheus_client.parser import text_string_to_metric_families

from client import bearer, request
from inbox import PATIENCE_SECONDS


async def figure(server, name: str, token: str | None = None) -> float:
    text = (await request("GET", f"{server.url}/metrics", headers=bearer(token))).body
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return sum(sample.value for sample in samples if sample.name == name)


async def wait_figure(server, name: str, is_right, what: str, token: str | None = None) -> float:
    """Waits until a figure of /metrics is as it should be."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while not is_right(value := await figure(server, name, token)):
        assert asyncio.get_running_loop().time() < deadline, f"{name} is {value}, expected {what}"
        await asyncio.sleep(0.05)
    return value
