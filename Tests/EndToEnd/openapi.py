"""The description of the API, and whether an answer is as it says."""

import copy
from typing import Any

import jsonschema
import yaml

from processes import ROOT

FILE = ROOT / "Sources" / "Router" / "API" / "openapi.yaml"

METHODS = ("get", "head", "post", "put", "delete", "patch")


def load() -> dict:
    return yaml.safe_load(FILE.read_text())


def operations(document: dict) -> dict[str, tuple[str, str, dict]]:
    """By operation ID: method, path, operation."""
    return {
        operation["operationId"]: (method.upper(), path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in METHODS
    }


def closed(document: dict) -> dict:
    """The same, but an answer may have no field that is not described: a client ignores those, a test must not."""
    document = copy.deepcopy(document)
    schemas = document["components"]["schemas"]
    asked = _asked(document)
    for name, schema in schemas.items():
        if name not in asked:
            _close_inside(schema)
    answers = [operation.get("responses", {}) for _, _, operation in operations(document).values()]
    for response in [response for each in answers for response in each.values()] + list(
        document["components"]["responses"].values()
    ):
        for media in response.get("content", {}).values():
            if "schema" in media:
                _close(media["schema"])
    return document


def _asked(document: dict) -> set[str]:
    """The names of schemas of requests."""
    found: set[str] = set()

    def visit(node: Any) -> None:
        if isinstance(node, dict):
            name = node.get("$ref", "").rpartition("/")[2] if isinstance(node.get("$ref"), str) else ""
            if name in document["components"]["schemas"] and name not in found:
                found.add(name)
                visit(document["components"]["schemas"][name])
            for value in node.values():
                visit(value)
        elif isinstance(node, list):
            for value in node:
                visit(value)

    visit([operation.get("requestBody") for _, _, operation in operations(document).values()])
    visit(document["components"]["requestBodies"])
    return found


def _close(schema: dict) -> None:
    _close_inside(schema)
    if schema.keys() & {"$ref", "allOf", "properties"}:
        schema["unevaluatedProperties"] = False


def _close_inside(schema: dict) -> None:
    for value in schema.get("properties", {}).values():
        _close(value)
    if "items" in schema:
        _close(schema["items"])
    for part in ("allOf", "oneOf", "anyOf"):
        for value in schema.get(part, []):
            _close_inside(value)


class Description:
    """Checks real answers and messages."""

    def __init__(self) -> None:
        self.document = load()
        self._closed = closed(self.document)
        self.operations = operations(self._closed)

    def check_schema(self, name: str, value: Any) -> None:
        self._check({"$ref": f"#/components/schemas/{name}", "unevaluatedProperties": False}, value, name)

    def check_event(self, event: dict) -> None:
        mapping = self.document["components"]["schemas"]["Event"]["discriminator"]["mapping"]
        assert event["type"] in mapping, f"the event type {event['type']!r} is not described: {event}"
        self.check_schema(mapping[event["type"]].rpartition("/")[2], event)

    def check_answer(self, operation: str, status: int, body: Any) -> None:
        responses = self.operations[operation][2]["responses"]
        assert str(status) in responses, f"{operation} does not describe the status {status}: {body}"
        response = responses[str(status)]
        if "$ref" in response:
            response = self._closed["components"]["responses"][response["$ref"].rpartition("/")[2]]
        self._check(response["content"]["application/json"]["schema"], body, f"{operation} {status}")

    def _check(self, schema: dict, value: Any, what: str) -> None:
        validator = jsonschema.Draft202012Validator(schema | {"components": self._closed["components"]})
        wrong = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]
        assert not wrong, f"{what} is not as described: {wrong} in {value}"
