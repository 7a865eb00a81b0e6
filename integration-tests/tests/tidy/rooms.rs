//! The house is one to live in: folders are rooms, files form no circles, words are the field's.
//!
//! Invariant: each rule is a pure function over paths and text.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use regex::Regex;

use super::{TextFile, expect_none, rust_files};

/// Most files of unlike things in one folder of the planner, roots of folders apart.
const ROOM_FILES_MAX: usize = 10;
/// Widest comment, in characters.
const COMMENT_WIDTH_MAX: usize = 100;
/// Words that the planner once had for things that the field has names for.
const BANNED: [&str; 12] = [
    "Goods", "goods", "Stall", "stall", "Scene", "scene", "Shelf", "shelf", "glean", "kindred",
    "strewn", "wishes",
];

const CORE: &str = "scheduler/core/src/";

#[test]
fn rooms_of_the_planner_stay_small() -> Result<()> {
    let paths: Vec<String> = rust_files()?.into_iter().map(|file| file.path).collect();
    let rooms = rooms(&paths);
    if let Some((folder, count)) = rooms.iter().max_by_key(|(_, count)| **count) {
        println!(
            "size: {} rooms of the planner, the largest {folder} with {count} files",
            rooms.len()
        );
    }
    expect_none(&crowded(&rooms), "give some of them a folder of their own");
    Ok(())
}

/// Folders below the planner's, and how many files of each are no root of a folder.
fn rooms(paths: &[String]) -> BTreeMap<&str, usize> {
    let mut rooms: BTreeMap<&str, usize> = BTreeMap::new();
    for path in paths.iter().filter(|path| path.starts_with(CORE)) {
        let Some((folder, _)) = path.rsplit_once('/') else { continue };
        let own = format!("{}/", path.trim_end_matches(".rs"));
        let is_root = paths.iter().any(|other| other.starts_with(&own));
        *rooms.entry(folder).or_default() += usize::from(!is_root);
    }
    rooms
}

fn crowded(rooms: &BTreeMap<&str, usize>) -> Vec<String> {
    let over = rooms.iter().filter(|(_, count)| **count > ROOM_FILES_MAX);
    over.map(|(folder, count)| format!("{folder}: {count} files")).collect()
}

#[test]
fn there_is_one_module_style() -> Result<()> {
    let roots = rust_files()?.into_iter().filter(|file| file.path.ends_with("/mod.rs"));
    let roots: Vec<String> = roots.map(|file| file.path).collect();
    expect_none(&roots, "name it after its folder, beside it");
    Ok(())
}

#[test]
fn comments_are_narrow() -> Result<()> {
    let wide = rust_files()?.iter().flat_map(wide_comments).collect::<Vec<_>>();
    expect_none(&wide, "break the line");
    Ok(())
}

fn wide_comments(file: &TextFile) -> Vec<String> {
    let lines = file.text.lines().enumerate();
    let wide = lines.filter(|(_, line)| {
        line.trim_start().starts_with("//") && line.chars().count() > COMMENT_WIDTH_MAX
    });
    wide.map(|(at, _)| format!("{}:{}", file.path, at + 1)).collect()
}

#[test]
fn the_planner_speaks_the_fields_language() -> Result<()> {
    let words = Regex::new(&format!(r"\b({})\b", BANNED.join("|")))?;
    let core = rust_files()?.into_iter().filter(|file| file.path.starts_with(CORE));
    let found: Vec<String> = core.flat_map(|file| private_words(&file, &words)).collect();
    println!("size: {} of {} private words in the planner", found.len(), BANNED.len());
    expect_none(&found, "use the word of docs/glossary.md");
    Ok(())
}

fn private_words(file: &TextFile, words: &Regex) -> Vec<String> {
    let found = words.find_iter(&file.text);
    let found: BTreeSet<&str> = found.map(|word| word.as_str()).collect();
    found.into_iter().map(|word| format!("{}: {word}", file.path)).collect()
}

#[test]
fn files_form_no_circles() -> Result<()> {
    let mut sources: BTreeMap<String, Vec<TextFile>> = BTreeMap::new();
    for file in rust_files()?.into_iter().filter(|file| !is_test(&file.path)) {
        let Some((root, _)) = file.path.split_once("/src/") else { continue };
        sources.entry(format!("{root}/src/")).or_default().push(file);
    }
    let mut circles = Vec::new();
    for (root, files) in &sources {
        let found = self::circles(&uses(root, files)?);
        circles.extend(found.into_iter().map(|circle| format!("{root}: {}", circle.join(" "))));
    }
    let files: usize = sources.values().map(Vec::len).sum();
    println!("size: {} circles among {files} files", circles.len());
    expect_none(&circles, "move what they share below both");
    Ok(())
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Which modules each module of a crate names, parents and children apart.
fn uses(root: &str, files: &[TextFile]) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let path = Regex::new(r"\b(?:crate|self|super)(?:::\w+)*(?:::\{[^;]*\})?")?;
    let modules: BTreeSet<String> = files.iter().map(|file| module(root, &file.path)).collect();
    let mut uses = BTreeMap::new();
    for file in files {
        let own = module(root, &file.path);
        let text = without_comments_and_tests(&file.text);
        let named = path.find_iter(&text).flat_map(|found| expanded(found.as_str()));
        let resolved = named.filter_map(|path| resolve(&own, &path, &modules));
        let beside = |other: &String| !is_within(other, &own) && !is_within(&own, other);
        uses.insert(own.clone(), resolved.filter(beside).collect());
    }
    Ok(uses)
}

/// A module's path from its crate's root, with `/`; empty for the root itself.
fn module(root: &str, path: &str) -> String {
    let path = path.trim_start_matches(root).trim_end_matches(".rs");
    if matches!(path, "lib" | "main") { String::new() } else { path.to_owned() }
}

fn is_within(inner: &str, outer: &str) -> bool {
    outer.is_empty() || inner == outer || inner.starts_with(&format!("{outer}/"))
}

fn without_comments_and_tests(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// All paths that a path with braces stands for.
fn expanded(path: &str) -> Vec<String> {
    let Some((head, tail)) = path.split_once('{') else { return vec![path.to_owned()] };
    let body = tail.trim_end().trim_end_matches('}');
    let (mut depth, mut parts) = (0_usize, vec![String::new()]);
    for letter in body.chars() {
        match letter {
            ',' if depth == 0 => parts.push(String::new()),
            _ => {
                depth =
                    (depth + usize::from(letter == '{')).saturating_sub(usize::from(letter == '}'));
                parts.last_mut().into_iter().for_each(|part| part.push(letter));
            }
        }
    }
    parts.iter().flat_map(|part| expanded(&format!("{head}{}", part.trim()))).collect()
}

/// The module that a path written in `own` names or lies in.
fn resolve(own: &str, path: &str, modules: &BTreeSet<String>) -> Option<String> {
    let mut at: Vec<&str> = own.split('/').filter(|name| !name.is_empty()).collect();
    for name in path.split("::").map(str::trim) {
        match name {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()),
            name => at.push(name.split_whitespace().next()?),
        }
    }
    (1..=at.len()).rev().map(|length| at[..length].join("/")).find(|it| modules.contains(it))
}

/// Modules that name each other, round about; each circle once. Kosaraju's algorithm.
fn circles(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let mut used: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in uses.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to))) {
        used.entry(to).or_default().insert(from);
    }
    let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
    for module in uses.keys() {
        let next = |at: &str| uses.get(at).into_iter().flatten().map(String::as_str).collect();
        visit(module, &next, &mut seen, &mut order);
    }
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for module in order.into_iter().rev() {
        let next = |at: &str| used.get(at).into_iter().flatten().copied().collect();
        let mut circle = Vec::new();
        visit(module, &next, &mut seen, &mut circle);
        circle.sort_unstable();
        if circle.len() > 1 {
            circles.push(circle.into_iter().map(str::to_owned).collect());
        }
    }
    circles
}

/// Adds all that is reached from a module and was not seen, each after what it reaches.
fn visit<'m>(
    module: &'m str,
    next: &impl Fn(&str) -> Vec<&'m str>,
    seen: &mut BTreeSet<&'m str>,
    order: &mut Vec<&'m str>,
) {
    if !seen.insert(module) {
        return;
    }
    for other in next(module) {
        visit(other, next, seen, order);
    }
    order.push(module);
}

#[test]
fn rules_about_rooms_find_what_breaks_them() -> Result<()> {
    let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
    let files = [
        file("a/src/lib.rs", "mod b; mod c; mod d;"),
        file("a/src/b.rs", "use crate::{c::X, d};\nuse self::e::Y;"),
        file("a/src/b/e.rs", "use super::Z;"),
        file("a/src/c.rs", "// crate::b\nfn f() { crate::d::g(); }"),
        file("a/src/d.rs", "use super::b::{e::{Y, W}, Z};"),
    ];
    assert_eq!(circles(&uses("a/src/", &files)?), [["b", "c", "d"]]);
    let many = (0..11).map(|at| format!("{CORE}a/f{at}.rs")).collect::<Vec<_>>();
    assert_eq!(crowded(&rooms(&many)), [format!("{CORE}a: 11 files")]);
    let rooted: Vec<String> = many.iter().cloned().chain([format!("{CORE}a/f0/x.rs")]).collect();
    assert!(crowded(&rooms(&rooted)).is_empty());
    let wide = file("a.rs", &format!("//{}\nlet {}", "x".repeat(99), "y".repeat(200)));
    assert_eq!(wide_comments(&wide), ["a.rs:1"]);
    let words = Regex::new(r"\b(goods)\b")?;
    assert_eq!(private_words(&file("b.rs", "goods; my_goods"), &words), ["b.rs: goods"]);
    Ok(())
}
