//! Kubelets that join a cluster, real or simulated, when their instance boots.
