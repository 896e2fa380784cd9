//! Settings of the allocator: a big result is given back when it is gone.

/// glibc raises this by itself after the first big block is freed, and then keeps such blocks for ever.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MMAP_THRESHOLD: i32 = 256 * 1024;

/// What may stay unused at the end of the heap.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const TRIM_THRESHOLD: i32 = 512 * 1024;

/// One thread does nearly all of the work; a second arena serves those that block.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: i32 = 2;

/// After much small memory was freed: glibc gives back only what is free at the very end of the heap.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it touches nothing but free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Call it before anything big is allocated.
pub fn settle() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: plain numbers; a setting that glibc refuses is left as it was.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
        libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD);
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
    }
}
