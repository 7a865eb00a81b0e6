//! The arguments of `/etc/eks/bootstrap.sh` in a shell script.
//!
//! Invariant: words are split as a shell splits them: quotes, backslashes, continued lines.

use super::{Bootstrap, OperatingSystem, UserDataError, apply_flags};

/// The program that Amazon Linux 2 images join a cluster with.
pub const SCRIPT: &str = "/etc/eks/bootstrap.sh";

pub(super) fn parse(script: &str) -> Result<Bootstrap, UserDataError> {
    let call = script.split(SCRIPT).nth(1).ok_or(UserDataError::NoConfiguration)?;
    let mut words = words(call).into_iter();
    let mut bootstrap = Bootstrap { system: OperatingSystem::AmazonLinux2, ..Bootstrap::default() };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--apiserver-endpoint" => bootstrap.endpoint = words.next().unwrap_or_default(),
            "--kubelet-extra-args" => {
                let inner = words.next().unwrap_or_default();
                apply_flags(&mut bootstrap, &self::words(&inner));
            }
            flag if flag.starts_with("--") => drop(words.next()),
            name => name.clone_into(&mut bootstrap.cluster_name),
        }
    }
    Ok(bootstrap)
}

/// Words of a command up to its end.
pub(super) fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\'' | '"', None) => {
                quote = Some(character);
                word.get_or_insert_with(String::new);
            }
            (end, Some(open)) if end == open => quote = None,
            ('\\', None | Some('"')) => match characters.next() {
                Some('\n') | None => {}
                Some(escaped) => word.get_or_insert_with(String::new).push(escaped),
            },
            ('\n' | ';' | '&', None) => break,
            (blank, None) if blank.is_whitespace() => words.extend(word.take()),
            (other, _) => word.get_or_insert_with(String::new).push(other),
        }
    }
    words.extend(word);
    words
}
