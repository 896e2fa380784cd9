//! What this process holds of the machine's memory, and how it lets go of it.

/// glibc raises this by itself after the first big block is freed, and then keeps such blocks for ever.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MMAP_THRESHOLD: i32 = 256 * 1024;

/// What may stay unused at the end of the heap.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const TRIM_THRESHOLD: i32 = 512 * 1024;

/// One thread does nearly all of the work; a second arena serves those that block.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: i32 = 2;

/// Settings of the allocator. Call it before anything big is allocated.
pub fn settle() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: plain numbers; a setting that glibc refuses is left as it was.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
        libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD);
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
    }
}

/// After much small memory was freed: glibc gives back only what is free at the very end of the heap.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it touches nothing but free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Unmaps the program's code and constants; what is used again comes back from the page cache, a fault at a time.
///
/// The kernel maps sixteen pages around each one that is touched, so that starting up maps most of the binary, of
/// which little ever runs again. For moments in which nothing is going on.
pub fn forget_code() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            // Set by the linker: from the first byte of the file to the end of its code.
            static __executable_start: u8;
            static etext: u8;
        }
        // SAFETY: the part between these is mapped from the file and never written: relocations and data lie behind
        // it. Only whole pages are named.
        unsafe {
            let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(4096);
            let start = &raw const __executable_start as usize;
            let end = &raw const etext as usize / page * page;
            libc::madvise(
                start as *mut libc::c_void,
                end.saturating_sub(start),
                libc::MADV_DONTNEED,
            );
        }
    }
}
