//! Files to documents: YAML with any number of documents, JSON, and what `kubectl get -o` writes.
//!
//! Invariant: a document knows where it stands, and a list stands for its items; nothing is read as
//! an object here.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_saphyr::Spanned;

/// Endings of the files that are read from a directory.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file or directory cannot be opened.
    #[error("{path}: {source}; name a readable file or directory, or - for standard input")]
    Open {
        /// What was to be opened.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A directory without manifests.
    #[error("{0}: no file in it ends in .yaml, .yml or .json; name the directory of the manifests")]
    Empty(String),
    /// Malformed text.
    #[error("{file}: {text}\nmend the text at that place: quotes, brackets and indentation")]
    Malformed {
        /// The file.
        file: String,
        /// What is wrong, with line and column.
        text: String,
    },
}

/// One object as its author wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Where it stands.
    pub place: Place,
    /// The object.
    pub value: Value,
}

/// File and line.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// File as the user named it.
    pub file: String,
    /// Line at which the document starts, from 1.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// All documents of files and directories (`-` is standard input), in order of their names.
///
/// # Errors
/// The first file that cannot be opened or is malformed.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Document>, Error> {
    let mut documents = Vec::new();
    for path in paths {
        for file in files(path)? {
            let text = text(&file)?;
            documents.extend(parse(&file.display().to_string(), &text)?);
        }
    }
    Ok(documents)
}

/// Text of a file, or of standard input for `-`.
///
/// # Errors
/// When it cannot be opened or is not UTF-8.
pub fn text(path: &Path) -> Result<String, Error> {
    let read = if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    read.map_err(|source| Error::Open { path: path.display().to_string(), source })
}

fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let name = path.display().to_string();
    let open = |source| Error::Open { path: name.clone(), source };
    let entries = std::fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = entries.map_err(open)?.into_iter().map(|entry| entry.path());
    let ending = |file: &PathBuf| file.extension().and_then(|e| e.to_str()).map(str::to_owned);
    let wanted = |file: &PathBuf| ending(file).is_some_and(|e| ENDINGS.contains(&e.as_str()));
    let mut files: Vec<PathBuf> = all.filter(wanted).collect();
    files.sort_unstable();
    if files.is_empty() { Err(Error::Empty(name)) } else { Ok(files) }
}

/// Documents of one file.
///
/// # Errors
/// When the text is malformed.
pub fn parse(file: &str, text: &str) -> Result<Vec<Document>, Error> {
    let malformed = |text: String| {
        // The reader of YAML does not know the file, and begins like whoever prints the error.
        let text = text.strip_prefix("error: ").unwrap_or(&text).replace("<input>", file);
        Error::Malformed { file: file.to_owned(), text: text.trim_end().to_owned() }
    };
    let place = |line| Place { file: file.to_owned(), line };
    // JSON is YAML, but its own reader is many times faster on the dump of a big cluster.
    if text.trim_start().starts_with('{') {
        let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let values: Result<Vec<Value>, _> = values.collect();
        let values = values.map_err(|error| malformed(error.to_string()))?;
        return Ok(values.into_iter().flat_map(|value| items(&place(1), value)).collect());
    }
    // The file is the user's own, so there is no budget to keep it within.
    let options = serde_saphyr::options! { budget: None };
    let documents: Vec<Spanned<Value>> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| malformed(error.to_string()))?;
    let each = documents.into_iter().map(|found| (found.referenced.line(), found.value));
    Ok(each.flat_map(|(line, value)| items(&place(line), value)).collect())
}

/// The items of a list, or the document itself. Items of a typed list leave out their kind.
fn items(place: &Place, mut value: Value) -> Vec<Document> {
    let list_kind = value["kind"].as_str().and_then(|kind| kind.strip_suffix("List"));
    let Some(kind) = list_kind.map(str::to_owned).filter(|_| value["items"].is_array()) else {
        return vec![Document { place: place.clone(), value }];
    };
    let version = value["apiVersion"].clone();
    let Value::Array(items) = value["items"].take() else { return Vec::new() };
    let named = items.into_iter().map(|mut item| {
        if !kind.is_empty() && item["kind"].is_null() && item.is_object() {
            item["kind"] = kind.as_str().into();
            item["apiVersion"] = version.clone();
        }
        Document { place: place.clone(), value: item }
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_know_their_line_and_lists_are_their_items() {
        let text =
            "# nothing\n---\nkind: A\n---\n\nkind: List\nitems: [{kind: B}, {kind: C}]\n---\n";
        let found = parse("f.yaml", text).unwrap();
        let rows: Vec<_> = found.iter().map(|d| (d.place.line, d.value["kind"].clone())).collect();
        assert_eq!(rows, [(3, json!("A")), (6, json!("B")), (6, json!("C"))]);
        assert_eq!(found[0].place.to_string(), "f.yaml:3");
    }

    #[test]
    fn items_of_a_typed_list_get_its_kind() {
        let text = r#"{"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {}}]}"#;
        let found = parse("f.json", text).unwrap();
        assert_eq!(found[0].value["kind"], "Node");
        assert_eq!(found[0].value["apiVersion"], "v1");
    }

    #[test]
    fn malformed_text_is_shown_with_its_place() {
        let yaml = parse("f.yaml", "a:\n  b: [1, 2\nc: d\n").unwrap_err().to_string();
        assert!(yaml.starts_with("f.yaml: line 3") && yaml.contains("--> f.yaml:3:"), "{yaml}");
        assert!(yaml.contains("mend the text"), "{yaml}");
        let json = parse("f.json", "{\"a\": 1,}").unwrap_err().to_string();
        assert!(json.starts_with("f.json: ") && json.contains("line 1 column 9"), "{json}");
    }

    #[test]
    fn a_directory_without_manifests_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let error = read(&[dir.path().to_owned()]).unwrap_err().to_string();
        assert!(error.contains("no file in it ends in .yaml"), "{error}");
        let error = read(&[dir.path().join("absent.yaml")]).unwrap_err().to_string();
        assert!(error.contains("absent.yaml: No such file"), "{error}");
    }
}
