//! The one place that prints.
//!
//! Invariant: answers go to stdout and remarks to stderr, so that an answer can be piped; nothing
//! is coloured or cut to a width unless a person at a terminal reads it.

use std::io::{self, IsTerminal as _, Write as _};

use clap::builder::styling::AnsiColor;
use comfy_table::{Attribute, Cell, ContentArrangement, Table, presets};

/// How text is to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Colours and bold type.
    pub colour: bool,
    /// Columns of the terminal; none when there is none.
    pub width: Option<u16>,
}

impl Style {
    /// The style for this process's stdout.
    #[must_use]
    pub fn detect(no_colour: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        Self { colour: terminal && !no_colour, width: Table::new().width().filter(|_| terminal) }
    }

    /// A table without lines, with a header.
    #[must_use]
    pub fn table(self, header: &[&str]) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).force_no_tty();
        if self.colour {
            table.enforce_styling();
        }
        if let Some(width) = self.width {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        let bold = |text: &&str| Cell::new(text).add_attribute(Attribute::Bold);
        table.set_header(header.iter().map(bold).collect::<Vec<_>>());
        table
    }

    /// A word in bold type and a colour.
    #[must_use]
    pub fn marked(self, text: &str, colour: AnsiColor) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let style = colour.on_default().bold();
        format!("{}{text}{}", style.render(), style.render_reset())
    }
}

/// Text of a table, without the blanks that lines begin and end with.
#[must_use]
pub fn table_text(table: &Table) -> String {
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    let lines: Vec<String> = lines.map(|l| l.strip_prefix(' ').unwrap_or(&l).to_owned()).collect();
    lines.join("\n") + "\n"
}

/// How a command ended; its number is the exit code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ending {
    /// All is well.
    #[default]
    Well = 0,
    /// Something outside the command failed: a network, a server.
    Failed = 1,
    /// The input cannot be used.
    BadInput = 2,
    /// The answer is complete, and something in it needs attention.
    Attention = 3,
}

/// What a command has to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The answer.
    pub text: String,
    /// Remarks beside it, one line or paragraph each.
    pub remarks: Vec<String>,
    /// How it ended.
    pub ending: Ending,
}

impl Answer {
    /// An answer that consists of an error.
    #[must_use]
    pub fn error(ending: Ending, error: &dyn std::fmt::Display) -> Self {
        Self { text: String::new(), remarks: vec![format!("error: {error}")], ending }
    }

    /// Prints the answer. A reader that went away is no error.
    pub fn print(&self) {
        for remark in &self.remarks {
            let _ = writeln!(io::stderr(), "{remark}");
        }
        let _ = io::stdout().write_all(self.text.as_bytes());
    }
}
