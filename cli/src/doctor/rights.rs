//! `longshore doctor --rights`: who may call what, as the servers have it.
//!
//! Invariant: printed from the table that they ask.

use comfy_table::Table;
use longshore_runtime::authorise::TABLE;
use serde::Serialize;

use crate::args::Output;
use crate::terminal::{Answer, Ending, Style, table_text};

const NOTE: &str = "\
cluster, scheduler and actuator are the kinds of our own certificates; plan, explain and watch are given to
clients by their names, with --clients of the server that they call. A watcher speaks for the cluster in
its certificate and for no other. What is not in the table nobody may call.";

#[derive(Serialize)]
struct Row {
    method: &'static str,
    rights: Vec<String>,
}

pub(super) fn answer(output: Output, style: Style) -> Answer {
    let rows = TABLE.iter().map(|(method, rights)| Row {
        method,
        rights: rights.iter().map(ToString::to_string).collect(),
    });
    let rows: Vec<Row> = rows.collect();
    let text = match output {
        Output::Table => format!("{}\n{NOTE}\n", table_text(&table(&rows, style))),
        Output::Json => match serde_json::to_string_pretty(&rows) {
            Ok(json) => json + "\n",
            Err(error) => return Answer::error(Ending::Failed, &error),
        },
    };
    Answer { text, ..Answer::default() }
}

fn table(rows: &[Row], style: Style) -> Table {
    let mut table = style.table(&["METHOD", "WHO MAY CALL IT"]);
    for Row { method, rights } in rows {
        // An entry that ends in a slash stands for all of its service.
        let method = method.trim_start_matches('/').trim_end_matches('/');
        table.add_row([method.to_owned(), rights.join(", ")]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_has_a_row() {
        let told = answer(Output::Table, Style::default()).text;
        let row = "longshore.cluster.v1.ClusterService/Sync";
        let line = told.lines().find(|line| line.starts_with(row)).unwrap();
        assert!(line.ends_with("cluster"), "{line}");
        let methods = told.lines().filter(|line| line.contains('.') && line.contains('/'));
        assert_eq!(methods.count(), 10);
        let json: serde_json::Value =
            serde_json::from_str(&answer(Output::Json, Style::default()).text).unwrap();
        assert_eq!(json.as_array().map(Vec::len), Some(TABLE.len()));
    }
}
