#!/usr/bin/env python3
"""Random schemas of the subset, by the grammars that they become: schemas.py MATCH ROUNDS SEED. Every text of a grammar parses and is valid by
jsonschema; every value that is made to be valid is a text of it."""
import json
import random
import subprocess
import sys
import tempfile

import jsonschema

MATCH, ROUNDS, SEED = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
NAMES = ["a", "b", "ab", "name", "é", "x y", 'q"', "a/b", "k\\"]
FORMATS = ["date", "time", "date-time", "uuid", "ipv4", "ipv6", "email", "hostname"]
PATTERNS = {"^[a-c]{2,4}$": "abca", r"^\d{3}-x?$": "123-x", r"\w+@\w+": "..a@b!", '^(a|"\\\\)+$': 'a"\\', "^[^a-y]$": "é"}


def make(rng, depth, refs):
    """A schema, and a function that makes a valid value."""
    kinds = ["string", "integer", "number", "boolean", "null", "enum", "const", "pattern", "format", "any"]
    kinds += ["object", "object", "array", "array", "anyOf", "oneOf", "allOf", "tuple", "open", "types"] * (depth > 0)
    kinds += ["ref"] * bool(refs)
    return globals()["make_" + rng.choice(kinds)](rng, depth, refs)


def make_string(rng, depth, refs):
    least = rng.choice([0, 0, 2])
    schema = {"type": "string"}
    if least:
        schema["minLength"] = least
    if rng.random() < .5:
        schema["maxLength"] = least + rng.randrange(5)
    return schema, lambda: "".join(rng.choice('abé"\\\t😀 ') for _ in range(schema.get("minLength", 0) + (schema.get("maxLength") != least)))


def limits(rng, schema, whole):
    least, most = sorted([rng.randrange(-2000, 2000), rng.randrange(-2000, 2000)])
    low, high = rng.random() < .6, rng.random() < .6
    above, below = rng.random() < .3, rng.random() < .3
    if most - least < 3:
        most += 3
    if low:
        schema["exclusiveMinimum" if above else "minimum"] = least
    if high:
        schema["exclusiveMaximum" if below else "maximum"] = most
    return (least + 1, most - 1)


def make_integer(rng, depth, refs):
    schema = {"type": "integer"}
    least, most = limits(rng, schema, True)
    return schema, lambda: rng.randint(least, most)


def make_number(rng, depth, refs):
    schema = {"type": "number"}
    least, most = limits(rng, schema, False)
    return schema, lambda: rng.choice([rng.randint(least, most), round(rng.uniform(least, most), 3)])


def make_boolean(rng, depth, refs):
    return {"type": "boolean"}, lambda: rng.random() < .5


def make_null(rng, depth, refs):
    return {"type": "null"}, lambda: None


def make_any(rng, depth, refs):
    return rng.choice([True, {}, {"title": "t"}]), lambda: rng.choice([None, 1, "x", [1, {"a": []}], {"b": -0.5}])


def make_enum(rng, depth, refs):
    values = rng.sample(["x", "xy", "y", 1, 2.5, None, True, [1, "z"], {"k": "v"}, "é\n"], 4)
    return {"enum": values}, lambda: rng.choice(values)


def make_const(rng, depth, refs):
    value = rng.choice(["x", 7, [None], {"a": 1}])
    return {"const": value, "description": "d"}, lambda: value


def make_pattern(rng, depth, refs):
    pattern = rng.choice(list(PATTERNS))
    return {"type": "string", "pattern": pattern}, lambda: PATTERNS[pattern]


def make_format(rng, depth, refs):
    made = {"date": "2024-02-28", "time": "10:00:59.5Z", "date-time": "1999-12-31T00:00:00+01:30", "uuid": "0" * 8 + "-aaaa-bbbb-cccc-" + "1" * 12,
            "ipv4": "10.0.255.1", "ipv6": "1:2:3:4:5:6:7:8", "email": "a.b@c-d.org", "hostname": "a.example"}
    name = rng.choice(FORMATS)
    return {"type": "string", "format": name}, lambda: made[name]


def make_object(rng, depth, refs):
    names = rng.sample(NAMES, rng.randrange(5))
    parts = {n: make(rng, depth - 1, refs) for n in names}
    required = [n for n in names if rng.random() < .5]
    schema = {"type": "object", "properties": {n: p[0] for n, p in parts.items()}, "required": required}
    if rng.random() < .5:
        schema["additionalProperties"] = False
    return schema, lambda: {n: parts[n][1]() for n in names if n in required or rng.random() < .5}


def make_open(rng, depth, refs):
    schema, value = make_object(rng, depth, refs)
    other = make(rng, 0, [])
    schema["additionalProperties"] = other[0]
    return schema, lambda: dict(value(), **{"an" + n: other[1]() for n in rng.sample("ABC", rng.randrange(3))})


def make_array(rng, depth, refs):
    item = make(rng, depth - 1, refs)
    least = rng.randrange(3)
    schema = {"type": "array", "items": item[0], "minItems": least}
    if rng.random() < .5:
        schema["maxItems"] = least + 1
    return schema, lambda: [item[1]() for _ in range(least + rng.randrange(2))]


def make_tuple(rng, depth, refs):
    parts = [make(rng, depth - 1, refs) for _ in range(rng.randrange(1, 4))]
    schema = {"type": "array", "prefixItems": [p[0] for p in parts], "items": False, "minItems": len(parts)}
    return schema, lambda: [p[1]() for p in parts]


def make_types(rng, depth, refs):
    return {"type": ["string", "null", "integer"], "maxLength": 3, "minimum": 5}, lambda: rng.choice(["abc", None, 5])


def make_anyOf(rng, depth, refs):
    parts = [make(rng, depth - 1, refs) for _ in range(rng.randrange(1, 4))]
    return {"anyOf": [p[0] for p in parts], "default": 3}, lambda: rng.choice(parts)[1]()


def make_oneOf(rng, depth, refs):
    parts = [make_object(rng, depth - 1, refs) for _ in range(2)]
    for tag, part in zip("pq", parts):
        part[0]["properties"] = dict({"tag": {"const": tag}}, **part[0]["properties"])
        part[0]["required"].append("tag")
    return {"oneOf": [p[0] for p in parts]}, lambda: (lambda i: dict({"tag": "pq"[i]}, **parts[i][1]()))(rng.randrange(2))


def make_allOf(rng, depth, refs):
    schema, value = make(rng, depth - 1, refs)
    return {"allOf": [schema], "title": "t"}, value


def make_ref(rng, depth, refs):
    name, value = rng.choice(refs)
    return {"$ref": "#/$defs/" + name}, value


def match(schema, *arguments, lines=()):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(schema, f)
        f.flush()
        done = subprocess.run([MATCH, "schema", f.name, *map(str, arguments)], input="".join(t + "\n" for t in lines), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{json.dumps(schema)}: {done.stderr}")
    return done.stdout.split("\n")[:-1]


def main():
    texts = values = 0
    for i in range(ROUNDS):
        rng = random.Random(f"{SEED} {i}")
        part = make(rng, 1, [])
        schema, value = make(rng, 3, [("p/q".replace("/", "~1"), part[1])])
        if isinstance(schema, dict):
            schema["$defs"] = {"p/q": part[0]}
        validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        for text in match(schema, 8, i):
            validator.validate(json.loads(text))
            texts += 1
        made = [json.dumps(value(), ensure_ascii=False, separators=(",", ":")) for _ in range(4)]
        good = made
        for text, found in zip(good, match(schema, lines=good)):
            validator.validate(json.loads(text))
            values += 1
            if found != "whole":
                sys.exit(f"{json.dumps(schema)}: {text} is {found}")
    if texts < 4 * ROUNDS:
        sys.exit(f"only {texts} texts ended")
    print(f"{ROUNDS} schemas, {texts} texts, {values} values")


main()
