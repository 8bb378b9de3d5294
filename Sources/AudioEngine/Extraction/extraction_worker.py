"""AudioEngine's extraction worker: yt-dlp behind two pipes.

The engine starts it, several if need be, and gives each one job at a time. Standard input carries JSON, one
object a line: first the settings, then jobs. Standard output carries one line back for each: first `hello` with
yt-dlp's version, then the answers. It ends when its standard input does, also in the middle of a job, so that a
dead engine leaves none behind. `--version` prints the version of the yt-dlp that would be used.

docs/decisions/0008-extraction-worker.md says why it is as it is.
"""

import contextlib
import http.cookiejar
import importlib.machinery
import importlib.util
import ipaddress
import json
import os
import re
import secrets
import socket
import sys
import threading
import time
import types
import urllib.parse

#: Leaves the headers, a long URL and the words of 50 entries room.
ANSWER_BYTE_LIMIT = 512 * 1024
URL_LIMIT = 8_192
TEXT_LIMIT = 300
HEADER_LIMIT = 32
COOKIE_LIMIT = 64
PLAIN_PROTOCOLS = ("http", "https")
DASH_PROTOCOL = "http_dash_segments"
SEGMENTED_PROTOCOLS = ("m3u8", "m3u8_native", DASH_PROTOCOL)
#: Programs that yt-dlp may start: the JavaScript runtime that YouTube's player needs, which yt-dlp itself starts
#: without any permission. ffmpeg and the like would open connections that nobody checks.
PROGRAMS = {"deno"}


class Refused(PermissionError):
    """What a stranger's URL may not make us do."""


class AddressPolicy:
    """The engine's rules (Sources/AudioEngine/Inputs/AddressPolicy.swift), applied to every connection this process makes.

    An audit hook sees the numeric address that a socket is about to connect to, so that neither a redirect nor a
    name that changes its address gets around it. It cannot be taken away again.
    """

    #: What is sent first of a request, or to a proxy.
    _REQUEST = re.compile(rb"[A-Z]+ (?:https?://)?(?:[^\s/?#@]*@)?(\[[^\s\]]*\]|[^\s/?#:]*)[^\s]* HTTP/1\.[01]\r\n")

    def __init__(self, allowed: list[str], refused: list[str], proxy: str | None = None) -> None:
        #: The proxy's own addresses, which the operator has given: it may be on a network of his.
        self._proxies = addresses_of(proxy) if proxy else set()
        self._allowed = [ipaddress.ip_network(network, strict=False) for network in allowed]
        self._refused = [ipaddress.ip_network(network, strict=False) for network in refused]
        #: The last address that was refused in this job.
        self.refused_address: str | None = None

    def permits(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
        if any(address in network for network in self._allowed):
            return True
        if any(address in network for network in self._refused):
            return False
        embedded = embedded_address(address)
        return embedded is None or self.permits(embedded)

    def audit(self, event: str, arguments: tuple) -> None:
        match event:
            case "socket.connect":
                self._check(arguments[0].family, arguments[1])
            case "http.client.send" if self._proxies:
                self._check_proxied(arguments[1])
            case "socket.sendto" | "socket.sendmsg":
                # Without a connection, and so without a check; yt-dlp needs none.
                if arguments[1] is not None:
                    raise Refused("no datagrams are sent")
            case "subprocess.Popen" | "os.exec" | "os.posix_spawn":
                if os.path.basename(os.fsdecode(arguments[0] or "")) not in PROGRAMS:
                    raise Refused(f"the program {arguments[0]!r} is not started")
            case "os.system" | "os.fork" | "os.forkpty":
                raise Refused(f"{event} is not allowed")

    def _check(self, family: int, address: object) -> None:
        if family not in (socket.AF_INET, socket.AF_INET6) or not isinstance(address, tuple):
            raise Refused("only internet addresses are connected to")
        try:
            numeric = ipaddress.ip_address(str(address[0]).partition("%")[0])
        except ValueError:
            raise Refused(f"{address[0]!r} is not a numeric address") from None
        if (str(numeric), address[1]) not in self._proxies:
            self._require(numeric)

    def _check_proxied(self, data: object) -> None:
        """What a proxy is asked for: names are its business, addresses in whatever form are ours, as in
        `AddressPolicy.checkUnresolved`."""
        request = self._REQUEST.match(data) if isinstance(data, bytes | bytearray) else None
        host = request.group(1).decode("ascii", "replace").strip("[]").lower().removesuffix(".") if request else ""
        if host == "localhost" or host.endswith(".localhost"):
            host = "127.0.0.1"
        if host:
            with contextlib.suppress(socket.gaierror):
                for found in socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST):
                    self._require(ipaddress.ip_address(found[4][0].partition("%")[0]))

    def _require(self, numeric: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
        if not self.permits(numeric):
            self.refused_address = str(numeric)
            raise Refused(f"the address {numeric} is not public")


def addresses_of(proxy: str) -> set[tuple[str, int]]:
    parts = urllib.parse.urlsplit(proxy)
    found = socket.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_STREAM)
    return {(str(ipaddress.ip_address(item[4][0])), item[4][1]) for item in found}


def embedded_address(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one carries inside itself, by which its packets would travel: mapped,
    IPv4-compatible, NAT64, 6to4, Teredo; as `IPAddress.embedded` in IPAddress.swift."""
    if address.version == 4:
        return None
    data = address.packed
    if data[:12] in (bytes(10) + b"\xff\xff", bytes(12)) or data[:4] == b"\x00\x64\xff\x9b":
        return ipaddress.IPv4Address(data[12:])
    if data[:2] == b"\x20\x02":
        return ipaddress.IPv4Address(data[2:6])
    if data[:4] == b"\x20\x01\x00\x00":
        return ipaddress.IPv4Address(bytes(255 - byte for byte in data[12:]))
    return None


class Orders:
    """Which orders to yt-dlp inside an address are its own.

    Its extractors hand each other data behind `#__youtubedl_smuggle=` (headers to send, which extractor to use). A
    stranger can write the same into an address, a page's link or a redirect, so our process's carry a secret, and an
    address with orders without it is refused wherever it comes from.
    """

    MARK = "__youtubedl_smuggle"
    #: Addresses inside addresses are percent-encoded once for each; deeper ones are refused as they are.
    DECODING_LIMIT = 16

    def __init__(self, library: types.ModuleType) -> None:
        self._secret = secrets.token_hex(16)
        originals = {name: getattr(library.utils, name) for name in ("smuggle_url", "unsmuggle_url")}
        for module in list(sys.modules.values()):
            if not getattr(module, "__name__", "").startswith("yt_dlp"):
                continue
            # What is imported later takes them from `yt_dlp.utils`, which is among these.
            for name, original in originals.items():
                if vars(module).get(name) is original:
                    setattr(module, name, getattr(self, name))

    def smuggle_url(self, url: str, data: dict) -> str:
        url, known = self.unsmuggle_url(url, {})
        fields = {self.MARK: json.dumps({**data, **known}), "secret": self._secret}
        return f"{url}#{urllib.parse.urlencode(fields)}"

    def unsmuggle_url(self, url: str, default: object = None) -> tuple[str, object]:
        if self.MARK not in url:
            return url, default
        plain, _, orders = url.rpartition("#")
        fields = urllib.parse.parse_qs(orders)
        if fields.get("secret") != [self._secret] or self.MARK not in fields or self.MARK in plain:
            raise Refused("an address carries orders for yt-dlp")
        return plain, json.loads(fields[self.MARK][0])

    def has_foreign(self, url: str) -> bool:
        """Whether an address from outside carries orders, at any depth of addresses inside addresses."""
        for _ in range(self.DECODING_LIMIT):
            if self.MARK in url:
                return True
            decoded = urllib.parse.unquote(url)
            if decoded == url:
                return False
            url = decoded
        return True


class JobError(Exception):
    """A job that cannot be done, in the engine's words."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Silence:
    """yt-dlp's logger: what goes wrong comes as an exception, but why there is nothing to play as a warning."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def debug(self, message: str) -> None: ...

    info = error = debug

    def warning(self, message: str) -> None:
        self.warnings.append(message)


#: What sites ask for, by the words of yt-dlp's extractors; the first that fits. A private video's words tell to sign in
#: as well, and so do those of an age limit.
DEMANDS = {
    "rate": r"rate.?limit|too many requests|HTTP Error 429",
    "age": r"confirm your age|\bage.?(restrict|limit|verif|gate)|adult verification|inappropriate for some users",
    "private": r"\bprivate\b|members.?only|for members|this channel's members|subscribers|subscription|not subscribed"
    r"|premium (users|members)|has to be bought|need to purchase|requires payment",
    "geo": r"geo.?restrict|(in|from) (your|this|the current) (country|region|location)|available in your country",
    "sign_in": r"\b(sign|log)(ed|ged)?.?in\b|not a bot|captcha|registered users|authenticat"
    r"|account is (needed|required)|cookies .*are needed",
}
STATUS_DEMANDS = {429: "rate", 451: "geo", 401: "sign_in"}


def demand(words: str) -> str | None:
    return next((kind for kind, pattern in DEMANDS.items() if re.search(pattern, words, re.IGNORECASE)), None)


def causes(error: BaseException) -> list[BaseException]:
    """An exception, and those that it came from."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting:
        current = waiting.pop()
        if isinstance(current, BaseException) and current not in found:
            found.append(current)
            wrapped = getattr(current, "exc_info", None) or (None, None)
            waiting += [current.__context__, current.__cause__, getattr(current, "cause", None), wrapped[1]]
    return found


class Extractor:
    """The three kinds of job."""

    def __init__(self, settings: dict, policy: AddressPolicy) -> None:
        self._settings = settings
        self._policy = policy
        # libcurl connects without asking the audit hook.
        sys.modules["curl_cffi"] = None
        if not settings["plugin_dirs"]:
            os.environ["YTDLP_NO_PLUGINS"] = "1"
        import yt_dlp
        import yt_dlp.globals
        import yt_dlp.networking.exceptions
        import yt_dlp.utils

        yt_dlp.globals.plugin_dirs.value = settings["plugin_dirs"]
        self._library = yt_dlp
        given = [word for item in settings["extractor_args"] for word in ("--extractor-args", item)]
        self._extractor_args = yt_dlp.parse_options(["--ignore-config", *given]).ydl_opts["extractor_args"]
        if authorities := settings.get("authorities"):
            trust(authorities)
        self._orders = Orders(yt_dlp)
        self.version = yt_dlp.version.__version__

    def answer(self, job: dict) -> dict:
        self._policy.refused_address = None
        try:
            match job["op"]:
                case "extract":
                    return self._extract(self._web_url(job["url"]), job.get("format_id"))
                case "list":
                    return self._list(self._web_url(job["url"]), job["limit"])
                case "search":
                    # The prefix and the number come from the engine, so that what follows is always words.
                    query = f"{self._settings['search_prefix']}{job['limit']}:{job['query']}"
                    return self._list(query, job["limit"])
                case other:
                    raise JobError("failed", f"there is no job {other!r}")
        except JobError:
            raise
        except Exception as error:
            raise self._explained(error) from error

    def _extract(self, url: str, format_id: str | None) -> dict:
        info = page = self._run(url, format_id, noplaylist=True, playlist_items="1")
        while info and "entries" in info:
            info = next(iter(info["entries"]), None)
        if not info:
            raise JobError("unsupported", "the page is an empty playlist")
        return self._track(info, page)

    def _list(self, query: str, limit: int) -> dict:
        # One more than wanted tells whether there are more.
        info = self._run(query, None, extract_flat="in_playlist", playlist_items=f"1:{limit + 1}")
        if not info:
            raise JobError("unsupported", "nothing was found")
        if "entries" not in info:
            return self._track(info, info)
        found = [entry for item in info["entries"] if item and (entry := self._entry(item, info))]
        return {"list": {"title": text(info.get("title")), "entries": found[:limit], "truncated": len(found) > limit}}

    def _run(self, query: str, format_id: str | None, **options: object) -> dict | None:
        logger = Silence()
        options |= {
            "cachedir": False,
            "color": "never",
            "extractor_args": self._extractor_args,
            "extractor_retries": 1,
            "format": lambda context: choose_format(context["formats"], format_id),
            # One song has the best sound for the fewest bytes; Opus is passed on as it is.
            "format_sort": ["acodec:opus", "abr", "+res", "+size"],
            # What no format was chosen of is seen by that; a playlist is not to fail for one of its entries.
            "ignore_no_formats_error": True,
            "logger": logger,
            "noprogress": True,
            # Where it is empty, not even one from the environment: an address has to be checked here.
            "proxy": self._settings.get("proxy") or "",
            "quiet": True,
            "simulate": True,
            "socket_timeout": self._settings["socket_timeout_s"],
        }
        # One for each job: no cookie of one page is sent for another, and what a job does to those given stays in it.
        with self._library.YoutubeDL(options) as downloader:
            for cookie in self._settings["cookies"]:
                downloader.cookiejar.set_cookie(given_cookie(cookie))
            info = downloader.extract_info(query, download=False)
            # A playlist may load its entries as they are asked for, which takes the downloader.
            if info and "entries" in info:
                info["entries"] = list(info["entries"])
            if info:
                info["antiphon_cookies"] = list(downloader.cookiejar)
                info["antiphon_warnings"] = logger.warnings
            return info

    def _track(self, info: dict, page: dict) -> dict:
        if "antiphon_chosen" not in info:
            for warning in page["antiphon_warnings"]:
                if kind := demand(warning):
                    raise JobError(kind, self._told(warning))
            raise JobError(
                "unsupported",
                "it has no audio over http or in segments" if info.get("formats") or info.get("url") else "it has no media",
            )
        headers = list((info.get("http_headers") or {}).items())[:HEADER_LIMIT]
        return {
            "track": {
                "stream_url": stream_url(info),
                "format_id": info.get("format_id"),
                "is_segmented": info.get("protocol") in SEGMENTED_PROTOCOLS,
                "headers": [{"name": str(name), "value": str(value)} for name, value in headers],
                "cookies": cookies_for(info["url"], page["antiphon_cookies"]),
                "about": about(info),
            }
        }

    def _entry(self, item: dict, playlist: dict) -> dict | None:
        # A video that stands in the page itself is known by no address but its media's.
        is_own_page = item.get("webpage_url") != playlist.get("webpage_url")
        names = ("webpage_url", "url") if is_own_page and "antiphon_chosen" in item else ("url", "webpage_url")
        for name in names:
            try:
                url, _ = self._orders.unsmuggle_url(item.get(name) or "")
            except Refused:
                continue
            if is_web_url(url) and not self._orders.has_foreign(url):
                return {"url": url, "about": about(item)}
        return None

    def _web_url(self, url: str) -> str:
        if self._orders.has_foreign(url):
            raise JobError("forbidden", "the address carries orders for yt-dlp")
        if not is_web_url(url):
            raise JobError("failed", f"{url[:200]!r} is no http or https address")
        return url

    def _explained(self, error: Exception) -> JobError:
        if isinstance(error, MemoryError):
            return JobError("too_large", "the page takes more memory than a worker has")
        cause = getattr(error, "exc_info", None)
        cause = cause[1] if cause and cause[1] else error
        if self._policy.refused_address:
            return JobError("forbidden", f"it leads to the address {self._policy.refused_address}, which is not public")
        if isinstance(cause, Refused):
            return JobError("forbidden", str(cause))
        kind, words = self._demand(error)
        return JobError(kind, self._told(words or str(cause)) or type(cause).__name__)

    def _demand(self, error: Exception) -> tuple[str, str | None]:
        """What kind of failure it is, by the types of yt-dlp's exceptions first: words count only where an extractor means
        to say something to people. The words where they are not the last exception's."""
        types, network = self._library.utils, self._library.networking.exceptions
        found = causes(error)
        said = [item for item in found if isinstance(item, types.ExtractorError) and item.expected]
        statuses = {item.status for item in found if isinstance(item, network.HTTPError)}
        if any(isinstance(item, types.UnsupportedError) for item in said):
            return "unsupported", None
        for item in said:
            if isinstance(item, types.GeoRestrictedError):
                return "geo", item.orig_msg
        is_unreachable = any(isinstance(item, network.ProxyError | ConnectionRefusedError) for item in found)
        if self._settings.get("proxy") and (is_unreachable or 407 in statuses):
            return "proxy", "the proxy cannot be used"
        for item in said:
            if kind := demand(item.orig_msg):
                return kind, item.orig_msg
        return next((kind for status, kind in STATUS_DEMANDS.items() if status in statuses), "failed"), None

    def _told(self, message: str) -> str | None:
        """yt-dlp's words without its advice, which is for who types its options, and without the proxy's password."""
        advice = r"[;.]? *(please report this issue on|Use --|See  http|Also see  ).*"
        message = re.sub(rf"^ERROR: |{advice}", "", message, flags=re.DOTALL)
        if proxy := self._settings.get("proxy"):
            parts = urllib.parse.urlsplit(proxy)
            for secret in (proxy, parts.netloc, parts.password, urllib.parse.unquote(parts.password or "")):
                message = message.replace(secret, "***") if secret else message
        return text(message)


def trust(authorities: str) -> None:
    """Has yt-dlp believe further authorities, whichever of its ways to connect it takes."""
    from yt_dlp.networking import _helper

    load = _helper.ssl_load_certs

    def load_all(context, *arguments, **options):
        load(context, *arguments, **options)
        context.load_verify_locations(cadata=authorities)

    _helper.ssl_load_certs = load_all


def given_cookie(cookie: dict) -> http.cookiejar.Cookie:
    wide, expires = cookie["subdomains"], cookie.get("expires")
    return http.cookiejar.Cookie(
        version=0,
        name=cookie["name"],
        value=cookie["value"],
        port=None,
        port_specified=False,
        domain=f".{cookie['domain']}" if wide else cookie["domain"],
        domain_specified=wide,
        domain_initial_dot=wide,
        path=cookie["path"],
        path_specified=True,
        secure=cookie["secure"],
        expires=expires,
        discard=expires is None,
        comment=None,
        comment_url=None,
        rest={},
    )


def cookies_for(url: str, jar: list[http.cookiejar.Cookie]) -> list[dict]:
    """Those of the domain that a stream is in; the engine looks which of them belong to which request."""
    host = (urllib.parse.urlsplit(url).hostname or "").lower()
    found = []
    for cookie in jar:
        domain = cookie.domain.lower().removeprefix(".")
        # http.cookiejar writes a name without dots so.
        domain = domain.removesuffix(".local") if f"{host}.local" == domain else domain
        if host == domain or host.endswith(f".{domain}"):
            found.append(
                {
                    "name": cookie.name,
                    "value": cookie.value or "",
                    "domain": domain,
                    "subdomains": cookie.domain_specified,
                    "path": cookie.path,
                    "secure": cookie.secure,
                    "expires": cookie.expires,
                }
            )
    return found[:COOKIE_LIMIT]


def choose_format(formats: list[dict], format_id: str | None):
    """The best audio that one plain request gets, else the best in segments; `format_id` asks for that one again and
    no other."""
    for protocols in (PLAIN_PROTOCOLS, SEGMENTED_PROTOCOLS):
        fitting = [
            item
            for item in formats
            if item.get("protocol") in protocols
            and item.get("acodec") != "none"
            and is_web_url(stream_url(item))
            and format_id in (None, item.get("format_id"))
        ]
        # Sorted by yt-dlp, the best last; what has no picture costs fewer bytes.
        chosen = next((item for item in reversed(fitting) if item.get("vcodec") == "none"), None)
        if chosen := chosen or (fitting[-1] if fitting else None):
            yield {**chosen, "antiphon_chosen": True}
            return


def stream_url(item: dict) -> str:
    """A format's address: of DASH its manifest's, and none where yt-dlp made it up of fragments itself."""
    return item.get("manifest_url" if item.get("protocol") == DASH_PROTOCOL else "url") or ""


def about(info: dict) -> dict:
    artists = info.get("artists") or info.get("creators") or []
    duration = info.get("duration")
    thumbnails = [info.get("thumbnail"), *(item.get("url") for item in reversed(info.get("thumbnails") or []))]
    return {
        "title": text(info.get("title")),
        "artist": text(
            ", ".join(artists) if artists else info.get("artist") or info.get("uploader") or info.get("channel")
        ),
        "album": text(info.get("album")),
        "duration_ms": round(duration * 1_000) if isinstance(duration, int | float) and 0 < duration < 4e6 else None,
        "thumbnail": next((url for url in thumbnails if url and is_web_url(url)), None),
        "live": info.get("is_live") is True or info.get("live_status") == "is_live",
    }


def text(value: object) -> str | None:
    return str(value)[:TEXT_LIMIT] if value else None


def is_web_url(url: str) -> bool:
    return url.lower().startswith(("http://", "https://")) and len(url) <= URL_LIMIT


class Pipes:
    """The engine's ends: lines in, lines out."""

    def __init__(self) -> None:
        # What a library prints goes to standard error, never among the answers.
        self._output = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        self._jobs: list[bytes] = []
        self._arrived = threading.Semaphore(0)

    def read_settings(self) -> dict:
        return json.loads(sys.stdin.buffer.readline())

    def read_in_background(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def next_job(self) -> dict:
        self._arrived.acquire()
        return json.loads(self._jobs.pop(0))

    def write(self, message: dict) -> None:
        try:
            self._output.write(json.dumps(message).encode() + b"\n")
        except BrokenPipeError:
            os._exit(0)

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            self._jobs.append(line)
            self._arrived.release()
        os._exit(0)


def resident_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class MemoryGuard:
    """Ends the process whose job takes all memory, with an answer."""

    LOOK_SECONDS = 0.25

    def __init__(self, limit: int, pipes: Pipes) -> None:
        self._limit = limit
        self._pipes = pipes
        self._job: int | None = None
        self._working = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def begin(self, job: int) -> None:
        self._job = job
        self._working.set()

    def end(self) -> None:
        self._working.clear()

    def _watch(self) -> None:
        while self._working.wait():
            if resident_bytes() > self._limit:
                message = f"the page takes more than {self._limit >> 20} MiB of memory"
                self._pipes.write({"id": self._job, "error": {"kind": "too_large", "message": message}})
                os._exit(1)
            time.sleep(self.LOOK_SECONDS)


def installed_version() -> str:
    """Without loading all of yt-dlp for it."""
    spec = importlib.util.find_spec("yt_dlp")
    if spec is None:
        raise SystemExit(f"{sys.executable} has no yt_dlp")
    # Found as an import finds it: a container has it compiled, without the text.
    version = importlib.machinery.PathFinder.find_spec("version", spec.submodule_search_locations)
    module = importlib.util.module_from_spec(version)
    version.loader.exec_module(module)
    return module.__version__


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        print(installed_version())
        return
    # Where memory is short, this goes and not the engine. The kernel lets everyone say so of oneself.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")
    pipes = Pipes()
    settings = pipes.read_settings()
    try:
        policy = AddressPolicy(settings["allowed"], settings["refused"], settings.get("proxy"))
    except OSError:
        pipes.write({"failure": "the name in --yt-dlp-proxy does not resolve"})
        return
    sys.addaudithook(policy.audit)
    try:
        extractor = Extractor(settings, policy)
    except Exception as error:
        pipes.write({"failure": f"{type(error).__name__}: {error}"[:TEXT_LIMIT]})
        return
    pipes.read_in_background()
    guard = MemoryGuard(settings["memory_limit_bytes"], pipes)
    pipes.write({"version": extractor.version})
    while True:
        job = pipes.next_job()
        guard.begin(job["id"])
        try:
            answer = {"id": job["id"], "result": extractor.answer(job)}
            if len(json.dumps(answer)) > ANSWER_BYTE_LIMIT:
                raise JobError("too_large", "what was found is too much for an answer")
        except JobError as error:
            answer = {"id": job["id"], "error": {"kind": error.kind, "message": str(error)}}
        guard.end()
        pipes.write({**answer, "resident_bytes": resident_bytes()})


if __name__ == "__main__":
    main()
