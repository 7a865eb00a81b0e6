//! The simulated region: AWS wire protocols over a model of capacity, prices and faults.
