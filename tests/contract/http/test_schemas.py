# SPDX-License-Identifier: Apache-2.0
"""Jobs that ask for validation: their args are held against the schema of their type."""

import unittest

from gateways import OnGateway


class Schemas(OnGateway):
    def register(self, schema, **members):
        body = {"uri": "urn:ojs:schema:" + self.queue, "type": self.type, "schema": schema} | members
        self.call("POST", "schemas", body, expect=201)

    @property
    def type(self):
        return "checked." + self.queue.replace("-", "_")

    def asks(self, args, expect, validate=True, **members):
        return self.enqueue(type=self.type, args=args, meta={"ojs_validate": validate}, expect=expect, **members)

    def test_args_that_do_not_fit_are_refused_and_nothing_is_stored(self):
        self.register({"type": "array", "minItems": 1, "items": {"type": "object", "required": ["to"],
                                                                  "properties": {"to": {"type": "string", "pattern": "@"}},
                                                                  "additionalProperties": False}})
        for args in ([], [1], [{}], [{"to": 1}], [{"to": "nobody"}], [{"to": "a@b", "cc": 1}]):
            error = self.asks(args, expect=422).error
            self.assertEqual((error["code"], error["retryable"], error["details"]["schema"]),
                             ("validation_error", False, "urn:ojs:schema:" + self.queue), args)
        self.assertEqual(self.call("GET", f"admin/jobs?queue={self.queue}", expect=200).json["items"], [])
        self.asks([{"to": "a@b"}], expect=201)
        self.asks([], validate=False, expect=201)
        self.enqueue(type=self.type, args=[])

    def test_a_job_that_asks_without_a_schema_cannot_be_called_valid(self):
        error = self.asks([], expect=422).error
        self.assertEqual((error["code"], error["details"]["job_type"]), ("validation_error", self.type))

    def test_one_job_of_a_batch_refuses_all(self):
        self.register({"maxItems": 0})
        jobs = [{"type": self.type, "args": args, "queue": self.queue, "meta": {"ojs_validate": True}} for args in ([], [1])]
        self.assertEqual(self.call("POST", "jobs/batch", {"jobs": jobs}, expect=422).error["details"]["index"], 1)

    def test_the_schema_that_the_job_names_or_the_latest_version(self):
        self.register({"const": [1]}, uri="urn:test:v1", version=1)
        self.register({"const": [2]}, uri="urn:test:v2", version=2)
        self.asks([2], expect=201)
        self.asks([1], expect=422)
        self.asks([1], schema="urn:test:v1", expect=201)

    def test_what_each_keyword_refuses(self):
        cases = (({"type": ["array", "null"]}, [], None), ({"items": {"type": "integer"}}, [1, 2.0], [1.5]),
                 ({"enum": [[1], [2]]}, [2], [3]), ({"maxItems": 1}, [1], [1, 2]), ({"uniqueItems": True}, [1, 2], [1, 1.0]),
                 ({"prefixItems": [{"minimum": 2}, {"exclusiveMaximum": 2}]}, [2, 1], [2, 2]),
                 ({"prefixItems": [True], "items": False}, [1], [1, 2]),
                 ({"items": {"minLength": 2, "maxLength": 2}}, ["äö"], ["äöü"]), ({"items": {"multipleOf": 0.1}}, [0.3], [0.35]),
                 ({"items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"maximum": 1}}}, [1], [2]),
                 ({"allOf": [{"minItems": 1}, {"maxItems": 1}]}, [1], []), ({"anyOf": [{"const": [1]}, {"const": [2]}]}, [1], [3]),
                 ({"oneOf": [{"minItems": 1}, {"minItems": 2}]}, [1], [1, 2]), ({"not": {"minItems": 1}}, [], [1]),
                 ({"if": {"minItems": 1}, "then": {"items": {"const": 1}}, "else": False}, [1], []),
                 ({"items": {"minProperties": 1, "maxProperties": 1}}, [{"a": 1}], [{}]),
                 ({"items": {"dependentRequired": {"a": ["b"]}}}, [{"b": 1}], [{"a": 1}]),
                 ({"items": {"dependentSchemas": {"a": {"required": ["b"]}}}}, [{"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
                 ({"items": {"propertyNames": {"pattern": "^[a-z]+$"}}}, [{"a": 1}, {}], [{"A": 1}]),
                 ({"items": {"patternProperties": {"^n_": {"type": "number"}}}}, [{"n_a": 1, "b": "x"}], [{"n_a": "x"}]),
                 ({"items": {"properties": {"a": True}, "patternProperties": {"^x-": True}, "additionalProperties": False}},
                  [{"a": 1, "x-b": 2}], [{"a": 1, "c": 2}]),
                 ({"contains": {"type": "string"}}, [1, "a"], [1, 2]), ({"contains": {}}, [1], []),
                 ({"contains": {"const": 1}, "minContains": 2, "maxContains": 2}, [1, 0, 1], [1, 0]),
                 ({"contains": {"const": 1}, "maxContains": 1}, [1, 2], [1, 1]), ({"contains": False, "minContains": 0}, [1], None),
                 ({"items": {"exclusiveMinimum": 2}}, [2.5], [2]), ({"items": {"$ref": "#/$defs/a~1b"}, "$defs": {"a/b": {"const": 1}}}, [1], [2]),
                 ({"$ref": "#"}, None, []), ({"items": {"format": "email", "x-note": 1}}, ["none"], None))
        for schema, good, bad in cases:
            with self.subTest(schema):
                self.register(schema)
                if good is not None:
                    self.asks(good, expect=201)
                if bad is not None:
                    self.asks(bad, expect=422)

    def test_a_schema_of_which_a_part_would_not_be_checked_is_refused(self):
        for schema in ({"unevaluatedItems": False}, {"items": {"unevaluatedProperties": False}}, {"not": {"$dynamicRef": "#a"}},
                       {"additionalItems": False}, {"dependencies": {"a": ["b"]}}, {"$ref": "https://example.org/schema"}, {"$ref": "#anchor"},
                       {"items": {"$id": "urn:b"}}, {"$ref": "#/x/y", "x": {"y": {"disallow": "string"}}}):
            body = {"uri": "urn:unchecked:" + self.queue, "type": self.type, "schema": schema}
            error = self.call("POST", "schemas", body, expect=422).error
            self.assertEqual(error["code"], "unsupported", schema)
            self.assertIn("schema_error", error["details"], schema)
        self.call("GET", "schemas/urn:unchecked:" + self.queue, expect=404)
        recursive = {"$id": "urn:a", "$ref": "#/$defs/tree", "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}
        self.register(recursive)
        self.asks([[], [[]]], expect=201)
        self.asks([[], [1]], expect=422)

    def test_a_check_that_would_take_for_ever_is_given_up(self):
        parts = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(30)}
        self.register({"$defs": {**parts, "d30": {"minItems": 2}}, "$ref": "#/$defs/d0"})
        self.assertIn("takes too long to be checked", self.asks([1], expect=422).error["message"])
        self.asks([1, 2], expect=201)  # the first of each fits
        # What could not be checked is no reason for its opposite.
        self.register({"not": {"$defs": parts, "$ref": "#/$defs/d0"}, "$defs": {**parts, "d30": {"minItems": 2}}})
        self.assertIn("takes too long to be checked", self.asks([1], expect=422).error["message"])

    def test_what_is_no_schema_is_refused(self):
        draft = "https://json-schema.org/draft/2020-12/schema"
        for good in ({"$schema": draft}, {"$schema": draft + "#", "type": ["array", "null"], "required": ["a"]},
                     {"properties": {"a": {"type": "integer"}, "b": True}, "items": False}):
            self.register(good)
        for bad in ({"type": "nonsense"}, {"$schema": "http://json-schema.org/draft-07/schema#"}, {"required": "a"}, {"type": 1},
                    {"items": {"type": "text"}}, {"properties": []}, {"properties": {"a": 1}}, {"anyOf": [{"type": "int"}]}, {"allOf": {}},
                    {"minItems": "1"}, {"maxItems": -1}, {"items": {"minLength": 1.5}}, {"multipleOf": 0}, {"exclusiveMinimum": True},
                    {"uniqueItems": 1}, {"enum": 1}, {"pattern": "("}, {"patternProperties": {"(": True}}, {"propertyNames": 1},
                    {"contains": []}, {"dependentRequired": {"a": "b"}}, {"dependentSchemas": []}, {"items": [{}]}, {"required": [1]},
                    {"$ref": 1}, {"$ref": "#/$defs/missing"}, {"minContains": None}):
            body = {"uri": "urn:bad:" + self.queue, "type": self.type, "schema": bad}
            self.assertIn("schema_error", self.call("POST", "schemas", body, expect=400).error["details"], bad)
        self.call("GET", "schemas/urn:bad:" + self.queue, expect=404)


if __name__ == "__main__":
    unittest.main()
