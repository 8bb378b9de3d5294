"""compose.yaml with a real Docker engine. Run by deploy/test-compose, in this order."""

import asyncio
import os
import time

import aiohttp
import pytest
import sandbox
from analysis import assert_unbroken_tone, dominant_frequency, tone_level_db
from client import listen, request
from inbox import Packet, assert_unbroken
from media import FLAC, M4A, MP3_CBR, OGG_OPUS, VORBIS, WAV, WEBM_OPUS, Encoding, MediaFolder, tone_clip
from opus import FRAME, decode
from processes import ROOT
from signals import AMPLITUDE

from stack import CLUSTER, OURS, PATIENCE_SECONDS, Stack, run

LOW = tone_clip(440, 300, MP3_CBR)
HIGH = tone_clip(880, 300, OGG_OPUS)
#: The tone's beginning is a step that a codec smears a little.
ONSET = 5

#: Of every container and codec that Debian's ffmpeg can make: the images have a libav of their own.
EVERYTHING = [
    *(MP3_CBR, M4A, FLAC, WAV, VORBIS, OGG_OPUS, WEBM_OPUS),
    Encoding("mp2", "mp2", "-c:a mp2 -b:a 256k"),
    Encoding("alac", "m4a", "-c:a alac"),
    Encoding("adts", "aac", "-c:a aac -b:a 192k"),
    Encoding("wavpack", "wv", "-c:a wavpack"),
    Encoding("tta", "tta", "-c:a tta"),
    Encoding("ac3", "ac3", "-c:a ac3 -b:a 320k"),
    Encoding("eac3", "eac3", "-c:a eac3 -b:a 320k"),
    Encoding("wma", "wma", "-c:a wmav2 -b:a 192k"),
    Encoding("wma1", "wma", "-c:a wmav1 -b:a 192k"),
    Encoding("aiff", "aiff", "-c:a pcm_s16be"),
    Encoding("caf", "caf", "-c:a pcm_s24le"),
    Encoding("au", "au", "-c:a pcm_s16be"),
    Encoding("au-mulaw", "au", "-c:a pcm_mulaw"),
    Encoding("w64", "w64", "-c:a pcm_f32le"),
    Encoding("wav-f64", "wav", "-c:a pcm_f64le"),
    Encoding("wav-u8", "wav", "-c:a pcm_u8"),
    Encoding("wav-alaw", "wav", "-c:a pcm_alaw"),
    Encoding("wav-adpcm-ms", "wav", "-c:a adpcm_ms"),
    Encoding("wav-adpcm-ima", "wav", "-c:a adpcm_ima_wav"),
    Encoding("mpegts", "ts", "-c:a aac -b:a 192k"),
    Encoding("mpeg", "mpg", "-c:a mp2 -b:a 256k"),
    Encoding("flv", "flv", "-c:a aac -b:a 192k"),
    Encoding("avi", "avi", "-c:a libmp3lame -b:a 192k"),
    Encoding("mka-vorbis", "mka", "-c:a libvorbis -q:a 6"),
    Encoding("ogg-flac", "oga", "-c:a flac"),
]


@pytest.fixture(scope="session")
def media(tmp_path_factory) -> MediaFolder:
    folder = MediaFolder(tmp_path_factory.mktemp("music"))
    # pytest's own folders are root's alone, and the engine is not root.
    for path in (folder.root, *list(folder.root.parents)[:2]):
        path.chmod(0o755)
    folder.make(LOW, HIGH)
    return folder


@pytest.fixture(scope="session")
def stack():
    return Stack()


def assert_only(packets: list[Packet], frequency: int, other: int) -> None:
    """They are one unbroken tone, and nothing of the other."""
    assert_unbroken(packets, f"the {frequency} Hz listener")
    sound = decode(packet.audio for packet in packets)[ONSET * FRAME :, 0]
    measured = dominant_frequency(sound)
    assert abs(measured - frequency) < 1, f"heard {measured:.1f} Hz instead of {frequency} Hz"
    level, foreign = tone_level_db(sound, frequency), tone_level_db(sound, other)
    assert foreign < level - 60, f"{other} Hz is heard at {foreign:.1f} dB, {frequency} Hz at {level:.1f} dB"
    assert_unbroken_tone(sound, frequency, AMPLITUDE, f"the {frequency} Hz listener")


async def hears(stack: Stack, session: str, frequency: int, other: int, count: int = 150) -> None:
    """A client that tries until the session is heard, as every client does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            async with listen(stack.url, session) as listener:
                assert_only(await listener.wait_packets(count), frequency, other)
                return
        except (aiohttp.ClientError, OSError) as error:
            assert time.monotonic() < deadline, f"{error!r}\n{stack.log('router')}"
            await asyncio.sleep(0.5)


async def start(stack: Stack, session: str) -> None:
    """Plays from the beginning, whatever has ended meanwhile."""
    answer = await request("POST", f"{stack.url}/api/v1/sessions/{session}/play", {"url": LOW.url})
    assert answer.status == 200, answer


async def position_ms(stack: Stack, session: str) -> int:
    answer = await request("GET", f"{stack.url}/api/v1/sessions/{session}")
    assert answer.status == 200 and answer.body["state"] == "streaming", answer
    return answer.body["position_ms"]


async def test_a_clone_comes_up_with_its_playground_and_something_to_play(stack):
    stack.up()
    async with aiohttp.ClientSession() as http, http.get(stack.url) as page:
        assert page.status == 200 and "<html" in await page.text()
    answer = await request("GET", f"{stack.url}/api/v1/media?path=samples")
    assert [entry["name"] for entry in answer.body["entries"]] == ["Response.wav", "Versicle.wav"], answer
    async with listen(stack.url, "samples") as listener:
        await listener.play("media:samples/Response.wav")
        packets = await listener.wait_packets(100)
        assert_unbroken(packets, "the sample")
        assert abs(decode(packet.audio for packet in packets)).max() > 0.01, "the sample is silent"
        await listener.command("stop")
    ready = stack.execute("engine", "/opt/antiphon/is-ready", "9090").stdout
    assert '"warnings":[]' in ready, f"yt-dlp, for one, is missing: {ready}"


@pytest.mark.parametrize("service", OURS)
def test_a_container_may_do_nothing(stack, service):
    found = stack.inspect(service)
    host = found["HostConfig"]
    assert host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"] and not host["CapAdd"] and not host["Privileged"]
    assert host["SecurityOpt"] == ["no-new-privileges:true"], "and so Docker's own seccomp profile"
    assert host["Memory"] > 0 and host["NanoCpus"] > 0 and host["PidsLimit"] > 0
    assert host["RestartPolicy"]["Name"] == "unless-stopped" and found["Config"]["User"] == "10001:10001"

    status = stack.execute(service, "cat", "/proc/1/status").stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split() == fields["Gid"].split() == ["10001"] * 4
    for capabilities in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(fields[capabilities], 16) == 0, fields
    assert fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2", fields

    for folder in ("/", "/opt/antiphon", "/usr/bin", "/etc", "/media", "/home"):
        assert stack.execute(service, "bash", "-c", f"echo > {folder}/x", check=False).returncode != 0, folder
    mode = stack.execute(service, "stat", "-c", "%a %u %F", "/run/antiphon/engine.sock").stdout
    assert mode == "600 10001 socket\n", mode
    suid = stack.execute(service, "bash", "-c", "unshare -r true || mount -t tmpfs x /tmp", check=False)
    assert suid.returncode != 0, suid


def test_a_decoder_takes_the_rest_from_itself(stack):
    """Docker's own seccomp profile lets it."""
    output = stack.execute("engine", "/opt/antiphon/AudioEngine", "probe-sandbox").stdout
    refused, results = sandbox.tried(output)
    assert not refused
    assert {name: results[name] for name in sandbox.FORBIDDEN} == dict.fromkeys(sandbox.FORBIDDEN, "refused EPERM")
    assert {name: results[name] for name in sandbox.NEEDED} == dict.fromkeys(sandbox.NEEDED, "worked")


async def test_the_port_is_of_this_machine_alone_and_the_engine_has_none(stack):
    assert stack.inspect("router")["NetworkSettings"]["Ports"] == {
        "8080/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(stack.port)}]
    }
    assert stack.inspect("engine")["NetworkSettings"]["Ports"] == {"9090/tcp": None}
    networks = {service: set(stack.inspect(service)["NetworkSettings"]["Networks"]) for service in OURS}
    assert not networks["engine"] & networks["router"], networks


async def test_two_sessions_sound_through_the_published_port(stack, media):
    stack.up(ANTIPHON_MEDIA=media.root)
    async with listen(stack.url, "low") as low, listen(stack.url, "high") as high:
        await asyncio.gather(low.play(LOW.url), high.play(HIGH.url))
        await asyncio.gather(low.wait_packets(500), high.wait_packets(500))
        assert_only(low.packets()[:500], 440, 880)
        assert_only(high.packets()[:500], 880, 440)


@pytest.mark.parametrize("how", ["crash", "restart"])
async def test_the_router_comes_back_and_the_sound_goes_on(stack, how):
    before = await position_ms(stack, "low")
    if how == "crash":
        stack.wait_healthy("router", since=stack.crash("router"))
    else:
        run("docker", "restart", stack.container("router"))
    await asyncio.gather(hears(stack, "low", 440, 880), hears(stack, "high", 880, 440))
    # It played on in the engine.
    assert await position_ms(stack, "low") > before + 1_000


@pytest.mark.parametrize("how", ["crash", "restart"])
async def test_the_engine_comes_back_and_the_sound_goes_on(stack, how):
    async with listen(stack.url, "low") as low:
        await low.wait_packets(50)
        before = low.packets()[-1].position_ms
        since = low.mark()
        if how == "crash":
            started = stack.crash("engine")
        else:
            # The listener stays and reads all the while.
            await asyncio.to_thread(run, "docker", "restart", stack.container("engine"))
        playing = await low.wait_event("playing", since=since, seconds=PATIENCE_SECONDS)
        packets = await low.wait_packets(150, since=low.index(playing), seconds=PATIENCE_SECONDS)
        assert_only(packets, 440, 880)
        assert packets[0].position_ms > before - 1_000, (packets[0], before)
    if how == "crash":
        stack.wait_healthy("engine", since=started)
    await hears(stack, "high", 880, 440)


async def test_every_kind_of_file_plays(stack, media):
    clips = [tone_clip(660, 2, encoding) for encoding in EVERYTHING]
    media.make(*clips)
    failures = []
    for number, clip in enumerate(clips):
        async with listen(stack.url, f"file-{number}") as listener:
            answer = await listener.ask("play", url=clip.url)
            if answer["type"] == "error":
                failures.append(f"{clip}: {answer}")
                continue
            packets = await listener.wait_packets(40)
            sound = decode(packet.audio for packet in packets)[2 * ONSET * FRAME :, 0]
            if abs(dominant_frequency(sound) - 660) > 2:
                failures.append(f"{clip}: heard {dominant_frequency(sound):.1f} Hz")
            await listener.command("stop")
    assert not failures, "\n".join(failures)


def test_pages_have_what_they_need(stack):
    """yt-dlp starts where nothing can be written, and so does what YouTube's player needs, where it is there."""
    python = "/opt/yt-dlp/bin/python"
    program = "import ssl, sqlite3, yt_dlp, Cryptodome.Cipher.AES; yt_dlp.YoutubeDL({'quiet': True}); print('fine')"
    assert stack.execute("engine", python, "-I", "-c", program).stdout == "fine\n"
    if "deno" in os.environ.get("YT_DLP_EXTRAS", "default,deno"):
        command = "echo 'console.log(6*7)' | HOME=/proc /opt/yt-dlp/bin/deno run --no-prompt -"
        assert stack.execute("engine", "bash", "-c", command).stdout == "42\n"


async def test_with_keys_it_asks_for_tokens(stack, media):
    stack.up(ANTIPHON_MEDIA=media.root)
    await start(stack, "low")
    secret = "/var/lib/antiphon/token.secret"
    stack.compose("run", "--rm", "--no-deps", "router", "token", "secret", secret)
    stack.up(ANTIPHON_TOKEN_SECRET_FILE=secret, ANTIPHON_ANONYMOUS="false")
    path = f"{stack.url}/api/v1/sessions/low"
    assert (await request("GET", path)).status == 401
    made = ("/opt/antiphon/Router", "token", "create", "--session", "*", "--scope", "control", "--expires", "1d")
    token = stack.execute("router", *made, "--token-secret-file", secret).stdout.strip()
    answer = await request("GET", path, headers={"Authorization": f"Bearer {token}"})
    # What played is still known: the state is in a volume, which outlives the container.
    assert answer.status == 200 and answer.body["state"] == "streaming", answer
    stack.up(ANTIPHON_TOKEN_SECRET_FILE="", ANTIPHON_ANONYMOUS="true")


async def test_prometheus_finds_both_and_notices_when_one_is_gone(stack):
    async def query(expression: str) -> list:
        url = f"http://127.0.0.1:{stack.prometheus_port}/api/v1/query?query={expression}"
        try:
            answer = await request("GET", url)
        except (aiohttp.ClientError, OSError):
            return []
        return answer.body["data"]["result"] if answer.status == 200 else []

    async def until(expression: str, count: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(found := await query(expression)) != count:
            assert time.monotonic() < deadline, f"{expression}: {found}\n{stack.log('prometheus')}"
            await asyncio.sleep(1)

    stack.compose("--profile", "monitoring", "up", "-d", "--no-build", "--no-deps", "prometheus")
    await until("up==1", 2)
    await until("antiphon_engine_build_info", 1)
    assert (await query("antiphon_router_engine_connected"))[0]["value"][1] == "1"
    stack.compose("stop", "engine")
    await until('absent(up{job="antiphon-engine"}==1)', 1)
    await until("antiphon_router_engine_connected==0", 1)
    stack.compose("start", "engine")
    await until("up==1", 2)
    stack.compose("rm", "-sf", "prometheus")
    stack.wait_healthy("engine")


def test_the_bot_starts_as_it_is_packed(stack):
    if not (ROOT / "deploy/discord-bot/pyproject.toml").exists():
        pytest.skip("the bot is not there")
    done = stack.compose("--profile", "bot", "run", "--rm", "--no-deps", "bot", check=False)
    assert done.returncode == 64 and "there is no Discord token" in done.stdout + done.stderr, done
    imports = "import discord, nacl, antiphon_client, antiphon_client.discord, antiphon_bot.bot"
    program = f"{imports}; print(antiphon_bot.__name__)"
    done = stack.compose(
        *("--profile", "bot", "run", "--rm", "--no-deps", "-T"),
        *("--entrypoint", "/opt/antiphon-bot/bin/python", "bot", "-c", program),
    )
    assert "antiphon_bot" in done.stdout, done


async def test_the_cluster_plays_through_its_balancer_and_outlives_one_of_each(stack, media):
    stack.up(ANTIPHON_MEDIA=media.root)
    stack.up_cluster()
    for service in CLUSTER:
        found = stack.inspect(service)
        host = found["HostConfig"]
        assert host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"] and host["Memory"] > 0, service
        assert found["Config"]["User"] == "10001:10001", service
        assert bool(found["HostConfig"]["PortBindings"]) == (service == "balancer"), service
    # An address that is only there for its health check.
    assert '"status":"ok"' in stack.execute("nats-1", "/opt/antiphon/is-ready", "8222", "/healthz").stdout
    await asyncio.gather(start(stack, "low"), start(stack, "other"))
    await asyncio.gather(hears(stack, "low", 440, 880), hears(stack, "other", 440, 880))
    for service in ("nats-2", "engine-1", "router-1"):
        started = stack.crash(service)
        await asyncio.gather(hears(stack, "low", 440, 880), hears(stack, "other", 440, 880))
        stack.wait_healthy(service, since=started)
    stack.compose("--profile", "cluster", "rm", "-sf", *CLUSTER)


async def test_sigterm_ends_both_at_once_and_clean(stack, media):
    stack.up(ANTIPHON_MEDIA=media.root)
    await start(stack, "low")
    for service in ("router", "engine"):
        container = stack.container(service)
        begun = time.monotonic()
        run("docker", "stop", "--time", "30", container)
        seconds = time.monotonic() - begun
        status = run("docker", "inspect", "--format", "{{.State.ExitCode}} {{.State.OOMKilled}}", container).stdout
        assert status == "0 false\n" and seconds < 10, (
            f"{service}: {status} after {seconds:.1f} s\n{stack.log(service)}"
        )


def layers(image: str) -> list[tuple[str, float, str]]:
    """An image's layers, the base's first: what tells one from another, MB, and what made it."""
    form = "{{.CreatedAt}} {{.CreatedBy}}\t{{.Size}}\t{{.CreatedBy}}"
    done = run("docker", "history", "--no-trunc", "--human=false", "--format", form, image)
    rows = [line.split("\t") for line in reversed(done.stdout.splitlines())]
    return [(name, int(size) / 1e6, command) for name, size, command in rows]


def test_sizes(stack, capsys):
    """Says how large the images are, over the base that all share; what both share is counted once."""
    images = {name: layers(f"antiphon-{name}:{os.environ['ANTIPHON_VERSION']}") for name in OURS}
    base = layers(os.environ.get("DEBIAN_IMAGE", "debian:bookworm-slim"))
    found = {name: (mb, command) for image in images.values() for name, mb, command in image[len(base) :]}
    total = sum(mb for mb, _ in found.values())
    with capsys.disabled():
        print(f"\nover the base of {sum(mb for _, mb, _ in base):.0f} MB: {total:.0f} MB for both")
        for name, (mb, command) in found.items():
            if mb >= 0.5:
                users = " and ".join(image for image in images if any(name == other for other, _, _ in images[image]))
                print(f"{mb:6.1f} MB {users}: {command[:90]}")
    # Where they are, so that they do not grow unnoticed; docs/docker.md says what is in them.
    most = 310 if "deno" in os.environ.get("YT_DLP_EXTRAS", "default,deno") else 200
    assert total < most, found
