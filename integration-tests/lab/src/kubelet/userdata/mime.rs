//! MIME multipart, as far as cloud-init documents use it.
//!
//! Invariant: a document without a boundary is no multipart document.

/// One part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Media type, in lower case, without parameters.
    pub media_type: String,
    /// Body.
    pub body: String,
}

impl Part {
    /// A document that is no multipart one, as its only part.
    pub fn bare(text: &str) -> Self {
        Self { media_type: String::new(), body: text.to_owned() }
    }

    /// True when nodeadm reads it.
    pub fn is_node_config(&self) -> bool {
        self.media_type == "application/node.eks.aws"
            || (self.media_type.is_empty() && self.body.contains("node.eks.aws/v1"))
    }
}

/// The parts of a multipart document; none for any other text.
pub fn parts(text: &str) -> Option<Vec<Part>> {
    let text = text.replace("\r\n", "\n");
    let (header, body) = text.split_once("\n\n")?;
    let content_type = header_value(header, "content-type")?;
    if !content_type.to_lowercase().starts_with("multipart/") {
        return None;
    }
    let boundary = content_type.split("boundary=").nth(1)?;
    let boundary = boundary.split(';').next()?.trim().trim_matches('"');
    let delimiter = format!("--{boundary}");
    let mut parts = Vec::new();
    let mut lines: Option<Vec<&str>> = None;
    for line in body.lines() {
        let trimmed = line.trim_end();
        if trimmed == delimiter || trimmed == format!("{delimiter}--") {
            parts.extend(lines.take().map(|lines| part(&lines)));
            lines = (trimmed == delimiter).then(Vec::new);
        } else if let Some(lines) = &mut lines {
            lines.push(line);
        }
    }
    parts.extend(lines.map(|lines| part(&lines)));
    Some(parts)
}

fn part(lines: &[&str]) -> Part {
    let blank = lines.iter().position(|line| line.trim().is_empty()).unwrap_or(lines.len());
    let (header, body) = lines.split_at(blank);
    let content_type = header_value(&header.join("\n"), "content-type").unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_lowercase();
    Part { media_type, body: body.join("\n").trim_start_matches('\n').to_owned() }
}

fn header_value(header: &str, name: &str) -> Option<String> {
    let fields = header.lines().filter_map(|line| line.split_once(':'));
    let mut found = fields.filter(|(field, _)| field.trim().eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim().to_owned())
}
