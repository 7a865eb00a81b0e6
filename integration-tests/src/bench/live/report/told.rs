//! What each contender told its users, in the words of its Events and conditions.
//!
//! Invariant: shown of the first run of each that has any; runs of before this was kept have none.

use crate::bench::live::args::{CaseName, Contender};
use crate::bench::live::results::{Results, Run};
use crate::bench::live::script::told::Told;

/// The lists of a case; none where nothing was kept.
#[must_use]
pub fn lists(case: CaseName, results: &Results) -> Vec<String> {
    let contenders = [(Contender::Longshore, "Longshore"), (Contender::Karpenter, "Karpenter")];
    let of = |(contender, name): (Contender, &'static str)| {
        let mut runs =
            results.runs.iter().filter(|it| it.case == case && it.contender == contender);
        let run: Option<&Run> = runs.find(|run| !run.told.is_empty());
        run.into_iter().flat_map(|run| &run.told).map(move |told| list(name, told))
    };
    contenders.into_iter().flat_map(of).collect()
}

fn list(name: &str, told: &Told) -> String {
    let head =
        format!("What {name} told in `{}`, and of how many objects or how often:", told.phase);
    if told.lines.is_empty() {
        return format!("{head} nothing.");
    }
    let line = |(text, times): &(String, usize)| format!("- {times}: {}", text.replace('`', "'"));
    let lines: Vec<String> = told.lines.iter().map(line).collect();
    format!("{head}\n\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use crate::bench::live::results::Origin;

    use super::*;

    fn run(contender: Contender, told: Vec<Told>) -> Run {
        Run { told, ..Run::begun((CaseName::Blocked, 1, contender), &Origin::default()) }
    }

    #[test]
    fn who_told_something_has_a_list() {
        let lines = vec![("NodeClaim, condition Drained False: 1 pod".to_owned(), 3)];
        let of = |lines| vec![Told { phase: "held".to_owned(), lines }];
        let runs = vec![
            run(Contender::Longshore, Vec::new()),
            run(Contender::Longshore, of(lines)),
            run(Contender::Karpenter, of(Vec::new())),
        ];
        let results = Results { runs };
        let [ours, peers] = &lists(CaseName::Blocked, &results)[..] else { panic!("two lists") };
        assert!(ours.ends_with(":\n\n- 3: NodeClaim, condition Drained False: 1 pod"), "{ours}");
        assert!(peers.starts_with("What Karpenter told in `held`") && peers.ends_with("nothing."));
        assert!(lists(CaseName::One, &results).is_empty());
    }

    /// A run as it was kept before there was any of this.
    #[test]
    fn runs_of_before_are_read() {
        let kept = r#"{"case":"one","contender":"longshore","number":1,"phases":[{"contender":
            "longshore","span":{"name":"out","goal":{"kind":"run","pods":1},"limit_s":240,
            "began_ms":1,"goal_ms":2,"end_ms":3,"is_settled":true,"running":1,"usage":[{"cpu_ms":1,
            "peak_rss_bytes":1},{"cpu_ms":1,"peak_rss_bytes":1},{"cpu_ms":1,"peak_rss_bytes":1}]},
            "figures":{"first_call_ms":1,"last_call_ms":1,"calls_to_goal":1,"goal_ms":1,
            "goal_less_boot_ms":0,"at_goal":{"instances":1,"micro_usd_per_hour":1},"at_end":
            {"instances":1,"micro_usd_per_hour":1},"settled_ms":1,"launches":1,"evictions":0,
            "cloud":{},"api":{},"writes":[1,1],"events":1,"cpu_ms":[1,1],"peak_rss_bytes":1}}],
            "error":null}"#;
        let run: Run = serde_json::from_str(kept).unwrap();
        let [played] = &run.phases[..] else { panic!("one phase") };
        assert_eq!((played.figures.away, played.figures.instance_ms), (None, None));
        assert!(run.told.is_empty() && played.span.away.is_none());
    }
}
