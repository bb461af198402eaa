//! Runs one reader on the inputs that libFuzzer generates. The environment variable `READER` names
//! the reader.

#![no_main]

mod table;

use libfuzzer_sys::fuzz_target;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use table::{READERS, Reader};

/// Most bytes that a reader may hold at once. Larger requests end the process, even if the pages
/// would never be touched: the tool's limit is on address space.
const MAX_BYTES: usize = 2 << 30;

/// The system's allocator, with a limit.
struct Limited;

static HELD: AtomicUsize = AtomicUsize::new(0);

fn hold(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    if held > MAX_BYTES {
        HELD.store(0, Ordering::Relaxed);
        eprintln!("the reader asked for {bytes} bytes, and would hold {held}: more than {MAX_BYTES}");
        std::process::abort();
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        hold(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        hold(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        hold(size);
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;

/// The reader that the environment names. Ends the process if there is none of that name.
static READER: LazyLock<&Reader> = LazyLock::new(|| {
    let name = std::env::var("READER").unwrap_or_default();
    READERS.iter().find(|reader| reader.name == name).unwrap_or_else(|| {
        let names: Vec<&str> = READERS.iter().map(|reader| reader.name).collect();
        eprintln!("READER='{name}': expected one of {}", names.join(", "));
        std::process::exit(2);
    })
});

/// Folder for readers of several files. It outlives the process if that is ended by a finding.
static FOLDER: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::Builder::new().prefix("fuzz-readers-").tempdir().expect("a folder"));

fuzz_target!(init: {
    LazyLock::force(&READER);
}, |bytes: &[u8]| {
    (READER.read)(bytes, FOLDER.path());
});
