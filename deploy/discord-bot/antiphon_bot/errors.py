"""Refusals and errors in words for the people in a server."""

from antiphon_client import AntiphonError

from .text import safe

#: The longest part of somebody else's words in a reply.
_CHARACTERS = 400

#: Where the Router's own words are for programmers, or know nothing of the bot.
_WORDS = {
    "connection_lost": "I cannot reach the music server right now. I keep trying; what played goes on by itself then.",
    "timeout": "The music server does not answer. Try again in a moment.",
    "closed": "I am being restarted. Try again in a moment.",
    "engine_unavailable": "The music server is being restarted. What played goes on by itself in a moment.",
    "router_unavailable": "The music moves to another server. Try again in a moment.",
    "no_such_session": "Nothing is playing. Start something with /play.",
    "superseded": "Somebody else was faster: another command took the place of yours.",
    "stale_home": "The music moves to another server. Try again in a moment.",
    "unauthorized": "The music server does not accept my token. My operator has to give me another.",
    "forbidden": "My token for the music server does not allow that. My operator has to give me another.",
    "token_unavailable": "I cannot read my token for the music server. My operator has to look at my log.",
}

#: What to do, in place of the Router's own hints for programmers.
_HINTS = {
    "source_not_found": "Check the address, or choose from what /play suggests.",
    "extractor_unavailable": "Files and direct links still play. My operator has to install yt-dlp.",
    "extraction_failed": "Try again, or another link.",
    **dict.fromkeys(
        ("source_needs_sign_in", "source_age_restricted", "source_private", "source_geo_blocked"),
        "Take it from another place. My operator can give the music server access.",
    ),
    "source_rate_limited": "Try again in an hour, or take it from another place.",
}


class RequestError(Exception):
    """What the bot refuses itself; its text is for people."""


def error_words(error: AntiphonError) -> str:
    """What was wrong and what to do, safe to be shown."""
    if words := _WORDS.get(error.code):
        return words
    hint = _HINTS.get(error.code, error.hint)
    return " ".join(sentence(part) for part in (error.message, hint) if part) or f"It did not work: {error.code}."


def sentence(text: str) -> str:
    """Safe, with a capital and a full stop."""
    text = safe(text, _CHARACTERS)
    text = text if text.startswith(("media:", "http")) else text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…")) else text + "."
