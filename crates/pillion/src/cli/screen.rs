//! The terminal's settings, kept for the case that a prompt is left behind when its question ends without an answer.

#[cfg(unix)]
pub struct Screen(Option<libc::termios>);

#[cfg(unix)]
impl Screen {
    pub fn save() -> Screen {
        let mut settings = std::mem::MaybeUninit::uninit();
        // SAFETY: `tcgetattr` fills the struct when it answers 0; only then it is read.
        let saved = unsafe {
            (libc::tcgetattr(libc::STDIN_FILENO, settings.as_mut_ptr()) == 0).then(|| settings.assume_init())
        };
        Screen(saved)
    }

    /// Lets each key through at once and unseen, and keeps the settings as they were.
    pub fn unbuffered() -> Screen {
        let saved = Screen::save();
        if let Some(mut settings) = saved.0 {
            settings.c_lflag &= !(libc::ICANON | libc::ECHO);
            settings.c_cc[libc::VMIN] = 1;
            settings.c_cc[libc::VTIME] = 0;
            // SAFETY: the settings are those that `tcgetattr` gave for the same descriptor, with two flags cleared.
            unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSADRAIN, &settings) };
        }
        saved
    }

    /// Settings as they were.
    pub fn restore_quietly(&self) {
        if let Some(settings) = &self.0 {
            // SAFETY: the settings are those that `tcgetattr` gave for the same descriptor.
            unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSADRAIN, settings) };
        }
    }

    /// Settings as they were, the cursor visible, and a fresh line.
    pub fn restore(&self) {
        if let Some(settings) = &self.0 {
            // SAFETY: the settings are those that `tcgetattr` gave for the same descriptor.
            unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSADRAIN, settings) };
            eprintln!("\x1b[?25h");
        }
    }
}

#[cfg(not(unix))]
pub struct Screen;

#[cfg(not(unix))]
impl Screen {
    pub fn save() -> Screen {
        Screen
    }

    pub fn unbuffered() -> Screen {
        Screen
    }

    pub fn restore_quietly(&self) {}

    pub fn restore(&self) {}
}
