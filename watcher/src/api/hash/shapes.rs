//! The Go types that Karpenter hashes, v1.14: names and order of their fields.
//!
//! Invariant: a table each, in the order of the Go source; fields that it tags `hash:"ignore"` are
//! absent.

/// What a value is in Go.
#[derive(Debug)]
pub enum Kind {
    /// string, or a type of it.
    Text,
    /// bool.
    Flag,
    /// int32.
    Int32,
    /// int64.
    Int64,
    /// resource.Quantity, hashed as text.
    Size,
    /// metav1.Duration.
    Period,
    /// Karpenter's NillableDuration.
    PeriodOrNever,
    /// A slice.
    List(&'static Kind),
    /// A map with text as key.
    Map(&'static Kind),
    /// A struct, by name.
    Record(&'static str, &'static [Field]),
}

/// A field of a struct.
#[derive(Debug)]
pub struct Field {
    /// Name in Go.
    pub go: &'static str,
    /// Name in JSON.
    pub json: &'static str,
    /// What it is.
    pub kind: &'static Kind,
    /// True where Go has a pointer, whose zero value is nil alone.
    pub pointer: bool,
}

const fn value(go: &'static str, json: &'static str, kind: &'static Kind) -> Field {
    Field { go, json, kind, pointer: false }
}

const fn pointer(go: &'static str, json: &'static str, kind: &'static Kind) -> Field {
    Field { go, json, kind, pointer: true }
}

const TEXT: Kind = Kind::Text;
const FLAG: Kind = Kind::Flag;
const INT32: Kind = Kind::Int32;
const INT64: Kind = Kind::Int64;
const TEXTS: Kind = Kind::Map(&TEXT);

/// NodeClaimTemplate: the template of a NodePool.
pub const POOL: Kind = Kind::Record(
    "NodeClaimTemplate",
    &[
        value(
            "ObjectMeta",
            "metadata",
            &Kind::Record(
                "ObjectMeta",
                &[value("Labels", "labels", &TEXTS), value("Annotations", "annotations", &TEXTS)],
            ),
        ),
        value(
            "Spec",
            "spec",
            &Kind::Record(
                "NodeClaimTemplateSpec",
                &[
                    value("Taints", "taints", &TAINTS),
                    value("StartupTaints", "startupTaints", &TAINTS),
                    pointer(
                        "NodeClassRef",
                        "nodeClassRef",
                        &Kind::Record(
                            "NodeClassReference",
                            &[
                                value("Kind", "kind", &TEXT),
                                value("Name", "name", &TEXT),
                                value("Group", "group", &TEXT),
                            ],
                        ),
                    ),
                    pointer("TerminationGracePeriod", "terminationGracePeriod", &Kind::Period),
                    value("ExpireAfter", "expireAfter", &Kind::PeriodOrNever),
                ],
            ),
        ),
    ],
);

/// Taints; one that says since when is not hashed here.
const TAINTS: Kind = Kind::List(&Kind::Record(
    "Taint",
    &[value("Key", "key", &TEXT), value("Value", "value", &TEXT), value("Effect", "effect", &TEXT)],
));

/// EC2NodeClassSpec.
pub const CLASS: Kind = Kind::Record(
    "EC2NodeClassSpec",
    &[
        pointer(
            "PlacementGroupSelector",
            "placementGroupSelector",
            &Kind::Record(
                "PlacementGroupSelector",
                &[pointer("Name", "name", &TEXT), pointer("ID", "id", &TEXT)],
            ),
        ),
        pointer("AssociatePublicIPAddress", "associatePublicIPAddress", &FLAG),
        pointer("UserData", "userData", &TEXT),
        value("Role", "role", &TEXT),
        pointer("InstanceProfile", "instanceProfile", &TEXT),
        value("Tags", "tags", &TEXTS),
        pointer("Kubelet", "kubelet", &KUBELET),
        value("BlockDeviceMappings", "blockDeviceMappings", &Kind::List(&DEVICE)),
        pointer("InstanceStorePolicy", "instanceStorePolicy", &TEXT),
        value(
            "NetworkInterfaces",
            "networkInterfaces",
            &Kind::List(&Kind::Record(
                "NetworkInterface",
                &[
                    value("NetworkCardIndex", "networkCardIndex", &INT32),
                    value("DeviceIndex", "deviceIndex", &INT32),
                    value("InterfaceType", "interfaceType", &TEXT),
                ],
            )),
        ),
        pointer("DetailedMonitoring", "detailedMonitoring", &FLAG),
        pointer(
            "MetadataOptions",
            "metadataOptions",
            &Kind::Record(
                "MetadataOptions",
                &[
                    pointer("HTTPEndpoint", "httpEndpoint", &TEXT),
                    pointer("HTTPProtocolIPv6", "httpProtocolIPv6", &TEXT),
                    pointer("HTTPPutResponseHopLimit", "httpPutResponseHopLimit", &INT64),
                    pointer("HTTPTokens", "httpTokens", &TEXT),
                ],
            ),
        ),
        pointer(
            "ConnectionTracking",
            "connectionTracking",
            &Kind::Record(
                "ConnectionTracking",
                &[
                    pointer("TCPEstablishedTimeout", "tcpEstablishedTimeout", &INT32),
                    pointer("UDPStreamTimeout", "udpStreamTimeout", &INT32),
                    pointer("UDPTimeout", "udpTimeout", &INT32),
                ],
            ),
        ),
        pointer("Context", "context", &TEXT),
        pointer(
            "CPUOptions",
            "cpuOptions",
            &Kind::Record(
                "CPUOptions",
                &[pointer("NestedVirtualization", "nestedVirtualization", &TEXT)],
            ),
        ),
    ],
);

const KUBELET: Kind = Kind::Record(
    "KubeletConfiguration",
    &[
        value("ClusterDNS", "clusterDNS", &Kind::List(&TEXT)),
        pointer("MaxPods", "maxPods", &INT32),
        pointer("PodsPerCore", "podsPerCore", &INT32),
        value("SystemReserved", "systemReserved", &TEXTS),
        value("KubeReserved", "kubeReserved", &TEXTS),
        value("EvictionHard", "evictionHard", &TEXTS),
        value("EvictionSoft", "evictionSoft", &TEXTS),
        value("EvictionSoftGracePeriod", "evictionSoftGracePeriod", &Kind::Map(&Kind::Period)),
        pointer("EvictionMaxPodGracePeriod", "evictionMaxPodGracePeriod", &INT32),
        pointer("ImageGCHighThresholdPercent", "imageGCHighThresholdPercent", &INT32),
        pointer("ImageGCLowThresholdPercent", "imageGCLowThresholdPercent", &INT32),
        pointer("CPUCFSQuota", "cpuCFSQuota", &FLAG),
    ],
);

const DEVICE: Kind = Kind::Record(
    "BlockDeviceMapping",
    &[
        pointer("DeviceName", "deviceName", &TEXT),
        pointer(
            "EBS",
            "ebs",
            &Kind::Record(
                "BlockDevice",
                &[
                    pointer("DeleteOnTermination", "deleteOnTermination", &FLAG),
                    pointer("Encrypted", "encrypted", &FLAG),
                    pointer("IOPS", "iops", &INT64),
                    pointer("KMSKeyID", "kmsKeyID", &TEXT),
                    pointer("SnapshotID", "snapshotID", &TEXT),
                    pointer("Throughput", "throughput", &INT64),
                    pointer("VolumeInitializationRate", "volumeInitializationRate", &INT32),
                    pointer("VolumeSize", "volumeSize", &Kind::Size),
                    pointer("VolumeType", "volumeType", &TEXT),
                ],
            ),
        ),
        value("RootVolume", "rootVolume", &FLAG),
    ],
);
