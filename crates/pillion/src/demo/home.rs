//! A data folder and a workspace that are gone when the demo is over.

use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

pub struct Home(PathBuf);

impl Home {
    /// A new folder that only this user can enter. Fails if somebody else made one of that name.
    pub fn create() -> io::Result<Home> {
        let nanos = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.subsec_nanos());
        let path = std::env::temp_dir().join(format!("pillion-demo-{}-{nanos:08x}", std::process::id()));
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path)?;
        let home = Home(path);
        std::fs::create_dir(home.workspace())?;
        Ok(home)
    }

    pub fn data_dir(&self) -> PathBuf {
        self.0.join("data")
    }

    pub fn workspace(&self) -> PathBuf {
        self.0.join("workspace")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Only what this process made; a file that cannot be deleted is the system's to clean.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays() {
        let home = Home::create().expect("the temporary folder is writable");
        let path = home.0.clone();
        std::fs::create_dir(home.data_dir()).expect("inside our own folder");
        assert!(home.workspace().is_dir());
        drop(home);
        assert!(!path.exists());
    }
}
