"""Discord's rules for messages: how long their parts may be, and how components are put together."""

from collections.abc import Iterator
from typing import Any

FLAG_COMPONENTS_V2 = 1 << 15

MAX_CONTENT = 2_000
MAX_EMBEDS = 10
MAX_EMBED_CHARACTERS = 6_000
MAX_FIELDS = 25
MAX_ROWS = 5
MAX_BUTTONS = 5
MAX_SELECT_OPTIONS = 25
MAX_COMPONENTS_V2 = 40
MAX_TEXT_V2 = 4_000

#: The longest texts of an embed, by the names on the way to them.
_EMBED_TEXTS = {
    ("title",): 256,
    ("description",): 4_096,
    ("footer", "text"): 2_048,
    ("author", "name"): 256,
}
_EMBED_ADDRESSES = (("url",), ("image", "url"), ("thumbnail", "url"), ("author", "url"), ("author", "icon_url"))

ROW, BUTTON, STRING_SELECT, TEXT_DISPLAY = 1, 2, 3, 10
SELECTS = (STRING_SELECT, 5, 6, 7, 8)
_LINK_STYLE = 5


def broken_message_rules(message: dict[str, Any]) -> list[str]:
    """Every rule that a message breaks, in words: its content, embeds, components and flags."""
    content, embeds = message.get("content") or "", message.get("embeds") or []
    components = message.get("components") or []
    broken = []
    if len(content) > MAX_CONTENT:
        broken.append(f"content of {len(content)} characters, over {MAX_CONTENT}")
    if not (content or embeds or components or message.get("attachments")):
        broken.append("an empty message")
    broken += _broken_embeds(embeds)
    if message.get("flags", 0) & FLAG_COMPONENTS_V2:
        if content or embeds:
            broken.append("content or embeds beside components of version 2")
        broken += _broken_v2(components)
    else:
        broken += _broken_rows(components)
    custom_ids = [part["custom_id"] for part in every_component(components) if "custom_id" in part]
    broken += [f"two components have the custom_id {name!r}" for name in custom_ids if custom_ids.count(name) > 1]
    for part in every_component(components):
        broken += _broken_component(part)
    return broken


def embed_texts(embed: dict[str, Any]) -> list[str]:
    """All texts of an embed that count as its characters."""
    texts = [text for path in _EMBED_TEXTS if (text := _at(embed, path))]
    return texts + [text for field in embed.get("fields") or [] for text in (field["name"], field["value"])]


def every_component(components: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The components and all that is inside them."""
    for part in components:
        yield part
        yield from every_component(part.get("components") or [])
        yield from every_component([part["accessory"]] if part.get("accessory") else [])


def _at(node: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = node
    for name in path:
        value = (value or {}).get(name)
    return value


def _broken_embeds(embeds: list[dict[str, Any]]) -> Iterator[str]:
    if len(embeds) > MAX_EMBEDS:
        yield f"{len(embeds)} embeds, over {MAX_EMBEDS}"
    if (count := sum(len(text) for embed in embeds for text in embed_texts(embed))) > MAX_EMBED_CHARACTERS:
        yield f"embeds of {count} characters in all, over {MAX_EMBED_CHARACTERS}"
    for embed in embeds:
        for path, limit in _EMBED_TEXTS.items():
            if len(text := _at(embed, path) or "") > limit:
                yield f"an embed's {'.'.join(path)} of {len(text)} characters, over {limit}"
        for path in _EMBED_ADDRESSES:
            if not (_at(embed, path) or "https://").startswith(("https://", "http://", "attachment://")):
                yield f"an embed's {'.'.join(path)} is {_at(embed, path)!r}, no web address"
        fields = embed.get("fields") or []
        if len(fields) > MAX_FIELDS:
            yield f"an embed of {len(fields)} fields, over {MAX_FIELDS}"
        for field in fields:
            if not (1 <= len(field["name"]) <= 256 and 1 <= len(field["value"]) <= 1_024):
                yield f"a field of {len(field['name'])} and {len(field['value'])} characters, not 1 to 256 and 1024"


def _broken_rows(components: list[dict[str, Any]]) -> Iterator[str]:
    if len(components) > MAX_ROWS:
        yield f"{len(components)} rows of components, over {MAX_ROWS}"
    for row in components:
        if row["type"] != ROW:
            yield f"a component of type {row['type']} outside a row"
        elif len(row["components"]) > MAX_BUTTONS or not row["components"]:
            yield f"a row of {len(row['components'])} components, not 1 to {MAX_BUTTONS}"
        elif len(row["components"]) > 1 and any(part["type"] in SELECTS for part in row["components"]):
            yield "a select that is not alone in its row"


def _broken_v2(components: list[dict[str, Any]]) -> Iterator[str]:
    parts = list(every_component(components))
    if len(parts) > MAX_COMPONENTS_V2:
        yield f"{len(parts)} components, over {MAX_COMPONENTS_V2}"
    if (count := sum(len(part["content"]) for part in parts if part["type"] == TEXT_DISPLAY)) > MAX_TEXT_V2:
        yield f"components with {count} characters of text, over {MAX_TEXT_V2}"


def _broken_component(part: dict[str, Any]) -> Iterator[str]:
    if part["type"] == BUTTON:
        if not part.get("label") and not part.get("emoji"):
            yield "a button with neither label nor emoji"
        if len(part.get("label") or "") > 80:
            yield f"a button's label of {len(part['label'])} characters, over 80"
        if ("url" in part) != (part["style"] == _LINK_STYLE) or ("custom_id" in part) == ("url" in part):
            yield f"a button of style {part['style']} with {sorted(part)}"
    if not 1 <= len(part.get("custom_id", "-")) <= 100:
        yield f"a custom_id of {len(part['custom_id'])} characters, not 1 to 100"
    if len(part.get("placeholder") or "") > 150:
        yield f"a placeholder of {len(part['placeholder'])} characters, over 150"
    if part["type"] == STRING_SELECT:
        yield from _broken_options(part.get("options") or [])


def _broken_options(options: list[dict[str, Any]]) -> Iterator[str]:
    if not 1 <= len(options) <= MAX_SELECT_OPTIONS:
        yield f"a select of {len(options)} options, not 1 to {MAX_SELECT_OPTIONS}"
    values = [option["value"] for option in options]
    if len(set(values)) != len(values):
        yield "a select with one value twice"
    for option in options:
        for name, least in (("label", 1), ("value", 1), ("description", 0)):
            if not least <= len(option.get(name) or "") <= 100:
                yield f"a select option's {name} of {len(option.get(name) or '')} characters, not {least} to 100"
