"""samples/tpc.service and samples/kubernetes.yaml against the program: samples.py TPC-RUN SAMPLES. Every option that they give is one of tpc-run, and every address that
they ask is one of the server's. The file for Kubernetes is read as YAML where PyYAML is there, and validated where kubernetes-validate is."""
import re
import subprocess
import sys

run, samples = sys.argv[1:3]
known = set(re.findall(r"--[a-z-]+", subprocess.run([run, "--help"], capture_output=True, text=True, check=True).stdout))
unit, manifest = (open(f"{samples}/{name}").read() for name in ("tpc.service", "kubernetes.yaml"))
command = re.search(r"^ExecStart=(.*)$", unit, re.M)[1]
args = re.search(r"args: \[(.*)\]", manifest)[1]
for name, text in (("tpc.service", command), ("kubernetes.yaml", args)):
    options = set(re.findall(r"--[a-z-]+", text))
    if not options or options - known:
        sys.exit(f"{name}: tpc-run has no {options - known}")
if set(re.findall(r"path: (\S+)", manifest)) - {"/health"}:
    sys.exit("kubernetes.yaml: a probe asks another address than /health")
try:
    import yaml
except ImportError:
    sys.exit(0)
objects = list(yaml.safe_load_all(manifest))
kinds = [o["kind"] for o in objects]
if kinds != ["ResourceQuota", "Service", "Service", "StatefulSet"]:
    sys.exit(f"kubernetes.yaml has {kinds}")
pod = objects[3]["spec"]["template"]["spec"]
if pod["containers"][0]["resources"]["requests"] != pod["containers"][0]["resources"]["limits"]:
    sys.exit("kubernetes.yaml: what is asked for is not the limit")
try:
    import kubernetes_validate
except ImportError:
    sys.exit(0)
for o in objects:
    kubernetes_validate.validate(o, "1.27", strict=True)
