//! Multipart documents: how cloud-init and nodeadm take several parts at once.
//!
//! Invariant: the user's parts come first and unchanged, ours last, so that ours wins where both
//! say something.

/// Boundary between the parts we write.
const BOUNDARY: &str = "//";

/// One part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Header lines, without the empty one that ends them.
    pub headers: String,
    /// Content.
    pub body: String,
}

impl Part {
    /// A part with a content type only.
    pub fn new(content_type: &str, body: &str) -> Self {
        Self { headers: format!("Content-Type: {content_type}"), body: body.to_owned() }
    }
}

/// The parts of the user's own data: those of a multipart document, or the whole as one part.
pub fn parts_of(custom: &str, content_type: impl Fn(&str) -> &'static str) -> Vec<Part> {
    let custom = custom.replace("\r\n", "\n");
    if custom.trim().is_empty() {
        return Vec::new();
    }
    match boundary_of(&custom) {
        Some(boundary) => split(&custom, &boundary),
        None => vec![Part::new(content_type(&custom), &custom)],
    }
}

/// A multipart document.
pub fn document(parts: &[Part]) -> String {
    let mut text =
        format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{BOUNDARY}\"\n\n");
    for part in parts {
        text.push_str(&format!("--{BOUNDARY}\n{}\n\n{}\n", part.headers, part.body.trim_end()));
    }
    text.push_str(&format!("--{BOUNDARY}--\n"));
    text
}

/// Boundary of a multipart document; none when the text is something else.
fn boundary_of(text: &str) -> Option<String> {
    let headers = text.trim_start().split("\n\n").next()?;
    if !headers.lines().any(|line| line.to_lowercase().starts_with("mime-version:")) {
        return None;
    }
    let (_, rest) = headers.split_once("boundary=")?;
    let rest = rest.trim_start_matches('"');
    let end = rest.find(['"', '\n', ';']).unwrap_or(rest.len());
    rest.get(..end).map(str::to_owned)
}

fn split(text: &str, boundary: &str) -> Vec<Part> {
    let separator = format!("--{boundary}");
    let mut parts = Vec::new();
    let mut current: Option<Vec<&str>> = None;
    for line in text.lines() {
        if line == separator || line == format!("{separator}--") {
            parts.extend(current.take().map(|lines| part(&lines)));
            current = (line == separator).then(Vec::new);
        } else if let Some(lines) = &mut current {
            lines.push(line);
        }
    }
    parts.extend(current.map(|lines| part(&lines)));
    parts
}

fn part(lines: &[&str]) -> Part {
    let end = lines.iter().position(|line| line.is_empty()).unwrap_or(lines.len());
    let (headers, body) = lines.split_at(end);
    Part { headers: headers.join("\n"), body: body.get(1..).unwrap_or_default().join("\n") }
}
