//! The table, and docs/cluster.md with it.
//!
//! Invariant: a figure that was not reached is a dash, and the reason stands beside it.

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;

use super::ClusterArgs;
use crate::bench::machine;
use crate::bench::numbers::float;

/// What each program may take, in bytes.
pub const LIMIT_BYTES: u64 = 512 << 20;

/// One figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    name: String,
    value: Option<String>,
    detail: String,
}

impl Measured {
    /// A figure, with its unit.
    #[must_use]
    pub fn new(name: impl Into<String>, value: String) -> Self {
        Self { name: name.into(), value: Some(value), detail: String::new() }
    }

    /// The same with what else there is to know.
    #[must_use]
    pub fn with(self, detail: String) -> Self {
        Self { detail, ..self }
    }

    /// What came to no figure, and why.
    #[must_use]
    pub fn failed(name: &str, error: &anyhow::Error) -> Self {
        let detail = format!("{error:#}").replace('\n', "; ");
        Self { name: name.to_owned(), value: None, detail }
    }

    /// Its cells: what it is, the figure, what else there is to know.
    #[must_use]
    pub fn row(&self) -> [String; 3] {
        let value = self.value.clone().unwrap_or_else(|| "–".to_owned());
        [self.name.clone(), value, self.detail.replace('|', "/")]
    }
}

/// All figures as they are printed.
#[must_use]
pub fn table(measured: &[Measured]) -> String {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(["what", "measured", "detail"]);
    measured.iter().for_each(|measured| {
        table.add_row(measured.row());
    });
    table.to_string()
}

/// The document.
#[must_use]
pub fn document(measured: &[Measured], args: &ClusterArgs) -> String {
    format!(
        "# One large cluster\n\nWritten by `make cluster-bench`; do not edit. Machine: {}. Commit: {}.\n\n{}\n\n\
         - The programs are release builds in processes of their own. The API server, the region and the \
         kubelets are simulated, on the same processors, and there is no kube-scheduler: pods that wait go \
         on waiting.\n\
         - The settled cluster: {} pods of a hundred workloads run on {} nodes of a managed group, and one \
         waits. Settled is a watcher that has used less than a twentieth of a processor for {} s. A pod is \
         replaced by deleting it and creating another on its node, which runs at once.\n\
         - A program that starts: it is killed, {} pods come and are found unschedulable, and it is started \
         again where it was, as a container is in its pod. The first node is a Node object; a plan for \
         all is one that has a place for every pod and holds no launch back. Memory is the largest \
         resident set (VmHWM) since that start; nothing enforces the limit of 512 MiB.\n",
        machine::describe(),
        machine::commit(),
        table(measured),
        args.pods,
        args.nodes,
        args.quiet,
        args.pending,
    )
}

/// Bytes as MiB.
#[must_use]
pub fn megabytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Milliseconds as seconds.
#[must_use]
pub fn seconds(ms: u64) -> String {
    format!("{:.2} s", float(ms) / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_a_row_with_its_reason() {
        let rows = [
            Measured::new("a", seconds(1_500)).with("b|c".to_owned()),
            Measured::failed("d", &anyhow::anyhow!("no\nwatcher")),
        ];
        let table = table(&rows);
        assert!(table.contains("| 1.50 s") && table.contains("b/c"), "{table}");
        assert!(table.contains("| –") && table.contains("no; watcher"), "{table}");
        assert_eq!(megabytes(LIMIT_BYTES), "512 MiB");
    }
}
