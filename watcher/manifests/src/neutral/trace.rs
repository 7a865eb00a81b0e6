//! The published trace of a GPU cluster, OpenB: CSV with a line for each pod, of which CPU and
//! memory count here. Neutral catalogues know no GPUs, so those of a pod are ignored.
//!
//! Invariant: every line is one pod, whatever became of it; lines of equal requests are one row.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Demand;

/// The columns that count; the others are passed over.
#[derive(Debug, Deserialize)]
struct Line {
    cpu_milli: i64,
    memory_mib: i64,
}

/// Rows of a trace, in order of their requests.
pub(super) fn demand(text: &str) -> Result<Vec<Demand>, String> {
    let mut rows: BTreeMap<(i64, i64), u32> = BTreeMap::new();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    // Also where no line follows: a file of another form would otherwise be a trace of no pods.
    let titles = reader.headers().map_err(|error| error.to_string())?;
    for title in ["cpu_milli", "memory_mib"] {
        if titles.iter().all(|found| found != title) {
            return Err(format!("its first line names no column {title}"));
        }
    }
    for line in reader.deserialize() {
        let Line { cpu_milli, memory_mib } = line.map_err(|error| error.to_string())?;
        if cpu_milli < 0 || memory_mib < 0 {
            return Err(format!("a pod requests {cpu_milli}m and {memory_mib} MiB"));
        }
        *rows.entry((cpu_milli, memory_mib)).or_default() += 1;
    }
    let row = |((cpu_millis, memory_mib), count)| Demand { cpu_millis, memory_mib, count };
    Ok(rows.into_iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_of_equal_requests_are_one_row_and_gpus_are_ignored() {
        let text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase\n\
                    a,12000,16384,1,1000,,LS,Running\n\
                    b,6000,12288,1,460,V100M16|V100M32,LS,Failed\n\
                    c,12000,16384,0,0,,BE,Succeeded\n";
        let rows = demand(text).unwrap();
        let shown: Vec<_> = rows.iter().map(|r| (r.cpu_millis, r.memory_mib, r.count)).collect();
        assert_eq!(shown, [(6000, 12288, 1), (12000, 16384, 2)]);
    }

    #[test]
    fn a_file_of_another_form_is_refused_by_what_it_lacks() {
        assert!(demand("name,cpu\na,1\n").unwrap_err().contains("cpu_milli"));
        assert!(demand("{\"kind\": \"List\", \"items\": []}").unwrap_err().contains("cpu_milli"));
        assert!(demand("").unwrap_err().contains("cpu_milli"));
        assert_eq!(demand("cpu_milli,memory_mib\n").unwrap(), []);
        assert!(demand("cpu_milli,memory_mib\n-1,4\n").unwrap_err().contains("-1m"));
        assert!(demand("cpu_milli,memory_mib\nx,4\n").unwrap_err().contains("line: 2"));
    }
}
