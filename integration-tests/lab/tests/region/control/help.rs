//! The help's examples work as they stand.

use super::desk;

/// An example: method, path and body as curl would send them.
struct Example {
    method: String,
    path: String,
    body: String,
}

/// Examples of a help whose port is `http://127.0.0.1:65535`, each a `curl` with the lines that
/// continue it.
fn examples(help: &str) -> Vec<Example> {
    let mut commands: Vec<String> = Vec::new();
    for line in help.lines() {
        let line = line.trim();
        match commands.last_mut() {
            _ if line.starts_with("curl ") => commands.push(line.to_owned()),
            Some(last) if last.matches('\'').count() % 2 == 1 => last.push_str(line),
            Some(_) | None => {}
        }
    }
    commands.iter().map(|command| example(command)).collect()
}

fn example(command: &str) -> Example {
    let url = command.split("http://127.0.0.1:65535").nth(1).unwrap_or_default();
    let path = url.split([' ', '\'']).next().unwrap_or_default();
    let body = command.split(" -d '").nth(1).unwrap_or_default().trim_end_matches('\'');
    let method = match command {
        _ if command.contains("-X DELETE") => "DELETE",
        _ if body.is_empty() => "GET",
        _ => "POST",
    };
    Example { method: method.to_owned(), path: path.to_owned(), body: body.to_owned() }
}

#[tokio::test]
async fn every_example_of_the_help_works() {
    let desk = desk().await;
    let id = desk.launch("spot").await;
    let (status, help) = desk.ask("GET", "/", "");
    assert_eq!(status, 200);
    let long: Vec<&str> = help.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(long.is_empty(), "{long:#?}");
    let examples = examples(&help);
    for path in ["/state", "/calls", "/faults", "/capacity", "/prices", "/interruptions"] {
        assert!(examples.iter().any(|it| it.path == path), "no example of {path}");
    }
    assert_eq!(examples.iter().filter(|it| it.method == "DELETE").count(), 1);
    for Example { method, path, body } in examples {
        let body = body.replace("i-0123456789abcdef0", &id);
        let (status, answer) = desk.ask(&method, &path, body.clone());
        assert_eq!(status, 200, "{method} {path} {body}: {answer}");
    }
}
