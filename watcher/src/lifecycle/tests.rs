//! Draining, initialisation and activity, by table.
