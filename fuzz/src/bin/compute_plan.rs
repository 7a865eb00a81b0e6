//! ComputePlan: whatever is asked is answered or refused, never with a panic, and what is answered
//! passes the independent check. The first byte says whether the rest is a request on the wire or a
//! small world.

#![no_main]

use libfuzzer_sys::arbitrary::Unstructured;
use longshore_fuzz::world;
use longshore_proto::planning::v1::ComputePlanRequest;
use longshore_scheduler::compute::{Question, compute};
use prost::Message as _;

/// Most counted pods: the service refuses millions, and a fuzzer has no time for thousands.
const COUNTED_MAX: u32 = 200;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let question = if first & 1 == 0 {
        world::question(&mut Unstructured::new(rest)).ok()
    } else {
        ComputePlanRequest::decode(rest).ok().and_then(of_wire)
    };
    if let Some(answer) = question.and_then(|question| compute(&question).ok()) {
        assert_eq!(answer.violations, Vec::<String>::new());
    }
});

fn of_wire(request: ComputePlanRequest) -> Option<Question> {
    let counted = request.pods.iter().fold(0_u32, |all, group| all.saturating_add(group.count));
    let options = request.options.unwrap_or_default();
    (counted <= COUNTED_MAX).then(|| Question {
        objects: request.objects,
        pods: request.pods,
        catalogue: request.catalogue.unwrap_or_default(),
        effort: options.effort.try_into().unwrap_or_default(),
        now_ms: options.now_ms,
        explain: options.explain,
        ..Question::default()
    })
}
