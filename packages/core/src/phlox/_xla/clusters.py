"""Where this process stands among those that a launcher or a cluster manager started: address, count, number.

Each `Cluster` reads what one of them leaves in the environment, as `jax.distributed` does: the same variables, the same
ports, the same order. `phlox.launch` comes first, as it may itself run inside of a cluster's job.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
import socket
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from .._base.errors import DistributedError, OptionError

#: Ports that are derived from the number of a job lie in the highest 4096.
_PORTS = 1 << 12
_FIRST_PORT = (1 << 16) - _PORTS
_KUBERNETES_PORT = "55527"
_KUBERNETES_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"


class Place(NamedTuple):
    """The address of process 0, the number of processes, the number of this one, and its devices; None: not known."""

    address: str | None
    processes: int | None
    number: int | None
    devices: list[int] | None


@dataclasses.dataclass(frozen=True)
class Cluster:
    """How to find out a `Place`. `local` is the number of this process on its machine, or None."""

    name: str
    present: Callable[[], bool]
    #: of the port that JAX_COORDINATOR_PORT names, or None, and the seconds that it may take
    address: Callable[[str | None, int], str]
    count: Callable[[], int]
    number: Callable[[], int]
    local: Callable[[], int | None]
    #: not tried unless it is named
    on_request: bool = False


def _from(variable: str) -> Callable[[], int]:
    return lambda: int(os.environ[variable])


def _are_set(*variables: str) -> Callable[[], bool]:
    return lambda: all(variable in os.environ for variable in variables)


def _port_of_job(number: int) -> str:
    # Each process computes the same port without asking the others, and jobs on one machine rarely share one. The
    # formula is JAX's.
    return str(number % _PORTS + _FIRST_PORT)


def _open_mpi_address(port: str | None, _: int) -> str:
    """From a text like ``1531576320.0;tcp://10.96.0.1,10.148.0.1:34911`` or ``...;tcp6://[fe80::1,fe80::2]:43370``."""
    uri = os.environ[_OPEN_MPI]
    match = re.search(r"tcp6://\[([^,\]]+)|tcp://([^,:]+)", uri)
    if match is None:
        raise DistributedError(f"distributed.initialize: Open MPI's address {uri!r} is not understood")
    # The numbers of Open MPI's jobs are multiples of 4096: undivided, they would all lead to one port.
    return f"{match[1] or match[2]}:{port or _port_of_job(int(uri.split('.')[0]) // _PORTS)}"


def _slurm_address(port: str | None, _: int) -> str:
    """The first host of a list like ``node001``, ``node001,host2`` or ``node[001-015,020],host2``."""
    prefix, brackets, rest = re.fullmatch(r"([^,\[]*)(\[?)(.*)", os.environ["SLURM_STEP_NODELIST"], re.S).groups()  # type: ignore[union-attr]
    # The first number ends at a comma, a dash or the bracket. Its leading zeros are part of the name of the host.
    first = prefix + re.split("[],-]", rest)[0] if brackets else prefix
    return f"{first}:{port or _port_of_job(int(os.environ['SLURM_JOB_ID']))}"


def _world() -> Any:
    from mpi4py import MPI  # type: ignore[import-not-found]

    return MPI.COMM_WORLD


def _mpi_address(port: str | None, _: int) -> str:
    host = socket.gethostname()
    # The processes learn it from the first, so the port need not be derived from anything that all know.
    return _world().bcast(f"{host}:{port or _port_of_job(os.getpid())}", root=0)


def _mpi_local() -> int:
    from mpi4py import MPI

    return int(_world().Split_type(MPI.COMM_TYPE_SHARED).Get_rank())


class _Kubernetes:
    """What the API server says about the job of this pod. It is asked once."""

    def __init__(self) -> None:
        import kubernetes  # type: ignore[import-not-found]

        kubernetes.config.load_incluster_config()
        try:
            with open(_KUBERNETES_NAMESPACE, encoding="utf-8") as file:
                space = file.read().strip()
            address = socket.gethostbyname(os.environ["HOSTNAME"])
            self.core = kubernetes.client.CoreV1Api()
            (self.pod,) = self.core.list_namespaced_pod(namespace=space, field_selector=f"status.podIP={address}").items
            name = self.pod.metadata.labels["job-name"]
            self.job = kubernetes.client.BatchV1Api().read_namespaced_job(name=name, namespace=space)
        except kubernetes.client.exceptions.ApiException as error:
            raise DistributedError(
                f"distributed.initialize: Kubernetes answers {error.status} {error.reason}",
                instead="a service account of the job that may read pods and jobs; see docs/guides/processes.md",
            ) from error

    def address(self, port: str | None, timeout: int) -> str:
        name, labels = self.job.metadata.name, self.job.metadata.labels or {}
        domain = labels.get("jobset.sigs.k8s.io/jobset-name") or self.pod.spec.subdomain
        if domain is None:
            raise DistributedError(
                "distributed.initialize: the pods of this job have no names by which they find each other",
                instead="a headless service, and its name as `subdomain` of the pods; see docs/guides/processes.md",
            )
        # Kubernetes names the pods of an indexed job by their numbers; the headless service makes the names known.
        host = f"{name}-0.{domain}"
        end = time.monotonic() + timeout
        while True:  # the name appears some seconds after the pod
            try:
                socket.gethostbyname(host)
                break
            except socket.gaierror as error:
                if time.monotonic() > end:
                    raise DistributedError(f"distributed.initialize: there is no host {host!r}: {error}") from None
                time.sleep(0.5)
        return f"{host}:{port or _KUBERNETES_PORT}"

    def count(self) -> int:
        return self.job.spec.parallelism


_kubernetes: _Kubernetes | None = None


def _get_kubernetes() -> _Kubernetes:
    global _kubernetes
    if _kubernetes is None:
        _kubernetes = _Kubernetes()
    return _kubernetes


def _kubernetes_number() -> int:
    try:
        return int(os.environ["JOB_COMPLETION_INDEX"])
    except KeyError:
        raise DistributedError(
            "distributed.initialize: the pods of this job have no numbers", instead="completionMode: Indexed"
        ) from None


def _in_kubernetes() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and importlib.util.find_spec("kubernetes") is not None


_OPEN_MPI = "OMPI_MCA_orte_hnp_uri"
#: what `phlox.launch` sets
LAUNCH = ("PHLOX_LAUNCH_ADDRESS", "PHLOX_LAUNCH_COUNT", "PHLOX_LAUNCH_NUMBER")

# The first cluster that is present counts: `phlox.launch` and mpirun may run inside of a job of Slurm, and come first.
CLUSTERS = (
    Cluster(
        "launch", _are_set(*LAUNCH), lambda *_: os.environ[LAUNCH[0]], _from(LAUNCH[1]), _from(LAUNCH[2]), lambda: None
    ),
    Cluster(
        "ompi",
        _are_set(_OPEN_MPI),
        _open_mpi_address,
        _from("OMPI_COMM_WORLD_SIZE"),
        _from("OMPI_COMM_WORLD_RANK"),
        _from("OMPI_COMM_WORLD_LOCAL_RANK"),
    ),
    Cluster(
        "slurm",
        _are_set("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID"),
        _slurm_address,
        _from("SLURM_NTASKS"),
        _from("SLURM_PROCID"),
        _from("SLURM_LOCALID"),
    ),
    Cluster(
        "mpi4py",
        lambda: importlib.util.find_spec("mpi4py") is not None,
        _mpi_address,
        lambda: int(_world().Get_size()),
        lambda: int(_world().Get_rank()),
        _mpi_local,
        on_request=True,
    ),
    Cluster(
        "k8s",
        _in_kubernetes,
        lambda port, timeout: _get_kubernetes().address(port, timeout),
        lambda: _get_kubernetes().count(),
        _kubernetes_number,
        lambda: None,
    ),
)


def completed(place: Place, method: str | None, timeout: int) -> tuple[Place, str | None]:
    """`place`, with what is None taken from the cluster that this process runs in, and the name of that cluster.

    `method` names a cluster; None: the first that is there; "deactivate": none.
    """
    # Nothing is missing, so no cluster is looked for.
    if method == "deactivate" or None not in place:
        return place, None
    names = [cluster.name for cluster in CLUSTERS]
    if method is not None and method not in names:
        raise OptionError(
            f"distributed.initialize: cluster_detection_method={method!r} is not known",
            instead=", ".join(map(repr, (*names, "deactivate"))),
        )
    # Where mpi4py is installed, a process need not run under MPI: it is used only on request, as in JAX.
    candidates = [cluster for cluster in CLUSTERS if (cluster.name == method if method else not cluster.on_request)]
    cluster = next((cluster for cluster in candidates if cluster.present()), None)
    if cluster is None:
        return place, None
    address, count, number, devices = place
    try:
        address = address or cluster.address(os.environ.get("JAX_COORDINATOR_PORT"), timeout)
        count = cluster.count() if count is None else count
        number = cluster.number() if number is None else number
        local = cluster.local() if devices is None else None
    # Variables of a launcher may be set in part, or to something else, in a shell inside of a job.
    except (KeyError, ValueError) as error:
        raise DistributedError(
            f"distributed.initialize: what {cluster.name} says about this process is not understood: {error!r}",
            instead="coordinator_address, num_processes and process_id as arguments",
        ) from error
    return Place(address, count, number, devices if local is None else [local]), cluster.name
