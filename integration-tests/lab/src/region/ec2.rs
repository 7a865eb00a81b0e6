//! EC2: each API as a function from the world and a call to a reply.
//!
//! Invariant: handlers are synchronous; a handler that returns an error has changed nothing.

mod admit;
mod allocate;
mod authorize;
mod filter;
mod fleet;
mod fleet_reply;
mod fleet_request;
mod images;
mod instance_xml;
mod instances;
mod network;
mod prices;
mod reservations;
mod room;
mod run;
mod status;
mod tags;
mod template_data;
mod templates;
mod type_xml;
mod types;

use super::world::Handler;

/// The APIs of EC2, and who answers them.
pub const APIS: &[(&str, Handler)] = &[
    ("CreateFleet", fleet::create_fleet),
    ("RunInstances", run::run_instances),
    ("DescribeInstances", instances::describe),
    ("TerminateInstances", instances::terminate),
    ("DescribeInstanceStatus", status::describe),
    ("CreateTags", tags::create),
    ("DeleteTags", tags::delete),
    ("DescribeInstanceTypes", types::describe),
    ("DescribeInstanceTypeOfferings", types::describe_offerings),
    ("DescribeSubnets", network::describe_subnets),
    ("DescribeSecurityGroups", network::describe_security_groups),
    ("DescribeAvailabilityZones", network::describe_zones),
    ("DescribeImages", images::describe),
    ("CreateLaunchTemplate", templates::create),
    ("DescribeLaunchTemplates", templates::describe),
    ("DeleteLaunchTemplate", templates::delete),
    ("DescribeSpotPriceHistory", prices::describe),
    ("DescribeCapacityReservations", reservations::describe_reservations),
    ("DescribePlacementGroups", reservations::describe_placement_groups),
];
