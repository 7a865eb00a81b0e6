//! Answers larger than a message, in parts.
//!
//! Invariant: the parts merged in their order are the answer, and each is smaller than a message.

use longshore_proto::limits::CHUNK_BYTES_TARGET;
use longshore_proto::planning::v1::ComputePlanResponse;
use longshore_proto::types::v1::Unplaced;
use prost::Message;

/// Most pods of a group that one part names: a UID takes 36 bytes, and its length 2.
const PODS_MAX: usize = CHUNK_BYTES_TARGET / 64;

/// Cuts an answer into parts of about a quarter of a message each; the first has all that is no
/// list.
#[must_use]
pub fn parts(mut answer: ComputePlanResponse) -> Vec<ComputePlanResponse> {
    let nodes = chunks(std::mem::take(&mut answer.nodes));
    let placements = chunks(std::mem::take(&mut answer.placements));
    let unplaced = std::mem::take(&mut answer.unplaced).into_iter().flat_map(split).collect();
    let unplaced = chunks(unplaced);
    let empty = ComputePlanResponse::default;
    let mut parts = vec![answer];
    parts.extend(nodes.into_iter().map(|nodes| ComputePlanResponse { nodes, ..empty() }));
    parts.extend(
        placements.into_iter().map(|placements| ComputePlanResponse { placements, ..empty() }),
    );
    parts.extend(unplaced.into_iter().map(|unplaced| ComputePlanResponse { unplaced, ..empty() }));
    parts
}

/// Runs of items that together are about as large as a chunk of a snapshot.
fn chunks<M: Message>(items: Vec<M>) -> Vec<Vec<M>> {
    let mut chunks: Vec<Vec<M>> = Vec::new();
    let mut size = 0;
    for item in items {
        let more = item.encoded_len();
        match chunks.last_mut() {
            Some(chunk) if size + more <= CHUNK_BYTES_TARGET => {
                chunk.push(item);
                size += more;
            }
            _ => {
                chunks.push(vec![item]);
                size = more;
            }
        }
    }
    chunks
}

/// A group of pods as several smaller ones; one that names no pods stays whole.
fn split(group: Unplaced) -> Vec<Unplaced> {
    if group.pods.len() <= PODS_MAX {
        return vec![group];
    }
    let part = |pods: &[String]| Unplaced {
        pods: pods.to_vec(),
        count: u32::try_from(pods.len()).unwrap_or(u32::MAX),
        shape_id: group.shape_id.clone(),
        reason: group.reason.clone(),
    };
    group.pods.chunks(PODS_MAX).map(part).collect()
}
