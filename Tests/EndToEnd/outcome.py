"""What comes of a file whatever is in it: sound, or an error that says what is wrong with it."""

from client import EngineConnection
from inbox import Event, Packet

#: All that may be wrong with a file.
CODES = {
    *("source_not_audio", "source_empty", "source_corrupt", "source_truncated", "source_too_large"),
    *("source_timeout", "source_unreachable", "source_crashes_decoder"),
}


async def outcome(engine: EngineConnection, session: str, url: str, packets: int, also: tuple[str, ...] = ()) -> str:
    """Plays to the end, or so many packets: `sound`, or the error's code.

    Raises: AssertionError for what may not come of a file: no answer, no clear error, silence.
    """

    def report(event: Event) -> str:
        assert event["code"] in CODES.union(also) and event["message"], f"no clear error: {event}"
        return event["code"]

    since = engine.mark()
    answer = await engine.wait_answer(await engine.send(type="play", session_id=session, url=url), since)
    if answer["type"] == "error":
        return report(answer)
    assert answer["type"] == "ready", answer

    news = engine.follow(since)
    heard, ended, codes = 0, False, []

    def is_over() -> bool:
        nonlocal heard, ended
        for item in news():
            if isinstance(item, Packet):
                heard += item.session == session
            elif item.get("session_id") == session:
                ended |= item["type"] == "ended"
                codes.extend([report(item)] if item["type"] == "error" else [])
        return ended or heard >= packets

    await engine.wait(is_over, f"sound or an error of {url}")
    if not ended:
        # It may come to its end meanwhile.
        await engine.ask(type="stop", session_id=session)
        return "sound"
    assert heard or codes, f"neither sound nor an error, but an end of {url}"
    return codes[0] if codes else "sound"
