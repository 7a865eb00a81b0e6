//! Writes the custom resource definitions into a folder: `crds deploy/crds`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Parser;
use longshore_watcher::api::Kind;

/// Generates the custom resource definitions from their types.
#[derive(Parser)]
struct Args {
    /// Folder to write to; files of the same name are replaced.
    folder: PathBuf,
}

fn main() -> Result<()> {
    let Args { folder } = Args::parse();
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    for kind in Kind::ALL {
        let file = folder.join(kind.file_name());
        fs::write(&file, kind.file_content()?)
            .with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}
