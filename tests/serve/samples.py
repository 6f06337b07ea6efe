"""samples/tpc.service and samples/kubernetes.yaml against the program: samples.py TPC-RUN SAMPLES. Every option that they give is one of tpc-run, and every address that
they ask is one of the server's.

samples.py SAMPLES: the file for Kubernetes against Kubernetes' own schemas, and what they do not tell. Exit status 77: kubernetes-validate is missing."""
import re
import subprocess
import sys

VERSIONS = ("1.27", "1.31")


def check_options(run, samples):
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


def by_kind(objects, kind):
    return [o for o in objects if o["kind"] == kind]


def check_manifest(samples):
    try:
        import kubernetes_validate
        import yaml
    except ImportError:
        print("skipped: kubernetes-validate is missing: pip install kubernetes-validate")
        sys.exit(77)
    objects = list(yaml.safe_load_all(open(f"{samples}/kubernetes.yaml")))
    for o in objects:
        for version in VERSIONS:
            kubernetes_validate.validate(o, version, strict=True)
    sets, services = by_kind(objects, "StatefulSet"), by_kind(objects, "Service")
    if len(sets) != 1 or len(by_kind(objects, "ResourceQuota")) != 1 or len(services) != 2:
        sys.exit(f"kubernetes.yaml has {[o['kind'] for o in objects]}")
    spec = sets[0]["spec"]
    pod, labels = spec["template"]["spec"], spec["template"]["metadata"]["labels"]
    server = pod["containers"][0]
    if server["resources"]["requests"] != server["resources"]["limits"]:
        sys.exit("kubernetes.yaml: what is asked for is not the limit")
    if spec["selector"]["matchLabels"] != labels or any(s["spec"]["selector"] != labels for s in services):
        sys.exit("kubernetes.yaml: a selector finds other pods")
    headless = [s["metadata"]["name"] for s in services if s["spec"].get("clusterIP") == "None"]
    if headless != [spec["serviceName"]]:
        sys.exit(f"kubernetes.yaml: the set's service is {spec['serviceName']}, and without an address is {headless}")
    ports = {p["name"]: p["containerPort"] for p in server["ports"]}
    asked = [server[probe]["httpGet"]["port"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")]
    asked += [p["targetPort"] for s in services for p in s["spec"]["ports"] if "targetPort" in p]
    if set(asked) - set(ports) or str(ports["http"]) != server["args"][server["args"].index("--port") + 1]:
        sys.exit(f"kubernetes.yaml: the pod has {ports}, the server {server['args']}, and asked are {asked}")
    volumes = {v["name"] for v in pod["volumes"]} | {v["metadata"]["name"] for v in spec["volumeClaimTemplates"]}
    if {m["name"] for m in server["volumeMounts"]} != volumes:
        sys.exit("kubernetes.yaml: volumes that are mounted are not those that there are")


if len(sys.argv) > 2:
    check_options(*sys.argv[1:])
else:
    check_manifest(sys.argv[1])
