//! Whether files and folders can be what others made of them. Code is loaded from the cache, so that it is as strict as
//! `ssh` is about keys; a checksum tells damage, not intent.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// Nobody but this user and root can put anything into the folder or into its place: all is as `ssh` asks, up to the
/// user's home or else the root. The path is without links.
pub(crate) fn check_folder(folder: &Path) -> io::Result<()> {
    let home = dirs::home_dir().and_then(|home| home.canonicalize().ok());
    check_up_to(folder, home.as_deref())
}

fn check_up_to(folder: &Path, last: Option<&Path>) -> io::Result<()> {
    for above in folder.ancestors() {
        let metadata = std::fs::symlink_metadata(above)?;
        if above == folder && !metadata.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        // In a folder such as /tmp, others cannot replace what is not theirs.
        let is_sticky = above != folder && mode(&metadata) & 0o1000 != 0;
        check(above, &metadata, is_sticky)?;
        if last == Some(above) {
            break;
        }
    }
    Ok(())
}

/// Only this user and root can have written the file.
pub(crate) fn check_file(path: &Path, file: &File) -> io::Result<()> {
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => check(path, &metadata, false),
        false => Err(refused(format!("{} is no file", path.display()))),
    }
}

fn refused(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

#[cfg(unix)]
fn check(path: &Path, metadata: &Metadata, is_sticky: bool) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let owner = metadata.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(refused(format!("{} belongs to another user (number {owner})", path.display())));
    }
    let others = mode(metadata) & 0o022;
    if others != 0 && !is_sticky {
        let remedy = if others & 0o002 != 0 { "go-w" } else { "g-w" };
        let path = path.display();
        return Err(refused(format!("others can write to {path} (`chmod {remedy} {path}` ends that)")));
    }
    Ok(())
}

#[cfg(unix)]
fn mode(metadata: &Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::mode(metadata)
}

#[cfg(not(unix))]
fn check(_path: &Path, _metadata: &Metadata, _is_sticky: bool) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn mode(_metadata: &Metadata) -> u32 {
    0
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_the_home_is_not_looked_at() {
        let above = tempfile::tempdir().unwrap();
        let home = above.path().canonicalize().unwrap().join("home");
        let folder = home.join("cache");
        std::fs::create_dir_all(&folder).unwrap();
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        };
        set(&folder, 0o700);
        set(&home, 0o700);
        set(above.path(), 0o777);
        assert!(check_up_to(&folder, Some(&home)).is_ok());
        assert!(check_up_to(&folder, None).is_err());
        set(&home, 0o775);
        assert!(check_up_to(&folder, Some(&home)).is_err());
    }
}
