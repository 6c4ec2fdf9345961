"""The Helm chart, rendered by helm: every object is one by the schemas of Kubernetes and KubeRay, and the settings in it are taken by the program.

helm comes from $HELM or PATH, KubeRay's schema from Go's proxy; what is out of reach is skipped with a reason. Nothing here runs on a cluster.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/bin/fairlead"
CHART = ROOT / "packaging/helm/fairlead"
HELM = os.environ.get("HELM") or shutil.which("helm")
KUBERNETES = "1.31"
KUBERAY = "github.com/ray-project/kuberay/ray-operator@v1.4.2"
REQUIRED = {"clusterKey.secret": "key", "tls.secret": "certificate"}
RAY = {"ray.enabled": "true", "ray.image": "registry.example/ray-fairlead:1"}
STORE = {"store.url": "postgresql://fairlead@db/fairlead", "store.passwordSecret": "password"}

if HELM:  # else nothing below runs, and nobody needs these
    jsonschema = pytest.importorskip("jsonschema")
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    yaml = pytest.importorskip("yaml")

pytestmark = pytest.mark.skipif(not HELM, reason="no helm: HELM names none, and PATH has none")


def helm(*arguments):
    return subprocess.run([HELM, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def template(values, name="gpu"):
    settings = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    return helm("template", name, CHART, "--namespace", "serving", "--kube-version", "1.31.0", *settings)


def objects(values, **keywords):
    done = template(values, **keywords)
    assert done.returncode == 0, done.stderr
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(done.stdout) if one}


@pytest.fixture(scope="module")
def kuberay():
    """The schema of a RayCluster, as KubeRay publishes it."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no go, which fetches KubeRay's schema")
    done = subprocess.run([go, "mod", "download", "-json", KUBERAY], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        pytest.skip(f"Go's proxy does not give {KUBERAY}")
    folder = pathlib.Path(json.loads(done.stdout)["Dir"])
    definition = yaml.safe_load((folder / "config/crd/bases/ray.io_rayclusters.yaml").read_text())
    return next(one["schema"]["openAPIV3Schema"] for one in definition["spec"]["versions"] if one["name"] == "v1")


def closed(schema):
    """The schema, refusing fields that it does not name: as `kubectl apply` warns of them."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items() if key not in ("description", "format")}
    if "x-kubernetes-int-or-string" in made:
        made.pop("anyOf", None)
        made["type"] = ["integer", "string"]
    if "properties" in made and "additionalProperties" not in made and not made.get("x-kubernetes-preserve-unknown-fields"):
        made["additionalProperties"] = False
    return made


@pytest.mark.parametrize("values", [
    REQUIRED,
    {"clusterKey.secret": "key", "tls.disabled": "true", "nodes.softwareGpu": "true", "nodes.replicas": 3, "gateway.replicas": 2},
    {"clusterKey.secret": "key", "tls.issuer.name": "ca", "tls.issuer.kind": "Issuer", "tls.hosts[0]": "gpu.example"},
    {**REQUIRED, **STORE, **RAY, "podMonitor.enabled": "true", "podMonitor.tokenSecret.name": "token", "image.pullSecrets[0]": "pull",
     "nodes.state.storageClass": "fast", "serviceAccount.annotations.a": "b", "gateway.service.type": "LoadBalancer", "gateway.service.grpcPort": 8443},
], ids=["least", "no tls", "cert-manager", "everything"])
def test_every_object_is_one_by_its_schema(values):
    rendered = objects(values)
    checked = 0
    for (kind, name), one in rendered.items():
        if "." in one["apiVersion"].split("/")[0] and not one["apiVersion"].startswith("policy"):
            continue  # another project's
        kubernetes_validate.validate(one, KUBERNETES, strict=True)
        assert one["metadata"]["labels"]["app.kubernetes.io/instance"] == "gpu", (kind, name)
        checked += 1
    assert checked >= 7


def test_grpc_is_spoken_where_it_is_asked_for():
    rendered = objects({**REQUIRED, "gateway.service.grpcPort": 8443})
    assert {"name": "grpc", "port": 8443, "targetPort": "grpc"} in rendered["Service", "gpu-fairlead"]["spec"]["ports"]
    ports = {kind: [port["name"] for port in rendered["StatefulSet", f"gpu-fairlead-{kind}"]["spec"]["template"]["spec"]["containers"][0]["ports"]]
             for kind in ("node", "gateway")}
    assert ports == {"node": ["api"], "gateway": ["api", "grpc"]}
    settings = rendered["ConfigMap", "gpu-fairlead"]["data"]
    assert tomllib.loads(settings["gateway.toml"])["serve"]["grpc"] == ["0.0.0.0:8001"]
    assert "grpc" not in tomllib.loads(settings["node.toml"])["serve"]
    assert "grpc" not in tomllib.loads(objects(REQUIRED)["ConfigMap", "gpu-fairlead"]["data"]["gateway.toml"])["serve"]


def test_a_ray_cluster_is_one_by_kuberays_schema(kuberay):
    rendered = objects({**REQUIRED, **RAY})
    cluster = rendered["RayCluster", "gpu-fairlead-ray"]
    jsonschema.validate(cluster["spec"], closed(kuberay["properties"]["spec"]))
    with pytest.raises(jsonschema.ValidationError):  # what is no field is seen
        jsonschema.validate({**cluster["spec"], "headGroup": {}}, closed(kuberay["properties"]["spec"]))


def mounted(rendered, folder, kind):
    """A pod's files of settings below `folder`, with paths of this machine in place of the pod's."""
    text = rendered["ConfigMap", "gpu-fairlead"]["data"][f"{kind}.toml"]
    for name in ("cluster-key", "password"):
        (folder / name).write_text("k" * 64)
        (folder / name).chmod(0o600)
    text = text.replace("/var/lib/fairlead", str(folder / "state"))
    text = re.sub(r"/etc/fairlead/(cluster|store)/", f"{folder}/", text)
    text = text.replace("/etc/fairlead/tls/ca.crt", f"{folder}/certificate.pem")
    return text.replace("/etc/fairlead/tls/tls.crt", f"{folder}/certificate.pem").replace("/etc/fairlead/tls/tls.key", f"{folder}/key.pem")


@pytest.mark.parametrize("more", [{}, STORE, {"settings.slots": 4, "settings.log-level": "debug", "nodes.settings.pool": 40}], ids=["plain", "store", "settings"])
@pytest.mark.parametrize("kind", ["node", "gateway"])
def test_the_program_takes_the_settings(kind, more, tmp_path):
    """--print-config checks every value, as a start does."""
    rendered = objects({**REQUIRED, **more, "nodes.replicas": 2})
    made = subprocess.run([PROGRAM, "certificate", "--host", "localhost", "--out", tmp_path], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    (tmp_path / "serve.toml").write_text(mounted(rendered, tmp_path, kind))
    container = rendered["StatefulSet", f"gpu-fairlead-{kind}"]["spec"]["template"]["spec"]["containers"][0]
    command = [part.replace("$(POD_NAME)", f"gpu-fairlead-{kind}-0") for part in container["command"]]
    assert command[:3] == ["fairlead", "serve", "--config"] and command[3] == f"/etc/fairlead/config/{kind}.toml"
    done = subprocess.run([PROGRAM, "serve", "--config", tmp_path / "serve.toml", *command[4:], "--print-config", "--json"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told = json.dumps(json.loads(done.stdout))
    for wanted in [f"gpu-fairlead-{kind}-0", "https://gpu-fairlead-node-1.gpu-fairlead-pods.serving.svc.cluster.local:9001", *map(str, more.values())]:
        if wanted != "password" and not (kind == "gateway" and wanted == "40"):
            assert wanted in told, wanted


def test_settings_of_a_file_of_values_stay_what_they_are(tmp_path):
    """Numbers of a file are floats to helm."""
    file = tmp_path / "values.yaml"
    file.write_text('settings: {"queue-limit": 1000000, "over-run": 0.5, "cold-duplicates": true, "otlp-attribute": ["a=b", "c=d"]}')
    done = helm("template", "gpu", CHART, "--kube-version", "1.31.0", "--values", file, "--set", "clusterKey.secret=key,tls.secret=certificate")
    assert done.returncode == 0, done.stderr
    rendered = {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(done.stdout) if one}
    for kind in ("node", "gateway"):
        serve = tomllib.loads(rendered["ConfigMap", "gpu-fairlead"]["data"][f"{kind}.toml"])["serve"]
        assert (serve["queue-limit"], serve["over-run"], serve["cold-duplicates"]) == ("1000000", "0.5", True)
        assert serve["otlp-attribute"] == ["a=b", "c=d"]


def test_ray_reads_its_file_of_the_cluster(tmp_path):
    rendered = objects({**REQUIRED, **RAY, "nodes.replicas": 2})
    file = tmp_path / "cluster.toml"
    file.write_text(rendered["ConfigMap", "gpu-fairlead"]["data"]["cluster.toml"])
    assert set(tomllib.loads(file.read_text())["nodes"]) == {"gpu-fairlead-node-0", "gpu-fairlead-node-1"}
    read = subprocess.run(["python3", "-c", "import sys; from fairlead.ray import cluster_file; print(cluster_file.read(sys.argv[1]))", file],
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True)
    assert read.returncode == 0, read.stderr
    pod = rendered["StatefulSet", "gpu-fairlead-node"]["spec"]["template"]["spec"]
    assert pod["shareProcessNamespace"] and [one["name"] for one in pod["containers"]] == ["fairlead", "ray-worker"]
    shared = [{mount["name"] for mount in one["volumeMounts"]} for one in pod["containers"]]
    assert shared[1] <= shared[0] and {"state", "shared-memory"} <= shared[1]
    assert "ray-worker" not in json.dumps(rendered["StatefulSet", "gpu-fairlead-gateway"])


@pytest.mark.parametrize("values, said", [
    ({}, "clusterKey.secret is required"),
    ({"clusterKey.secret": "key"}, "tls.secret or tls.issuer is required"),
    ({**REQUIRED, "ray.enabled": "true"}, "ray.image is required"),
    ({**REQUIRED, "settings.peer": "x"}, "settings.peer follows from other values"),
    ({**REQUIRED, "gateway.settings.gpus": "all"}, "settings.gpus follows from other values"),
])
def test_what_is_missing_or_decided_elsewhere_is_refused_by_name(values, said):
    done = template(values)
    assert done.returncode != 0
    assert said in done.stderr


def test_the_chart_is_of_this_version_and_helm_finds_nothing_to_say():
    version = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] in version.split()
    done = helm("lint", CHART, "--strict", "--set", "clusterKey.secret=key,tls.secret=certificate")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_name_of_a_release_may_be_long_or_the_products_own():
    assert ("Service", "fairlead") in objects(REQUIRED, name="fairlead")
    for kind, name in objects({**REQUIRED, **RAY}, name="x" * 53):
        assert len(name) <= 52, (kind, name)  # with a pod's number and revision below 63
