//! docs/benchmarks.svg: how far both sides' prices lie above the proven bound.
//!
//! Invariant: drawn from the rows of the tables, one bar for each side, and nothing left out but
//! rows without a peer or without a bound.

use super::numbers::{count, float};
use super::runs::Row;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 300.0;
const ROW_HEIGHT: f64 = 34.0;
const TOP: f64 = 56.0;
/// Ratios drawn at full width; a longer bar ends there and says its number.
const RATIO_MAX: f64 = 2.0;

/// The chart.
#[must_use]
pub fn svg(rows: &[Row]) -> String {
    let drawn: Vec<Bars> = rows.iter().filter_map(bars).collect();
    let height = TOP + ROW_HEIGHT * float(count(drawn.len())) + 16.0;
    let bars: String = drawn.iter().enumerate().map(|(n, it)| group(count(n), it)).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"24\" font-size=\"15\">Price over the proven lower bound: 1 cannot be \
         beaten</text>\n{}{}{bars}</svg>\n",
        legend(16.0, OURS, "Longshore"),
        legend(116.0, PEER, "Karpenter"),
    )
}

/// Colour of what is ours.
pub(super) const OURS: &str = "#1f6feb";
/// Colour of the peer.
pub(super) const PEER: &str = "#b0b7c3";

struct Bars {
    name: String,
    ours: f64,
    peer: f64,
}

fn bars(row: &Row) -> Option<Bars> {
    let ours = row.over_bound()?;
    let peer = ours / row.price_ratio()?;
    Some(Bars { name: format!("{}, {}", row.case.workload, row.case.pool.name()), ours, peer })
}

fn legend(x: f64, colour: &str, name: &str) -> String {
    format!(
        "<rect x=\"{x}\" y=\"34\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
         <text x=\"{}\" y=\"44\">{name}</text>\n",
        x + 18.0
    )
}

fn group(number: u64, bars: &Bars) -> String {
    let y = TOP + ROW_HEIGHT * float(number);
    format!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n{}{}",
        LEFT - 8.0,
        y + 18.0,
        bars.name,
        bar(y + 2.0, bars.ours, OURS),
        bar(y + 16.0, bars.peer, PEER),
    )
}

fn bar(y: f64, ratio: f64, colour: &str) -> String {
    let width = (WIDTH - LEFT - 60.0) * ratio.min(RATIO_MAX) / RATIO_MAX;
    format!(
        "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"12\" fill=\"{colour}\"/>\
         <text x=\"{:.1}\" y=\"{}\">{ratio:.3}</text>\n",
        LEFT + width + 5.0,
        y + 10.0,
    )
}
