//! Wildcards of IAM: `*` for any run of characters, `?` for one.
//!
//! Invariant: linear memory, no recursion; a pattern without wildcards is plain equality.

/// Whether `text` matches `pattern`.
pub fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(&expected) if expected == '?' || expected == text[seen] => {
                at += 1;
                seen += 1;
            }
            _ => match star {
                Some((position, covered)) => {
                    star = Some((position, covered + 1));
                    at = position + 1;
                    seen = covered + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&rest| rest == '*')
}

/// As [`matches`], ignoring case: IAM actions are compared so.
pub fn matches_ignoring_case(pattern: &str, text: &str) -> bool {
    matches(&pattern.to_lowercase(), &text.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_cover_any_run_and_question_marks_one() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("ec2:Describe*", "ec2:DescribeImages", true),
            ("arn:aws:ec2:*:*:launch-template/*", "arn:aws:ec2:r:1:launch-template/lt-1", true),
            ("arn:aws:ec2:*:*:launch-template/*", "arn:aws:ec2:r:1:subnet/s-1", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(matches_ignoring_case("EC2:runinstances", "ec2:RunInstances"));
    }
}
