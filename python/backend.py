"""What pip calls to build the package: a wheel is a zip file of its sources, so nothing has to be fetched or compiled."""
import base64
import hashlib
import os
import re
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
VERSION = re.search(r'__version__ = "(.*)"', open(os.path.join(HERE, "tpc", "__init__.py")).read()).group(1)
INFO = f"tpc-{VERSION}.dist-info"
METADATA = f"""Metadata-Version: 2.1
Name: tpc
Version: {VERSION}
Summary: Tensor parallelism for ONNX models: the Python package on libtpc
License: Apache-2.0
Requires-Python: >=3.8
Requires-Dist: numpy
"""
WHEEL = """Wheel-Version: 1.0
Generator: tpc
Root-Is-Purelib: true
Tag: py3-none-any
"""


def sources():
    folder = os.path.join(HERE, "tpc")
    return {f"tpc/{n}": open(os.path.join(folder, n), "rb").read() for n in sorted(os.listdir(folder)) if n.endswith(".py")}


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name, record = f"tpc-{VERSION}-py3-none-any.whl", []
    files = dict(sources(), **{f"{INFO}/METADATA": METADATA.encode(), f"{INFO}/WHEEL": WHEEL.encode()})
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")
            wheel.writestr(path, data)
        wheel.writestr(f"{INFO}/RECORD", "\n".join(record + [f"{INFO}/RECORD,,"]) + "\n")
    return name


def build_sdist(sdist_directory, config_settings=None):
    name = f"tpc-{VERSION}"
    with tarfile.open(os.path.join(sdist_directory, name + ".tar.gz"), "w:gz") as archive:
        for path in list(sources()) + ["backend.py", "pyproject.toml"]:
            archive.add(os.path.join(HERE, path), f"{name}/{path}")
    return name + ".tar.gz"
