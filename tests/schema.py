#!/usr/bin/env python3
"""Validates JSON files against a JSON schema, by the keywords that schemas/plan.schema.json uses: schema.py SCHEMA FILE...
An unknown keyword is an error, so that the schema cannot say what is not checked."""
import json
import os
import re
import sys

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
SILENT = {"$schema", "$defs", "title", "description"}


def is_type(value, name):
    if isinstance(name, list):
        return any(is_type(value, n) for n in name)
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def check_object(root, schema, value, path):
    missing = [k for k in schema.get("required", []) if k not in value]
    if missing:
        raise ValueError(f"{path}: lacks {missing[0]!r}")
    others = schema.get("additionalProperties", {})
    for key, item in value.items():
        if key in schema.get("properties", {}):
            check(root, schema["properties"][key], item, f"{path}.{key}")
        elif others is False:
            raise ValueError(f"{path}: has {key!r}, which the schema does not know")
        else:
            check(root, others, item, f"{path}.{key}")


def check_array(root, schema, value, path):
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        raise ValueError(f"{path}: has {len(value)} items")
    for i, item in enumerate(value):
        check(root, schema.get("items", {}), item, f"{path}[{i}]")


LIMITS = {
    "minimum": lambda v, x: v >= x, "exclusiveMinimum": lambda v, x: v > x, "pattern": lambda v, x: re.search(x, v),
    "enum": lambda v, x: v in x, "const": lambda v, x: v == x, "type": is_type,
}
STRUCTURE = {"required", "properties", "additionalProperties", "items", "minItems", "maxItems", "$ref"}


def check(root, schema, value, path):
    if schema.get("$ref", "#")[0] != "#":  # a file next to the schema
        other = read(os.path.join(os.path.dirname(sys.argv[1]), schema["$ref"]))
        check(other, other, value, path)
    elif "$ref" in schema:
        check(root, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, path)
    for key, limit in schema.items():
        if key in LIMITS and not LIMITS[key](value, limit):
            raise ValueError(f"{path}: is {value!r:.60}, against {key} {limit!r}")
        if key not in LIMITS and key not in STRUCTURE and key not in SILENT:
            raise ValueError(f"{path}: the schema says {key!r}, which is not checked")
    if isinstance(value, dict):
        check_object(root, schema, value, path)
    if isinstance(value, list):
        check_array(root, schema, value, path)


def read(path):
    with open(path) as f:
        return json.load(f)


def main():
    _, first, *names = sys.argv
    if not names:
        sys.exit("no plan.json to check")
    schema = read(first)
    for name in names:
        plan = read(name)
        try:
            check(schema, schema, plan, name)
        except ValueError as found:
            sys.exit(str(found))


main()
