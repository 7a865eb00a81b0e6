//! A trace drawn as a waterfall in the terminal.
//!
//! Invariant: children stand below their parent, in order of start; every line fits the width.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::SpanRecord;

/// Columns for names.
const NAME_WIDTH: usize = 44;
/// Most lines; longer traces end in a count of what is left out.
const LINES_MAX: usize = 40;

/// Draws the spans of one trace, `width` columns wide.
#[must_use]
pub fn draw(spans: &[SpanRecord], width: usize) -> String {
    let Some(start_ns) = spans.iter().map(|span| span.start_ns).min() else {
        return "no spans\n".to_owned();
    };
    let end_ns = spans.iter().map(|span| span.end_ns).max().unwrap_or(start_ns);
    let scale = Scale {
        start_ns,
        length_ns: end_ns.saturating_sub(start_ns).max(1),
        columns: width.saturating_sub(NAME_WIDTH + 12).max(10),
    };
    let lines = ordered(spans);
    let mut drawing = String::new();
    for (depth, span) in lines.iter().take(LINES_MAX) {
        line(&mut drawing, *depth, span, &scale);
    }
    if lines.len() > LINES_MAX {
        let _ = writeln!(drawing, "… and {} more spans", lines.len() - LINES_MAX);
    }
    drawing
}

struct Scale {
    start_ns: u64,
    length_ns: u64,
    columns: usize,
}

impl Scale {
    /// Column of a time.
    fn column(&self, time_ns: u64) -> usize {
        let columns = u128::try_from(self.columns).unwrap_or(u128::MAX);
        let offset = u128::from(time_ns.saturating_sub(self.start_ns));
        let column = offset * columns / u128::from(self.length_ns);
        usize::try_from(column).unwrap_or(self.columns).min(self.columns)
    }
}

fn line(drawing: &mut String, depth: usize, span: &SpanRecord, scale: &Scale) {
    let service = span.service.trim_start_matches("longshore-");
    let mut name = format!("{:indent$}{} · {service}", "", span.name, indent = 2 * depth);
    if name.chars().count() > NAME_WIDTH {
        name = name.chars().take(NAME_WIDTH - 1).chain(['…']).collect();
    }
    let (from, to) = (scale.column(span.start_ns), scale.column(span.end_ns));
    let length = (to - from).max(1);
    let bar = format!("{:from$}{:█<length$}", "", "");
    let micros = span.end_ns.saturating_sub(span.start_ns) / 1000;
    let time = if micros >= 10_000 {
        format!("{} ms", micros / 1000)
    } else {
        format!("{}.{:03} ms", micros / 1000, micros % 1000)
    };
    let columns = scale.columns + 1;
    let _ = writeln!(drawing, "{name:<NAME_WIDTH$} {bar:<columns$} {time:>10}");
}

/// Spans with their depth, parents before children. A span whose parent was not received counts
/// as a root.
fn ordered(spans: &[SpanRecord]) -> Vec<(usize, &SpanRecord)> {
    let known = |id: &str| spans.iter().any(|span| span.span_id == id);
    let mut children: BTreeMap<&str, Vec<&SpanRecord>> = BTreeMap::new();
    for span in spans {
        let parent = if known(&span.parent_id) { span.parent_id.as_str() } else { "" };
        children.entry(parent).or_default().push(span);
    }
    let mut stack: Vec<(usize, &SpanRecord)> = Vec::new();
    let mut lines = Vec::new();
    let push = |stack: &mut Vec<_>, depth, parent: &str| {
        let below = children.get(parent).into_iter().flatten().rev();
        stack.extend(below.map(|span| (depth, *span)));
    };
    push(&mut stack, 0, "");
    while let Some((depth, span)) = stack.pop() {
        lines.push((depth, span));
        push(&mut stack, depth + 1, &span.span_id);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(id: &str, parent: &str, start_ms: u64, end_ms: u64) -> SpanRecord {
        SpanRecord {
            trace_id: "t".to_owned(),
            span_id: id.to_owned(),
            parent_id: parent.to_owned(),
            name: format!("span {id}"),
            service: "longshore-watcher".to_owned(),
            start_ns: start_ms * 1_000_000,
            end_ns: end_ms * 1_000_000,
            attributes: BTreeMap::new(),
        }
    }

    #[test]
    fn children_stand_below_their_parents_on_the_same_scale() {
        let spans = [span("a", "", 0, 100), span("b", "a", 50, 100), span("c", "lost", 10, 20)];
        let drawing = draw(&spans, 120);
        let lines: Vec<&str> = drawing.lines().collect();
        assert!(lines[0].starts_with("span a · watcher"), "{drawing}");
        assert!(lines[1].starts_with("  span b · watcher"), "{drawing}");
        assert!(lines[2].starts_with("span c"), "{drawing}");
        let bars = |line: &str| line.chars().filter(|character| *character == '█').count();
        assert_eq!(bars(lines[1]), bars(lines[0]) / 2);
    }
}
