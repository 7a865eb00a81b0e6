//! What may be in the repository: small files, whole lines, no addresses of somebody's machine.

use anyhow::Result;
use regex::Regex;

use super::{expect_none, files, root, text_files};

const FILE_BYTES_MAX: u64 = 1024 * 1024;

#[test]
fn no_file_is_large() -> Result<()> {
    let mut breaches = Vec::new();
    for path in files()? {
        let bytes = root().join(&path).metadata()?.len();
        if bytes > FILE_BYTES_MAX {
            breaches.push(format!("{path}: {bytes} bytes"));
        }
    }
    expect_none(&breaches, "keep what can be generated out of git, or compress it below 1 MiB");
    Ok(())
}

#[test]
fn files_end_with_a_newline() -> Result<()> {
    let open = text_files(|_| true)?.into_iter().filter(|file| !ends_well(&file.text));
    let breaches: Vec<String> = open.map(|file| file.path).collect();
    expect_none(&breaches, "end the file with exactly one newline");
    Ok(())
}

#[test]
fn nothing_points_to_one_machine() -> Result<()> {
    let mut breaches = Vec::new();
    for file in text_files(|path| !path.ends_with(".lock") && !path.ends_with("go.sum"))? {
        let found = private_places(&file.text)?;
        breaches.extend(found.into_iter().map(|it| format!("{}: {it}", file.path)));
    }
    expect_none(
        &breaches,
        "say it in the project's own words: a user has other folders and mirrors",
    );
    Ok(())
}

#[test]
fn parts_built_from_modules_have_one_version() -> Result<()> {
    let versions = std::fs::read_to_string(root().join("tools/parts/versions"))?;
    let mut breaches = Vec::new();
    for file in text_files(|path| path.starts_with("tools/parts/") && path.ends_with("go.mod"))? {
        let part = file.path.split('/').nth(2).unwrap_or_default();
        let version = part_version(&versions, part);
        if !version.is_some_and(|version| requires(&file.text, version)) {
            breaches.push(format!("{} does not require {part} {version:?}", file.path));
        }
    }
    expect_none(&breaches, "write the version of tools/parts/versions into the require lines");
    Ok(())
}

#[test]
fn the_peer_is_what_its_part_says() -> Result<()> {
    let versions = std::fs::read_to_string(root().join("tools/parts/versions"))?;
    let module = std::fs::read_to_string(root().join("integration-tests/peer/go.mod"))?;
    let version = part_version(&versions, "peer").unwrap_or_default();
    let line = format!("\tsigs.k8s.io/karpenter v{version}");
    let missing = !module.lines().any(|it| it == line);
    let breaches: Vec<String> = missing.then_some(line).into_iter().collect();
    expect_none(&breaches, "write the version of tools/parts/versions into the peer's go.mod");
    Ok(())
}

fn part_version<'a>(versions: &'a str, part: &str) -> Option<&'a str> {
    let mut lines = versions.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next() == Some(part)).then(|| words.next()).flatten())
}

/// Whether all that a go.mod requires has this version.
fn requires(module: &str, version: &str) -> bool {
    let before_replace = module.split("replace (").next().unwrap_or_default();
    let code = before_replace.lines().filter(|line| !line.starts_with("//"));
    let mut required = code.filter_map(|line| line.split_once(" v"));
    let wanted = |(_, found): (&str, &str)| found == version;
    required.clone().next().is_some() && required.all(wanted)
}

fn ends_well(text: &str) -> bool {
    text.is_empty() || (text.ends_with('\n') && !text.ends_with("\n\n"))
}

/// Package registries' hosts (each user has a mirror of their own) and folders outside the
/// checkout.
fn private_places(text: &str) -> Result<Vec<String>> {
    // The dots are written so that this file does not break its own rule.
    let hosts = [
        r"pypi[.]org",
        r"pythonhosted[.]org",
        r"proxy[.]golang[.]org",
        r"sum[.]golang[.]org",
        r"registry[.]npmjs[.]org",
        r"(?:index|static)[.]crates[.]io",
        r"deb[.]debian[.]org",
        r"repo1?[.]maven",
        r"artifactory[/.]",
    ];
    let folders = [r"\B/work[/]", r"\B/root[/]", r"\bshared[/](?:design|spec|data|hooks)\b"];
    let place = Regex::new(&[hosts.join("|"), folders.join("|")].join("|"))?;
    Ok(place.find_iter(text).map(|it| it.as_str().to_owned()).collect())
}

#[test]
fn versions_are_compared() {
    let versions = "# parts\netcd   3.6.14  a store\n";
    assert_eq!(part_version(versions, "etcd"), Some("3.6.14"));
    assert_eq!(part_version(versions, "helm"), None);
    let module = "// not v0.0.0\ngo 1.26.0\nrequire (\n\ta/v3 v3.6.14\n\tb/v3 v3.6.14\n)\nreplace (\n\tc => c v0.1.0\n)\n";
    assert!(requires(module, "3.6.14") && !requires(module, "3.6.15") && !requires("", "3.6.14"));
}

#[test]
fn places_and_ends_are_seen() -> Result<()> {
    let hosts = ["pypi.", "org index.crates.", "io"].concat();
    assert_eq!(
        private_places(&hosts)?,
        [["pypi", "org"], ["index.crates", "io"]].map(|it| it.join("."))
    );
    assert_eq!(private_places(&format!("see /{}/x and {}/spec", "root", "shared"))?.len(), 2);
    let harmless = format!("a network/{}/group; shared by all", "work");
    assert_eq!(private_places(&harmless)?, Vec::<String>::new());
    assert!(ends_well("a\n") && ends_well("") && !ends_well("a") && !ends_well("a\n\n"));
    Ok(())
}
