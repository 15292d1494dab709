# SPDX-License-Identifier: Apache-2.0
"""The gateway's OpenAPI description, held against what is sent. In a reply a member that it does not name counts as wrong,
unless it says that there may be others; so does a body where it has none."""

import json
import re

import jsonschema

JSON = "application/openjobspec+json"


def closed(schema):
    """The same, without members that are not named."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(each) for name, each in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made


def each_once(pairs):
    """An object, whose members must have different names."""
    made = dict(pairs)
    assert len(made) == len(pairs), f"a member is there twice: {[name for name, _ in pairs]}"
    return made


class Description:
    def __init__(self, text):
        self.paths = text["paths"]
        self._patterns = [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), path) for path in self.paths]
        self._patterns.sort(key=lambda pattern: pattern[1].count("{"))
        self._components, self._closed = text["components"], closed(text["components"])

    def operation(self, method, target):
        """Path and operation of a request; None when it is not of the API."""
        asked = target.partition("?")[0]
        for pattern, path in self._patterns:
            if pattern.fullmatch(asked) and method.lower() in self.paths[path]:
                return path, self.paths[path][method.lower()]
        return None

    def problems(self, method, target, sent, status, media_type, received):
        """What is not as described, of a request and its reply; `sent` and `received` are bytes or None."""
        found = self.operation(method, target)
        if found is None:
            return []
        path, operation = found
        where, wrong = f"{method} {path}", []
        if sent and 200 <= status < 300 and "requestBody" in operation:
            schema = operation["requestBody"]["content"][JSON]["schema"]
            wrong += self._check(f"{where}, request", schema, self._components, sent)
        responses = operation["responses"]
        described = responses.get(str(status)) or responses.get(f"{status // 100}XX") or responses["default"]
        content = described.get("content", {})
        kind = (media_type or "").partition(";")[0]
        if not content or kind not in content:
            return wrong + ([f"{where}, {status}: {kind} is not described"] if received or content else [])
        if "json" in kind:
            wrong += self._check(f"{where}, {status}", content[kind]["schema"], self._closed, received)
        return wrong

    def _check(self, where, schema, components, text):
        validator = jsonschema.Draft202012Validator({**schema, "components": components})
        errors = validator.iter_errors(json.loads(text, object_pairs_hook=each_once))
        return [f"{where}: {'.'.join(map(str, each.absolute_path))}: {each.message[:300]}" for each in self._deepest(errors)]

    def _deepest(self, errors):
        for each in errors:
            yield from self._deepest(each.context) if each.context else [each]
