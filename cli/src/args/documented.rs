//! docs/cli.md says what the programs' arguments are.
//!
//! Invariant: a flag that is named there exists in some program, with its variable and value; each
//! setting of how plans are made is in its table.

use std::collections::BTreeMap;

use clap::{Arg, Args as _, Command, CommandFactory as _};
use longshore_scheduler::settings::SettingsArgs;

const DOCUMENT: &str = include_str!("../../../docs/cli.md");

/// All arguments of all programs, by their long names.
fn arguments() -> BTreeMap<String, Arg> {
    fn collect(command: &Command, all: &mut BTreeMap<String, Arg>) {
        let long = |arg: &Arg| Some((arg.get_long()?.to_owned(), arg.clone()));
        all.extend(command.get_arguments().filter_map(long));
        command.get_subcommands().for_each(|inner| collect(inner, all));
    }
    let mut all = BTreeMap::new();
    for program in [
        super::Args::command(),
        longshore_scheduler::args::Args::command(),
        longshore_actuator::config::Args::command(),
        longshore_watcher::args::Args::command(),
    ] {
        collect(&program, &mut all);
    }
    all
}

/// Names of the flags in a piece of text.
fn flags(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
    words.filter_map(|word| word.strip_prefix("--")).filter(|name| !name.is_empty())
}

/// Flag, value and variable of each row of a table of flags.
fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    DOCUMENT.lines().filter_map(|line| {
        let (flag, rest) = line.strip_prefix("| `--")?.split_once("` | `")?;
        let (name, value) = flag.split_once(' ').unwrap_or((flag, ""));
        Some((name, value, rest.split('`').next()?))
    })
}

#[test]
fn flags_of_the_document_exist() {
    let known = arguments();
    let (spans, lines) = (DOCUMENT.split('`').skip(1).step_by(2), DOCUMENT.lines());
    let examples = lines.filter(|line| line.starts_with("    longshore"));
    let unknown = spans.chain(examples).flat_map(flags).filter(|name| !known.contains_key(*name));
    assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&str>::new(), "mend docs/cli.md");
}

#[test]
fn the_tables_values_and_variables_are_those_of_the_programs() {
    let known = arguments();
    let mut seen = 0;
    for (name, value, variable) in rows() {
        let arg = &known[name];
        assert_eq!(arg.get_env().and_then(|name| name.to_str()), Some(variable), "--{name}");
        let own = arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string);
        let choices = arg.get_possible_values();
        let choices: Vec<&str> = choices.iter().map(|choice| choice.get_name()).collect();
        let choices = choices.join("\\|");
        assert!(own.chain([choices]).any(|one| one == value), "--{name} takes no {value}");
        seen += 1;
    }
    assert!(seen > 0, "no table of flags was found");
}

#[test]
fn every_setting_is_in_the_table() {
    let settings = SettingsArgs::augment_args(Command::new("settings"));
    let missing: Vec<&str> = settings
        .get_arguments()
        .filter_map(Arg::get_long)
        .filter(|name| rows().all(|(known, ..)| known != *name))
        .collect();
    assert_eq!(missing, Vec::<&str>::new(), "add them to the table in docs/cli.md");
}
