"""Instance types: from DescribeInstanceTypes items to the fields that longshore-ec2-data reads.

Invariant: a field is left out exactly when it has the default that the Rust side gives it.
"""

from .sources import Sources

ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}


def instance_types(sources: Sources) -> list[dict]:
    """All types that run Linux or Windows on a supported architecture, sorted by name."""
    usable = (item for item in sources.types.values() if _arch(item))
    return sorted((_instance_type(item, sources) for item in usable), key=lambda t: t["name"])


def _arch(item: dict) -> str | None:
    if "hvm" not in item["SupportedVirtualizationTypes"]:
        return None
    known = [ARCHITECTURES.get(arch) for arch in item["ProcessorInfo"]["SupportedArchitectures"]]
    return next(filter(None, known), None)


def _instance_type(item: dict, sources: Sources) -> dict:
    processor = item["ProcessorInfo"]
    usage = item["SupportedUsageClasses"]
    fields = {
        "arch": _arch(item),
        "vcpus": item["VCpuInfo"]["DefaultVCpus"],
        "memory_mib": item["MemoryInfo"]["SizeInMiB"],
        "cpu_manufacturer": processor["Manufacturer"],
        "cpu_clock_mhz": round(processor.get("SustainedClockSpeedInGhz", 0) * 1000),
        "hypervisor": item.get("Hypervisor"),
        "bare_metal": item["BareMetal"],
        "burstable": item["BurstablePerformanceSupported"],
        "current_generation": item["CurrentGeneration"],
        "spot": "spot" in usage,
        "capacity_block": "capacity-block" in usage,
        "nested_virtualization": "nested-virtualization" in processor.get("SupportedFeatures", []),
        "nitro_enclaves": item["NitroEnclavesSupport"] == "supported",
        "gpus": [_accelerator(gpu) for gpu in item.get("GpuInfo", {}).get("Gpus", [])],
        "inference_accelerators": [
            _accelerator(found)
            for found in item.get("InferenceAcceleratorInfo", {}).get("Accelerators", [])
        ],
        "neuron_devices": _neuron(item),
        "local_storage": _local_storage(item.get("InstanceStorageInfo")),
        "ebs": _ebs(item["EbsInfo"]),
        "network": _network(item, sources),
        "placement_strategies": sorted(item["PlacementGroupInfo"]["SupportedStrategies"]),
    }
    return {"name": item["InstanceType"]} | _without_defaults(fields)


def _without_defaults(fields: dict) -> dict:
    return {name: value for name, value in fields.items() if value not in (None, False, 0, [])}


def _accelerator(found: dict) -> dict:
    return {
        "name": found["Name"],
        "manufacturer": found["Manufacturer"],
        "count": found["Count"],
        "memory_mib": found["MemoryInfo"]["SizeInMiB"],
    }


def _neuron(item: dict) -> list[dict]:
    return [
        {
            "name": device["Name"],
            "count": device["Count"],
            "cores_per_device": device["CoreInfo"]["Count"],
            "memory_mib": device["MemoryInfo"]["SizeInMiB"],
        }
        for device in item.get("NeuronInfo", {}).get("NeuronDevices", [])
    ]


def _local_storage(storage: dict | None) -> dict | None:
    if storage is None:
        return None
    return {
        "total_gb": storage["TotalSizeInGB"],
        "disks": sum(disk["Count"] for disk in storage["Disks"]),
        "nvme": storage["NvmeSupport"] != "unsupported",
    }


def _ebs(ebs: dict) -> dict:
    link = ebs.get("EbsOptimizedInfo", {})
    speeds = {
        "max_bandwidth_mbps": link.get("MaximumBandwidthInMbps"),
        "baseline_bandwidth_mbps": link.get("BaselineBandwidthInMbps"),
    }
    return {"optimized": ebs["EbsOptimizedSupport"]} | _without_defaults(speeds)


def _network(item: dict, sources: Sources) -> dict:
    network, name = item["NetworkInfo"], item["InstanceType"]
    cards = sorted(network["NetworkCards"], key=lambda card: card["NetworkCardIndex"])
    assert [card["NetworkCardIndex"] for card in cards] == list(range(len(cards))), name
    limits = sources.limits.get(name, {})
    fields = {
        "card_interfaces": [card["MaximumNetworkInterfaces"] for card in cards],
        "default_card": network["DefaultNetworkCardIndex"],
        "ipv4_per_interface": network["Ipv4AddressesPerInterface"],
        "branch_interfaces": limits.get("IsTrunkingCompatible") and limits["BranchInterface"],
        "efa_interfaces": network.get("EfaInfo", {}).get("MaximumEfaInterfaces"),
        "ena": network["EnaSupport"] != "unsupported",
        "encryption_in_transit": network["EncryptionInTransitSupported"],
        "bandwidth_mbps": sources.bandwidth.get(name),
    }
    return _without_defaults(fields)
