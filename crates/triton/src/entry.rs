//! The functions that the server calls.
//!
//! Each catches panics: a bug in the backend is an error of a model, not the end of the server.

use crate::api::{self, Answer};
use crate::config;
use crate::execute::{Model, execute};
use crate::frame::Memory;
use crate::program::Program;
use crate::server::{self, Instance, Request, log};
use crate::signature::Signature;
use std::ffi::c_long;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;
use support::{Error, Result};

/// Runs a function and returns its error to the server.
fn guarded(run: impl FnOnce() -> Result<()>) -> Answer {
    if !api::is_loaded() {
        // The server was given an error, and does not use the backend.
        return null_mut();
    }
    let result = catch_unwind(AssertUnwindSafe(run));
    let result = result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Error::internal(format!("the backend has a bug: {text}")))
    });
    match result {
        Ok(()) => null_mut(),
        Err(error) => server::answer(&error),
    }
}

/// Finds the server's functions, and checks its version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_Initialize(_backend: *mut api::Backend) -> Answer {
    if let Err(error) = api::load() {
        return api::early_error(&server::c_text(error.message()));
    }
    guarded(|| {
        let (major, minor) = server::version()?;
        if major != api::TRITONBACKEND_API_VERSION_MAJOR {
            return Err(Error::unsupported(format!(
                "the server has version {major}.{minor} of the backend interface, but this backend is for version {}",
                api::TRITONBACKEND_API_VERSION_MAJOR
            )));
        }
        Ok(())
    })
}

/// Does nothing: models and instances own all memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_Finalize(_backend: *mut api::Backend) -> Answer {
    null_mut()
}

/// States what the server may assume about the backend.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_GetBackendAttribute(
    _backend: *mut api::Backend,
    attributes: *mut api::BackendAttribute,
) -> Answer {
    guarded(|| server::set_attributes(attributes))
}

/// Loads the program of a model, and completes and checks the configuration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_ModelInitialize(model: *mut api::Model) -> Answer {
    guarded(|| {
        let model = server::Model(model);
        let label = model.label()?;
        let loaded = load(model, &label).map_err(|e| e.context(&label))?;
        let state = Box::into_raw(Box::new(Arc::new(loaded)));
        model.set_state(state.cast()).inspect_err(|_| {
            // SAFETY: the server did not take the address.
            drop(unsafe { Box::from_raw(state) });
        })
    })
}

fn load(model: server::Model, label: &str) -> Result<Model> {
    let mut config = model.config()?;
    let program = Program::load(&model.folder()?, config::library_name(&config))?;
    let signature = Signature::new(&program.interface, program.has_independent_rows)?;
    if model.completes_config()? && config::complete(&mut config, &signature) {
        model.set_config(&config)?;
    }
    let settings = config::check(&config, &signature)?;
    for name in &settings.unknown {
        let message =
            format!("{label}: nothing reads the parameter '{name}'; known are 'threads' and 'device'");
        log(api::TRITONSERVER_LOG_WARN, &message);
    }
    if settings.rows.is_some() && !signature.is_proven {
        let message = format!(
            "{label}: max_batch_size is not 0, and the compiler did not prove that rows are independent; requests are \
             joined as the configuration says"
        );
        log(api::TRITONSERVER_LOG_WARN, &message);
    }
    log(api::TRITONSERVER_LOG_INFO, &format!("{label}: loaded by tfcompile {}", env!("CARGO_PKG_VERSION")));
    Ok(Model { program: Arc::new(program), signature, settings })
}

/// Unloads a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_ModelFinalize(model: *mut api::Model) -> Answer {
    guarded(|| {
        let state = server::Model(model).state()?;
        if !state.is_null() {
            // SAFETY: set by `TRITONBACKEND_ModelInitialize`; the server finalizes a model once.
            drop(unsafe { Box::from_raw(state.cast::<Arc<Model>>()) });
        }
        Ok(())
    })
}

/// An instance: its model, and memory for one run.
struct Running {
    memory: Memory,
    model: Arc<Model>,
}

/// Allocates the memory of an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_ModelInstanceInitialize(instance: *mut api::ModelInstance) -> Answer {
    guarded(|| {
        let instance = Instance(instance);
        let name = instance.name()?;
        let created = || {
            let state = instance.model()?.state()?;
            // SAFETY: set by `TRITONBACKEND_ModelInitialize`; a model outlives its instances.
            let model = Arc::clone(unsafe { &*state.cast::<Arc<Model>>() });
            let gpu = instance.gpu()?;
            if gpu.is_some() && model.program.driver.is_none() {
                return Err(Error::invalid(
                    "the program is for the processor: set kind: KIND_CPU in instance_group, or build it with --target=cuda",
                ));
            }
            let gpu = model.settings.device.or(gpu).unwrap_or(0);
            let memory = Memory::new(Arc::clone(&model.program), model.settings.threads, gpu)?;
            Ok(Running { memory, model })
        };
        let running = created().map_err(|e| e.context(format!("instance '{name}'")))?;
        let state = Box::into_raw(Box::new(running));
        instance.set_state(state.cast()).inspect_err(|_| {
            // SAFETY: the server did not take the address.
            drop(unsafe { Box::from_raw(state) });
        })
    })
}

/// Frees an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_ModelInstanceFinalize(instance: *mut api::ModelInstance) -> Answer {
    guarded(|| {
        let state = Instance(instance).state()?;
        if !state.is_null() {
            // SAFETY: set by `TRITONBACKEND_ModelInstanceInitialize`; finalized once.
            drop(unsafe { Box::from_raw(state.cast::<Running>()) });
        }
        Ok(())
    })
}

/// Answers requests. All of them are answered and released, so that no error is returned, except
/// for a bug.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_ModelInstanceExecute(
    instance: *mut api::ModelInstance,
    requests: *mut *mut api::Request,
    count: u32,
) -> Answer {
    guarded(|| {
        let instance = Instance(instance);
        let state = instance.state()?;
        // SAFETY: set by `TRITONBACKEND_ModelInstanceInitialize`; the server makes one call of an
        // instance at a time.
        let running = unsafe { &mut *state.cast::<Running>() };
        // SAFETY: the server passes this many requests.
        let requests =
            (0..count as usize).filter_map(|k| Request::new(unsafe { *requests.add(k) })).collect();
        execute(&running.model, &mut running.memory, instance, requests, now);
        Ok(())
    })
}

/// Time of the clock with which the server measures how long requests wait.
fn now() -> Duration {
    #[repr(C)]
    struct Time {
        seconds: c_long,
        nanoseconds: c_long,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Time) -> i32;
    }
    const CLOCK_MONOTONIC: i32 = 1;
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: the time is written.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &raw mut time) };
    Duration::new(time.seconds.unsigned_abs(), time.nanoseconds.unsigned_abs() as u32)
}
