//! stdin and stdout as this process owns them: pipes and sockets without blocking, anything else on a thread.
//!
//! The real descriptors are taken away: descriptor 1 becomes stderr and descriptor 0 empty, so that neither a stray
//! `print` nor a child that inherits them can touch the session.

use std::io::{self, IoSlice};

#[cfg(unix)]
#[cfg(test)]
pub use unix::writer;
#[cfg(unix)]
pub use unix::{claim, watched};

/// Where the host's bytes come from.
#[derive(Debug)]
pub enum Input {
    #[cfg(unix)]
    Ready(tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>),
    Thread(tokio::sync::mpsc::Receiver<io::Result<Vec<u8>>>),
}

/// Where the host reads.
#[derive(Debug)]
pub enum Output {
    #[cfg(unix)]
    Ready(tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>),
    /// Written by a blocking thread.
    File(std::fs::File),
}

impl Input {
    /// Appends what is there to `space`, waiting for at least one byte; 0 is the end.
    pub async fn read(&mut self, space: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            #[cfg(unix)]
            Input::Ready(fd) => unix::read(fd, space).await,
            Input::Thread(chunks) => match chunks.recv().await {
                None => Ok(0),
                Some(chunk) => {
                    let chunk = chunk?;
                    space.extend_from_slice(&chunk);
                    Ok(chunk.len())
                }
            },
        }
    }
}

impl Output {
    /// Writes some of the bytes and says how many; never none.
    pub async fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let count = match self {
            #[cfg(unix)]
            Output::Ready(fd) => unix::write(fd, slices).await?,
            Output::File(file) => {
                let mut file = file.try_clone()?;
                let bytes = slices
                    .iter()
                    .flat_map(|slice| slice.iter().copied())
                    .collect::<Vec<u8>>();
                let write = move || io::Write::write_all(&mut file, &bytes).map(|()| bytes.len());
                tokio::task::spawn_blocking(write)
                    .await
                    .map_err(io::Error::other)??
            }
        };
        if count == 0 {
            Err(io::ErrorKind::WriteZero.into())
        } else {
            Ok(count)
        }
    }
}

/// Reads on a thread of its own, since nothing tells when there is something to read.
fn read_on_thread(mut source: impl io::Read + Send + 'static) -> io::Result<Input> {
    let (sender, receiver) = tokio::sync::mpsc::channel(4);
    let work = move || {
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let read = match source.read(&mut chunk) {
                Ok(0) => return,
                Ok(count) => Ok(chunk[..count].to_vec()),
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => continue,
                Err(fault) => Err(fault),
            };
            let failed = read.is_err();
            if sender.blocking_send(read).is_err() || failed {
                return;
            }
        }
    };
    std::thread::Builder::new().name("stdin".to_owned()).spawn(work)?;
    Ok(Input::Thread(receiver))
}

#[cfg(not(unix))]
pub fn claim() -> io::Result<(Input, Output)> {
    use std::os::windows::io::AsHandle;
    let output = std::fs::File::from(io::stdout().as_handle().try_clone_to_owned()?);
    Ok((read_on_thread(io::stdin())?, Output::File(output)))
}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::io::{self, IoSlice};
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

    use rustix::fs::{FileType, OFlags};
    use rustix::io::Errno;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    use super::{Input, Output, read_on_thread};

    /// A pipe of this size takes a whole big result in few steps.
    #[cfg(target_os = "linux")]
    const PIPE: usize = 1 << 20;

    /// Takes descriptors 0 and 1 away from everyone else.
    pub fn claim() -> io::Result<(Input, Output)> {
        let input = own(io::stdin().as_fd())?;
        let output = own(io::stdout().as_fd())?;
        redirect(File::open("/dev/null")?.as_fd(), libc::STDIN_FILENO)?;
        redirect(io::stderr().as_fd(), libc::STDOUT_FILENO)?;
        Ok((reader(input)?, writer(output)?))
    }

    fn redirect(from: BorrowedFd<'_>, to: i32) -> io::Result<()> {
        // SAFETY: both are open, and whoever used the old one by its number now means the new one.
        match unsafe { libc::dup2(from.as_raw_fd(), to) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    pub fn reader(fd: OwnedFd) -> io::Result<Input> {
        match pollable(&fd, OFlags::RDONLY)? {
            Some(fd) => Ok(Input::Ready(watched(fd, Interest::READABLE)?)),
            None => read_on_thread(File::from(fd)),
        }
    }

    pub fn writer(fd: OwnedFd) -> io::Result<Output> {
        match pollable(&fd, OFlags::WRONLY)? {
            Some(fd) => Ok(Output::Ready(watched(fd, Interest::WRITABLE)?)),
            None => Ok(Output::File(File::from(fd))),
        }
    }

    /// A descriptor whose readiness the runtime watches.
    pub fn watched(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
        // SAFETY: an owned descriptor is open and stays the same until it is dropped, with the `AsyncFd`.
        Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
    }

    fn own(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        // Above the three that everyone knows by number, and not for children.
        Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?)
    }

    /// The descriptor without blocking, where waiting for it is possible: a pipe or a socket.
    ///
    /// A terminal is not among them: whether reading blocks is a property it shares with the shell.
    fn pollable(fd: &OwnedFd, access: OFlags) -> io::Result<Option<OwnedFd>> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
        match kind {
            FileType::Fifo => {
                enlarge(fd);
                if let Some(own) = reopened(fd, access) {
                    return Ok(Some(own));
                }
            }
            FileType::Socket => {}
            _ => return Ok(None),
        }
        let flags = rustix::fs::fcntl_getfl(fd)?;
        rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?;
        Ok(Some(fd.try_clone()?))
    }

    /// The same pipe under a description of our own: whoever else holds it (stderr may be the same) goes on blocking.
    #[cfg(target_os = "linux")]
    fn reopened(fd: &OwnedFd, access: OFlags) -> Option<OwnedFd> {
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()
    }

    #[cfg(not(target_os = "linux"))]
    fn reopened(_: &OwnedFd, _: OFlags) -> Option<OwnedFd> {
        None
    }

    /// Best effort: the system may limit the pages that one user's pipes hold.
    #[cfg(target_os = "linux")]
    fn enlarge(fd: &OwnedFd) {
        if rustix::pipe::fcntl_getpipe_size(fd).is_ok_and(|size| size < PIPE) {
            let _ = rustix::pipe::fcntl_setpipe_size(fd, PIPE);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn enlarge(_: &OwnedFd) {}

    pub async fn read(fd: &AsyncFd<OwnedFd>, space: &mut Vec<u8>) -> io::Result<usize> {
        loop {
            let mut ready = fd.readable().await?;
            let room = space.capacity() - space.len();
            match rustix::io::read(fd.get_ref(), rustix::buffer::spare_capacity(space)) {
                Ok(count) => {
                    // Less than there was room for: the pipe is empty, and a read to learn that can be spared.
                    if count > 0 && count < room {
                        ready.clear_ready();
                    }
                    return Ok(count);
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
    }

    pub async fn write(fd: &AsyncFd<OwnedFd>, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            let mut ready = fd.writable().await?;
            match rustix::io::writev(fd.get_ref(), slices) {
                Ok(count) => return Ok(count),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
    }
}
