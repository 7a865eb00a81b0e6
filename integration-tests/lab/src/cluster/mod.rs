//! The simulated cluster: an API server, a plain scheduler and the controllers workloads need.
