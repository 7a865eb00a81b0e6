//! Certificates in directories.
//!
//! Invariant: a key can be read by its owner alone, from its first byte on; an authority's is never
//! written over.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use longshore_authority::Signed;

/// For everybody to read.
const PUBLIC: u32 = 0o644;
/// For the owner alone.
const SECRET: u32 = 0o600;

/// Writes an authority's files, where there are none.
pub(super) fn write_authority(dir: &Path, own: &Signed) -> anyhow::Result<()> {
    write_new(dir, "ca.key", &own.key, SECRET)?;
    write_new(dir, "ca.crt", &own.certificate, PUBLIC)
}

/// Reads an authority's files.
pub(super) fn read_authority(dir: &Path) -> anyhow::Result<Signed> {
    let read = |name: &str| {
        let path = dir.join(name);
        fs::read_to_string(&path).with_context(|| {
            format!("{}; make one with `longshore certificates authority`", path.display())
        })
    };
    Ok(Signed { certificate: read("ca.crt")?, key: read("ca.key")? })
}

/// Writes a certificate's files. The key comes last: whoever reads them in between has a pair that
/// does not fit, and goes on with the one before.
pub(super) fn write(dir: &Path, signed: &Signed, trusted: &str) -> anyhow::Result<()> {
    let files = [
        ("ca.crt", trusted, PUBLIC),
        ("tls.crt", &signed.certificate, PUBLIC),
        ("tls.key", &signed.key, SECRET),
    ];
    for (name, text, mode) in files {
        match fs::remove_file(dir.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => write_new(dir, name, text, mode)?,
        }
    }
    Ok(())
}

/// Writes a file that is not there yet, with its mode from the beginning.
fn write_new(dir: &Path, name: &str, text: &str, mode: u32) -> anyhow::Result<()> {
    let path = dir.join(name);
    let written = fs::create_dir_all(dir)
        .and_then(|()| OpenOptions::new().write(true).create_new(true).mode(mode).open(&path))
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn keys_are_for_their_owner_and_an_authority_stays() {
        let dir = tempfile::tempdir().unwrap();
        let own = Signed { certificate: "c".to_owned(), key: "k".to_owned() };
        write_authority(dir.path(), &own).unwrap();
        assert_eq!(read_authority(dir.path()).unwrap(), own);
        let again = write_authority(dir.path(), &own).unwrap_err();
        assert!(format!("{again:#}").contains("ca.key"), "{again:#}");
        write(dir.path(), &own, "t").unwrap();
        write(dir.path(), &own, "t").unwrap();
        for key in ["ca.key", "tls.key"] {
            let mode = fs::metadata(dir.path().join(key)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, SECRET, "{key}");
        }
    }
}
