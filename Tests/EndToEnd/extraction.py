"""What the tests of yt-dlp share: the engine's own figures of it, and its worker processes."""

import os
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from client import request
from inbox import PATIENCE_SECONDS
from processes import Antiphon

#: A cold worker loads yt-dlp and all its extractors first, on a machine that may be busy with other things.
COLD_SECONDS = PATIENCE_SECONDS + 30

#: A yt-dlp plugin as an operator may write one: a search on our own server.
_SEARCH_PLUGIN = """
from yt_dlp.extractor.common import SearchInfoExtractor

class LocalSearchIE(SearchInfoExtractor):
    _SEARCH_KEY = "localsearch"
    IE_NAME = "local:search"

    def _search_results(self, query):
        for item in self._download_json({url!r}, query, query={{"q": query}}):
            yield self.url_result(item["url"], title=item["title"], uploader=item["by"], duration=item["seconds"])
"""


async def figures(antiphon: Antiphon) -> dict[str, float]:
    """`jobs_total`, `worker_restarts_total` and so on: what begins with antiphon_engine_extraction_."""
    answer = await request("GET", f"{antiphon.engine.url}/metrics")
    prefix = "antiphon_engine_extraction_"
    samples = [sample for family in text_string_to_metric_families(answer.body) for sample in family.samples]
    return {item.name.removeprefix(prefix): item.value for item in samples if item.name.startswith(prefix)}


def workers(antiphon: Antiphon) -> list[int]:
    """The process IDs of an engine's extraction workers."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # The fields after the name, which may hold spaces: state, parent.
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == antiphon.engine.pid and b"extraction_worker.py" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            pass
    return found


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def write_search_plugin(plugins: Path, url: str) -> None:
    """Puts the search into a folder of yt-dlp's plugins; `url` answers it with a list of url, title, by, seconds."""
    folder = plugins / "local" / "yt_dlp_plugins" / "extractor"
    folder.mkdir(parents=True)
    (folder / "local.py").write_text(_SEARCH_PLUGIN.format(url=url))


def search_options(plugins: Path, url: str) -> tuple[str, ...]:
    """The engine's options with which words are looked for at `url`."""
    write_search_plugin(plugins, url)
    return ("--search-prefix", "localsearch", "--yt-dlp-plugins", str(plugins))


#: A yt-dlp plugin that fails as yt-dlp's own extractors do: `/demand/NAME` calls that line; what an operator gives as
#: `antiphondemand:title=…` is the title of `/demand/nothing`.
_DEMAND_PLUGIN = """
from yt_dlp.extractor.common import InfoExtractor
from yt_dlp.networking.exceptions import HTTPError
from yt_dlp.utils import ExtractorError, UserNotLive

class AntiphonDemandIE(InfoExtractor):
    _VALID_URL = r"https?://[^/]+/demand/(?P<id>\\w+)"

    def _real_extract(self, url):
        name = self._match_id(url)
        getattr(self, name)(url)
        title = self._configuration_arg("title", ["none"], casesense=True)[0]
        song = {{"url": url.replace("/demand/nothing", "/song.mp3"), "vcodec": "none"}}
        return {{"id": name, "title": title, "formats": [song] if name == "nothing" else []}}

    def nothing(self, url): ...

{demands}
"""


def write_demand_plugin(plugins: Path, demands: dict[str, str]) -> None:
    """By name what is done: Python, with `self` and `url`."""
    folder = plugins / "demand" / "yt_dlp_plugins" / "extractor"
    folder.mkdir(parents=True)
    lines = [f"    def {name}(self, url):\n        {line}\n" for name, line in demands.items()]
    (folder / "antiphondemand.py").write_text(_DEMAND_PLUGIN.format(demands="\n".join(lines)))
