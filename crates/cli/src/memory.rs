//! The allocator of the tool: ends the process with one message if memory is exhausted. The default
//! one would abort it. Allocations that handle failures themselves are marked by
//! [`support::attempt`].
//!
//! The message is written without allocating memory. Destructors do not run: nothing but temporary
//! files remains.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Cursor, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use support::Code;

/// The system's allocator, with a message if it fails.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Returns an allocation. If it failed and the caller does not handle that, ends the process.
fn checked(start: *mut u8, size: usize) -> *mut u8 {
    if start.is_null() && !support::is_attempt() {
        exhausted(Some(size));
    }
    start
}

// SAFETY: all calls go to the system's allocator with the same arguments.
#[expect(unsafe_code, reason = "the trait's promise")]
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are the same.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are the same.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's obligations are the same.
        checked(unsafe { System.realloc(start, layout, size) }, size)
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligations are the same.
        unsafe { System.dealloc(start, layout) }
    }
}

#[expect(unsafe_code, reason = "the C library's functions")]
unsafe extern "C" {
    fn write(file: i32, bytes: *const u8, count: usize) -> isize;
    fn _exit(status: i32) -> !;
}

/// Makes LLVM end the process with the same message.
pub(crate) fn install() {
    extern "C" fn exhausted_in_llvm() {
        exhausted(None)
    }
    codegen::on_exhausted_memory(exhausted_in_llvm);
}

/// Set by the thread that ends the process.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Ends the process with a message. Several threads may get here; one of them writes.
fn exhausted(size: Option<usize>) -> ! {
    while IS_ENDING.swap(true, Ordering::Relaxed) {
        std::thread::yield_now();
    }
    let mut text = [0; 300];
    let mut out = Cursor::new(&mut text[..]);
    let code = Code::Resources;
    // The buffer has room for the longest number.
    let _ = match size {
        Some(size) => write!(out, "UNSUPPORTED: cannot allocate {size} bytes"),
        None => write!(out, "UNSUPPORTED: cannot allocate memory"),
    };
    let _ = writeln!(
        out,
        "; provide more memory, or allow more (ulimit -v)\n({code}: `tfcompile explain {code}` says more)"
    );
    let length = usize::try_from(out.position()).unwrap_or(0);
    // SAFETY: the bytes are initialized and outlive the call. `_exit` runs no destructors, which
    // could wait for threads that are interrupted here.
    #[expect(unsafe_code, reason = "the C library's functions")]
    unsafe {
        write(2, text.as_ptr(), length);
        _exit(1)
    }
}
