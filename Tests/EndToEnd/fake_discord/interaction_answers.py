"""The addresses at which the bot answers interactions: the callback, and the webhook of each one's token."""

from typing import TYPE_CHECKING

from aiohttp import web

from .api import RequestError, body_of, invalid, json_answer, not_found
from .command_rules import broken_choice_rules
from .guilds import Payload
from .interaction_payloads import AUTOCOMPLETE, COMPONENT
from .interactions import Interaction
from .messages import EPHEMERAL, LOADING, Message
from .reply import KINDS

if TYPE_CHECKING:
    from .server import FakeDiscord

#: How long Discord waits for the first answer.
ANSWER_LIMIT_SECONDS = 3.0


class InteractionAnswers:
    def __init__(self, fake: "FakeDiscord") -> None:
        self._fake = fake

    def routes(self) -> list[web.RouteDef]:
        webhook = "/webhooks/{application}/{token}"
        return [
            web.post("/interactions/{interaction}/{token}/callback", self._callback),
            web.post(webhook, self._follow_up),
            web.get(webhook + "/messages/{message}", self._get),
            web.patch(webhook + "/messages/{message}", self._edit),
            web.delete(webhook + "/messages/{message}", self._delete),
        ]

    def _interaction(self, request: web.Request) -> Interaction:
        interaction = self._fake.interactions.by_token.get(request.match_info["token"])
        if interaction is None:
            raise not_found(10015, "Webhook")
        return interaction

    async def _callback(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        interaction = self._interaction(request)
        reply, kind = interaction.reply, body["type"]
        if reply.kind is not None:
            raise RequestError(400, 40060, "Interaction has already been acknowledged.", f"answered {reply} twice")
        if reply.age_seconds > ANSWER_LIMIT_SECONDS:
            raise RequestError(404, 10062, "Unknown interaction", f"answered {reply} after {reply.age_seconds:.1f} s")
        self._check_kind(interaction, kind)
        self._take(interaction, kind, body.get("data") or {})
        reply.seconds, reply.kind = reply.age_seconds, KINDS[kind]
        if request.query.get("with_response") in ("1", "true"):
            return json_answer(_callback_payload(interaction, kind))
        return web.Response(status=204)

    def _check_kind(self, interaction: Interaction, kind: int) -> None:
        allowed = {AUTOCOMPLETE: (8,), COMPONENT: (4, 5, 6, 7, 9)}.get(interaction.type, (4, 5, 9))
        if kind not in allowed:
            raise invalid([f"an interaction of type {interaction.type} answered with type {kind}, not {allowed}"])

    def _take(self, interaction: Interaction, kind: int, data: Payload) -> None:
        reply = interaction.reply
        if KINDS[kind] == "autocomplete":
            if broken := list(broken_choice_rules(data["choices"], "autocomplete")):
                raise invalid(broken)
            reply.choices = data["choices"]
        elif KINDS[kind] == "modal":
            reply.modal = data
        elif KINDS[kind] == "update":
            assert reply.message is not None
            reply.message.change(data)
        elif KINDS[kind] in ("message", "deferred"):
            message = self._new_message(interaction, data)
            if KINDS[kind] == "deferred":
                message.flags |= LOADING
            else:
                message.change(data)
            reply.message = self._fake.messages.add(message)

    def _new_message(self, interaction: Interaction, data: Payload) -> Message:
        return Message(interaction.channel, self._fake.bot, data.get("flags", 0) & EPHEMERAL)

    async def _follow_up(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        interaction = self._acknowledged(request)
        reply = interaction.reply
        if reply.message is not None and reply.message.loading:
            # The first one after "thinking…" takes its place, whatever it says of being ephemeral.
            message = reply.message
            message.change(body)
        else:
            message = self._new_message(interaction, body)
            message.change(body)
            reply.followups.append(self._fake.messages.add(message))
        return json_answer(message.payload())

    def _acknowledged(self, request: web.Request) -> Interaction:
        interaction = self._interaction(request)
        if interaction.reply.kind is None:
            raise RequestError(404, 10015, "Unknown Webhook", f"went on before the first answer: {interaction.reply}")
        return interaction

    def _message(self, request: web.Request) -> Message:
        reply = self._acknowledged(request).reply
        name = request.match_info["message"]
        for message in (reply.message, *reply.followups):
            named = message is not None and name in ("@original", str(message.id))
            if message is not None and named and not message.deleted:
                return message
            if name == "@original":
                break
        raise not_found(10008, "Message")

    async def _get(self, request: web.Request) -> web.Response:
        return json_answer(self._message(request).payload())

    async def _edit(self, request: web.Request) -> web.Response:
        message = self._message(request)
        message.change(await body_of(request))
        return json_answer(message.payload())

    async def _delete(self, request: web.Request) -> web.Response:
        message = self._message(request)
        message.deleted = True
        message.flags &= ~LOADING
        return web.Response(status=204)


def _callback_payload(interaction: Interaction, kind: int) -> Payload:
    message = interaction.reply.message
    about: Payload = {"id": str(interaction.id), "type": interaction.type}
    resource: Payload = {"type": kind}
    if message is not None:
        about |= {
            "response_message_id": str(message.id),
            "response_message_loading": message.loading,
            "response_message_ephemeral": message.ephemeral,
        }
        resource["message"] = message.payload()
    return {"interaction": about, "resource": resource}
