#!/usr/bin/env python3
"""Compares schemas/onnx.proto with the descriptors of the onnx package: messages, fields, numbers, labels, types, enum values.

compare.py PROTO. Needs protoc or protoc-c on the path, or one of them in PROTOC. Exit status 77 (skipped) where protoc or the onnx package is missing.
What the package has and we lack is an error; what we have and an older package lacks is not.
"""
import os
import shutil
import subprocess
import sys
import tempfile

try:
    from google.protobuf import descriptor_pb2
    from onnx import onnx_pb
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)


def ours(path):
    protoc = os.environ.get("PROTOC") or shutil.which("protoc") or "protoc-c"
    with tempfile.NamedTemporaryFile() as out:
        try:
            subprocess.run([protoc, "--proto_path=" + os.path.dirname(path), "--descriptor_set_out=" + out.name, path], check=True)
        except FileNotFoundError:
            print("skipped: no protoc")
            sys.exit(77)
        files = descriptor_pb2.FileDescriptorSet()
        files.ParseFromString(out.read())
    return files.file[0]


def theirs():
    file = descriptor_pb2.FileDescriptorProto()
    onnx_pb.DESCRIPTOR.CopyToProto(file)
    return file


def enum_facts(prefix, enum):
    return {f"{prefix}{enum.name}.{value.name}": value.number for value in enum.value}


def message_facts(prefix, message):
    name = prefix + message.name
    facts = {name: "message"}
    for field in message.field:
        oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else None
        facts[f"{name}.{field.name}"] = (field.number, field.label, field.type, field.type_name, field.options.packed, oneof)
    for enum in message.enum_type:
        facts |= enum_facts(name + ".", enum)
    for inner in message.nested_type:
        facts |= message_facts(name + ".", inner)
    return facts


def facts(file):
    out = {}
    for enum in file.enum_type:
        out |= enum_facts("", enum)
    for message in file.message_type:
        out |= message_facts("", message)
    out.pop("Version.IR_VERSION", None)  # the newest version: moves with the package
    return out


def main():
    mine, other = facts(ours(os.path.abspath(sys.argv[1]))), facts(theirs())
    bad = [f"{key}: {mine.get(key, 'missing')}, expected {want}" for key, want in sorted(other.items()) if mine.get(key) != want]
    print("\n".join(bad) or f"{len(other)} facts agree, {len(mine) - len(other)} are newer than the package")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
