//! Kubelets on the simulated cluster, driven by a scripted source of instances.

mod machines;
mod pods;
mod source;
