"""A client of another platform: nothing but grpcio and the .proto files.

Generates its own stubs, asks ComputePlan about a world it describes and ExplainPod about a live pod,
and prints both answers as one JSON object. Who it is, it proves by a certificate; the scheduler's names
the host "longshore" beside its own, so that it is known wherever it runs.
"""

import json
import pathlib
import sys
import tempfile

import grpc
from google.protobuf.json_format import MessageToDict
from grpc_tools import protoc


def generate(protos: pathlib.Path, out: str) -> None:
    """Compiles every .proto file, as any user would."""
    files = [str(path) for path in sorted(protos.rglob("*.proto"))]
    arguments = ["protoc", f"-I{protos}", f"--python_out={out}", f"--grpc_python_out={out}", *files]
    include = pathlib.Path(protoc.__file__).parent / "_proto"
    arguments.insert(1, f"-I{include}")
    if protoc.main(arguments) != 0:
        sys.exit("the .proto files do not compile")
    sys.path.insert(0, out)


def question(planning, types):
    """Ten pods of 500m/1Gi, one pool, one type of 2 CPUs and 8 GiB for $0.10 an hour."""
    gib = 1 << 30
    shape = types["pod"].PodShape(
        shape_id="web",
        namespace="default",
        requests=types["resources"].Resources(cpu_millis=500, memory_bytes=gib, pods=1),
    )
    offering = types["catalogue"].Offering(
        zone="z1",
        zone_id="z1",
        capacity_type=types["catalogue"].CAPACITY_TYPE_ON_DEMAND,
        price_micro_usd_per_hour=100_000,
        available=True,
    )
    kind = types["catalogue"].InstanceType(
        name="two.cpus",
        capacity=types["resources"].Resources(cpu_millis=2000, memory_bytes=8 * gib, pods=50),
        offerings=[offering],
    )
    obj = types["object"]
    yield planning.ComputePlanRequest(
        options=planning.ComputePlanOptions(effort=planning.EFFORT_DEFAULT),
        objects=[
            obj.Object(node_pool=types["pool"].NodePool(name="default")),
            obj.Object(pod_shape=shape),
        ],
        catalogue=types["catalogue"].Catalogue(catalogue_id="mine", types=[kind]),
    )
    yield planning.ComputePlanRequest(pods=[obj.PodCount(shape_id="web", count=10)])


def secured(address: str, keys: pathlib.Path) -> grpc.Channel:
    """A channel over which each end proves who it is."""
    root, key, certificate = ((keys / name).read_bytes() for name in ("ca.crt", "tls.key", "tls.crt"))
    credentials = grpc.ssl_channel_credentials(root, key, certificate)
    return grpc.secure_channel(address, credentials, [("grpc.ssl_target_name_override", "longshore")])


def main() -> None:
    protos, keys, address, cluster, pod = sys.argv[1:]
    with tempfile.TemporaryDirectory() as out:
        generate(pathlib.Path(protos), out)
        from longshore.planning.v1 import planning_pb2, planning_pb2_grpc
        from longshore.types.v1 import catalogue_pb2, object_pb2, pod_pb2, pool_pb2, resources_pb2

        types = {
            "catalogue": catalogue_pb2,
            "object": object_pb2,
            "pod": pod_pb2,
            "pool": pool_pb2,
            "resources": resources_pb2,
        }
        with secured(address, pathlib.Path(keys)) as channel:
            service = planning_pb2_grpc.PlanningServiceStub(channel)
            plan = service.ComputePlan(question(planning_pb2, types), timeout=20)
            asked = planning_pb2.ExplainPodRequest(cluster_id=cluster, namespace="default", name=pod)
            explained = service.ExplainPod(asked, timeout=20)
            try:
                service.ExplainPod(planning_pb2.ExplainPodRequest(cluster_id="nobody"), timeout=20)
                refused = ""
            except grpc.RpcError as error:
                refused = error.code().name
    answers = {"plan": plan, "explained": explained}
    answers = {name: MessageToDict(answer) for name, answer in answers.items()}
    print(json.dumps({**answers, "refused": refused}))


if __name__ == "__main__":
    main()
