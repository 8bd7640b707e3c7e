"""What `distributed.initialize` finds out about its cluster, beside what jax finds out in the same environment."""

import socket
import sys
import types

import pytest
from jax._src import clusters as jax_clusters

import phlox
from phlox._xla import clusters

_KNOWN = ("PHLOX_LAUNCH_", "SLURM_", "OMPI_", "KUBERNETES_", "JOB_COMPLETION", "JAX_COORDINATOR", "JAX_LOCAL")

_SLURM = {"SLURM_JOB_ID": "123456", "SLURM_NTASKS": "16", "SLURM_PROCID": "5", "SLURM_LOCALID": "1"}
_OMPI = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
_TCP = "1531576320.0;tcp://10.96.0.1,10.148.0.1,10.108.0.1:34911"
_TCP6 = "1314521088.0;tcp6://[fe80::b9b:ac5d:9cf0:b858,2620:10d:c083:150e::3000:2]:43370"

ENVIRONMENTS = {
    "nothing": {},
    "slurm, one host": {**_SLURM, "SLURM_STEP_NODELIST": "node001"},
    "slurm, names": {**_SLURM, "SLURM_STEP_NODELIST": "node001,host2"},
    "slurm, range": {**_SLURM, "SLURM_STEP_NODELIST": "node[001-015],host2"},
    "slurm, list": {**_SLURM, "SLURM_STEP_NODELIST": "rack2-node[007,009-015],host2"},
    "slurm, port": {**_SLURM, "SLURM_STEP_NODELIST": "a-b,c", "JAX_COORDINATOR_PORT": "1234"},
    "slurm without a step": _SLURM,
    "ompi": {**_OMPI, "OMPI_MCA_orte_hnp_uri": _TCP},
    "ompi, tcp6": {**_OMPI, "OMPI_MCA_orte_hnp_uri": _TCP6},
    "ompi, port": {**_OMPI, "OMPI_MCA_orte_hnp_uri": _TCP, "JAX_COORDINATOR_PORT": "77"},
    "ompi in slurm": {**_OMPI, "OMPI_MCA_orte_hnp_uri": _TCP, **_SLURM, "SLURM_STEP_NODELIST": "a"},
    "kubernetes": {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "pod-3", "JOB_COMPLETION_INDEX": "3"},
    "kubernetes, port": {
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "HOSTNAME": "pod-3",
        "JOB_COMPLETION_INDEX": "3",
        "JAX_COORDINATOR_PORT": "9",
    },
}
GIVEN = {
    "nothing": (None, None, None, None, None),
    "address": ("me:1", None, None, None, None),
    "number": (None, None, 0, None, None),
    "devices": (None, None, None, [2, 3], None),
    "slurm": (None, None, None, None, "slurm"),
    "ompi": (None, 7, None, None, "ompi"),
    "mpi4py": (None, None, None, None, "mpi4py"),
}


def _jax_finds(address, count, number, devices, method, timeout):
    return jax_clusters.ClusterEnv.auto_detect_unset_distributed_params(
        address, count, number, devices, method, timeout
    )


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """Sets variables, with stand-ins for Kubernetes' and MPI's Python packages."""
    import os

    for name in list(os.environ):
        if name.startswith(_KNOWN):
            monkeypatch.delenv(name)
    for name, module in _stand_ins().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(clusters, "_kubernetes", None)
    (tmp_path / "namespace").write_text("mine\n")
    monkeypatch.setattr(clusters, "_KUBERNETES_NAMESPACE", str(tmp_path / "namespace"))
    monkeypatch.setattr(jax_clusters.K8sCluster, "_namespace", classmethod(lambda cls: "mine"))
    monkeypatch.setattr(socket, "gethostbyname", lambda name: "10.1.1.1")
    return lambda variables: [monkeypatch.setenv(*item) for item in variables.items()]


def _stand_ins():
    space = types.SimpleNamespace
    pod = space(
        metadata=space(
            name="pod-3", labels={"job-name": "train"}, owner_references=[space(controller=True, kind="Job")]
        ),
        spec=space(subdomain="pods"),
    )
    job = space(metadata=space(name="train", labels={}), spec=space(parallelism=6))
    core = space(list_namespaced_pod=lambda namespace, field_selector: space(items=[pod]))
    batch = space(read_namespaced_job=lambda name, namespace: job)
    kubernetes = types.ModuleType("kubernetes")
    kubernetes.config = space(load_incluster_config=lambda: None)
    kubernetes.client = space(
        CoreV1Api=lambda: core,
        BatchV1Api=lambda: batch,
        exceptions=space(ApiException=type("ApiException", (Exception,), {"status": 403, "reason": "Forbidden"})),
    )
    world = space(
        Get_rank=lambda: 1,
        Get_size=lambda: 3,
        bcast=lambda value, root: "first:65000",
        Split_type=lambda kind: space(Get_rank=lambda: 0),
    )
    mpi4py = types.ModuleType("mpi4py")
    mpi4py.MPI = space(COMM_WORLD=world, COMM_TYPE_SHARED=1)
    for module in (kubernetes, mpi4py):
        module.__spec__ = types.SimpleNamespace(name=module.__name__)
    return {"kubernetes": kubernetes, "mpi4py": mpi4py}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("where", ENVIRONMENTS)
def test_finds_what_jax_finds(where, given, environment):
    environment(ENVIRONMENTS[where])
    *arguments, method = GIVEN[given]
    try:
        expected = tuple(_jax_finds(*arguments, method, 5))
    except KeyError:  # jax asks a cluster that is named and not there
        expected = tuple(arguments)
    found, _ = clusters.completed(clusters.Place(*arguments), method, 5)
    assert tuple(found) == expected


def test_one_host_in_brackets(environment):
    environment({**_SLURM, "SLURM_STEP_NODELIST": "n[3],host2"})
    assert clusters.completed(clusters.Place(None, None, None, None), None, 5)[0].address == "n3:62016"


def test_deactivated_and_complete_arguments_ask_no_cluster(environment):
    environment(ENVIRONMENTS["slurm, range"])
    nothing = clusters.Place(None, None, None, None)
    assert clusters.completed(nothing, "deactivate", 5) == (nothing, None)
    everything = clusters.Place("a:1", 2, 0, [0])
    assert clusters.completed(everything, None, 5) == (everything, None)


def test_the_launcher_comes_first(environment):
    environment(ENVIRONMENTS["slurm, range"])
    environment({"PHLOX_LAUNCH_ADDRESS": "x:1", "PHLOX_LAUNCH_COUNT": "2", "PHLOX_LAUNCH_NUMBER": "1"})
    assert clusters.completed(clusters.Place(None, None, None, None), None, 5) == (("x:1", 2, 1, None), "launch")


def test_errors(environment):
    nothing = clusters.Place(None, None, None, None)
    with pytest.raises(phlox.errors.OptionError, match="'pbs' is not known"):
        clusters.completed(nothing, "pbs", 5)
    environment({**ENVIRONMENTS["slurm, range"], "SLURM_NTASKS": "many"})
    with pytest.raises(phlox.errors.DistributedError, match="slurm"):
        clusters.completed(nothing, None, 5)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (lambda k8s: setattr(_pod(k8s).spec, "subdomain", None), "headless service"),
        (lambda k8s: setattr(k8s.client, "CoreV1Api", _refusing(k8s)), "403 Forbidden"),
    ],
)
def test_kubernetes_says_what_is_missing(broken, words, environment):
    environment(ENVIRONMENTS["kubernetes"])
    broken(sys.modules["kubernetes"])
    with pytest.raises(phlox.errors.DistributedError, match=words):
        clusters.completed(clusters.Place(None, None, None, None), None, 5)


def _pod(kubernetes):
    return kubernetes.client.CoreV1Api().list_namespaced_pod(namespace="", field_selector="").items[0]


def _refusing(kubernetes):
    def refuse():
        raise kubernetes.client.exceptions.ApiException

    return refuse


def test_pods_without_numbers(environment, monkeypatch):
    environment(ENVIRONMENTS["kubernetes"])
    monkeypatch.delenv("JOB_COMPLETION_INDEX")
    with pytest.raises(phlox.errors.DistributedError, match="completionMode: Indexed"):
        clusters.completed(clusters.Place(None, None, None, None), None, 5)
