//! What `GET /` shows: each path with an example that works as it stands.
//!
//! Invariant: a test runs every example, so that none is out of date.

use crate::region::Offer;

/// The help, for a caller who knows the port as `host`; examples are about this offer.
pub fn text(host: &str, offer: &Offer) -> String {
    HELP.replace("$LAB", &format!("http://{host}"))
        .replace("$TYPE", &offer.instance_type)
        .replace("$ZONE", &offer.zone)
}

const HELP: &str = "\
The control port of a simulated AWS region. Answers are JSON. An order takes effect or is refused:
a refusal has an `error` with its kind, a message and what to do.

GET /state            instances, queues, limits of capacity, faults that wait
  curl $LAB/state

GET /calls            calls so far by API and outcome
  curl $LAB/calls
                      since the `next` of an earlier answer, or since a moment
  curl '$LAB/calls?since=0'
  curl '$LAB/calls?since=2026-01-01T00:00:00Z'

POST /faults          the next calls of an API fail (calls: 1 unless given)
                      kind: throttle, error, drop-before, drop-after, slow
  curl $LAB/faults -d '{\"kind\":\"throttle\",\"api\":\"ec2:CreateFleet\",\"calls\":3}'
  curl $LAB/faults -d '{\"kind\":\"error\",\"api\":\"ec2:DescribeInstances\",
    \"code\":\"InternalError\",\"message\":\"An internal error has occurred\",\"status\":500}'
  curl $LAB/faults -d '{\"kind\":\"drop-before\",\"api\":\"ec2:DescribeSubnets\"}'
  curl $LAB/faults -d '{\"kind\":\"drop-after\",\"api\":\"ec2:CreateFleet\"}'
  curl $LAB/faults -d '{\"kind\":\"slow\",\"api\":\"ec2:CreateFleet\",\"delay_ms\":20000}'
                      or launches are refused in calls that succeed (attempts: 1 unless given,
                      null for all; type, zone and capacity type: any unless given)
  curl $LAB/faults -d '{\"kind\":\"launch\",\"instance_type\":\"$TYPE\",
    \"capacity_type\":\"spot\",\"code\":\"MaxSpotInstanceCountExceeded\",
    \"message\":\"Max spot instance count exceeded\"}'

DELETE /faults        nothing fails any more
  curl -X DELETE $LAB/faults

POST /capacity        how many more instances an offering yields; 0 is
                      InsufficientInstanceCapacity, null any number
  curl $LAB/capacity -d '{\"instance_type\":\"$TYPE\",\"zone\":\"$ZONE\",
    \"capacity_type\":\"spot\",\"count\":0}'

POST /prices          the spot price of an offering from now on, in millionths of a dollar
  curl $LAB/prices -d '{\"instance_type\":\"$TYPE\",\"zone\":\"$ZONE\",
    \"micro_usd_per_hour\":41000}'

POST /interruptions   something happens to instances; each is told to the queue
                      rebalance          EC2 recommends to rebalance spot instances
                      spot-interruption  EC2 takes spot instances back, two minutes from now
                      scheduled-change   EC2 changes them in_s seconds from now (3600 unless
                                         given) by event_code (instance-retirement unless given)
                      state-change       somebody ends them in the console
  curl $LAB/interruptions -d '{\"kind\":\"rebalance\",
    \"instances\":[\"i-0123456789abcdef0\"]}'
  curl $LAB/interruptions -d '{\"kind\":\"scheduled-change\",
    \"instances\":[\"i-0123456789abcdef0\"],\"event_code\":\"instance-stop\",\"in_s\":600}'
  curl $LAB/interruptions -d '{\"kind\":\"spot-interruption\",
    \"instances\":[\"i-0123456789abcdef0\"]}'
  curl $LAB/interruptions -d '{\"kind\":\"state-change\",
    \"instances\":[\"i-0123456789abcdef0\"]}'
";
