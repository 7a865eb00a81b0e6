//! docs/install.md, followed.
//!
//! Invariant: its commands are run as they stand there, once names in capitals have been replaced;
//! one that is not found is an error.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use longshore_it::stage::world::ROOT;
use longshore_lab::region::ACCOUNT;
use regex::{Captures, Regex};

use super::site::{CLUSTER, REGION, Site};

/// The document.
pub struct Guide {
    text: String,
    /// How many of its commands have been run.
    pub commands: usize,
}

impl Guide {
    /// Reads it, with the site's names.
    pub fn read(site: &Site) -> Result<Self> {
        let text = std::fs::read_to_string(Path::new(ROOT).join("docs/install.md"))?;
        let names = Regex::new(r"\b(REGISTRY|ACCOUNT|REGION|CLUSTER)\b")?;
        let named = |found: &Captures| match &found[1] {
            "REGISTRY" => "images.test",
            "ACCOUNT" => ACCOUNT,
            "REGION" => REGION,
            _ => CLUSTER,
        };
        let text = names.replace_all(&text, |found: &Captures| named(found).to_owned());
        Ok(Self { text: text.replace("https://etcd:2379", site.etcd()), commands: 0 })
    }

    /// Runs the commands below a heading, or with `HEADING: START` the one that starts so.
    pub fn follow(&mut self, which: &str, site: &Site) -> Result<()> {
        let (heading, start) = which.split_once(": ").unwrap_or((which, ""));
        let mut commands = self.commands(heading)?;
        commands.retain(|command| command.starts_with(start));
        if !start.is_empty() {
            commands.truncate(1);
        }
        ensure!(!commands.is_empty(), "docs/install.md has no command for {which:?}");
        for command in commands {
            site.shell.run(&command)?;
            self.commands += 1;
        }
        Ok(())
    }

    /// The commands below a heading: what is indented by four, joined where a line goes on.
    fn commands(&self, heading: &str) -> Result<Vec<String>> {
        let mut sections = self.text.split("\n## ");
        let found = sections.find(|section| section.starts_with(heading));
        let found = found.with_context(|| format!("docs/install.md has no heading {heading:?}"))?;
        let lines = found.lines().filter_map(|line| line.strip_prefix("    "));
        let lines: Vec<&str> = lines.collect();
        Ok(lines.join("\n").replace("\\\n", "").lines().map(str::to_owned).collect())
    }
}
