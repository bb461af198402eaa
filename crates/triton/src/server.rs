//! The server's functions as safe Rust.
//!
//! Objects come from the server and are valid during the call that passes them: `entry` makes the
//! values of this module, and nothing keeps them longer.

use crate::api::{self, Answer, DataType, ErrorCode, LogLevel, api};
use serde_json::Value;
use std::ffi::{CStr, CString, c_char, c_void};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::ptr::{NonNull, null, null_mut};
use support::{Error, ErrorKind, Result};

/// Error of one request.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The client gave up.
    Cancelled,
    /// Any other error.
    Failed(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Returns a text as C has it, without what follows a NUL byte.
pub fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).expect("no NUL byte")
}

/// Returns a text of the server.
fn text(address: *const c_char) -> String {
    if address.is_null() {
        return String::new();
    }
    // SAFETY: the server's texts end with NUL.
    unsafe { CStr::from_ptr(address) }.to_string_lossy().into_owned()
}

/// Takes over the server's answer.
fn check(answer: Answer) -> Result<()> {
    if answer.is_null() {
        return Ok(());
    }
    let api = api();
    // SAFETY: the error belongs to the caller until it is deleted.
    let (code, message) = unsafe {
        let found = ((api.error_code)(answer), text((api.error_message)(answer)));
        (api.error_delete)(answer);
        found
    };
    Err(match code {
        api::TRITONSERVER_ERROR_UNSUPPORTED => Error::unsupported(message),
        api::TRITONSERVER_ERROR_INTERNAL => Error::internal(message),
        _ => Error::invalid(message),
    })
}

/// Returns an error for the server, which takes it over.
pub fn answer(error: &Error) -> Answer {
    let code = match error.kind() {
        ErrorKind::Invalid => api::TRITONSERVER_ERROR_INVALID_ARG,
        ErrorKind::Unsupported => api::TRITONSERVER_ERROR_UNSUPPORTED,
        ErrorKind::Internal => api::TRITONSERVER_ERROR_INTERNAL,
    };
    new_error(code, error.message())
}

fn new_error(code: ErrorCode, message: &str) -> Answer {
    // SAFETY: the server copies the message.
    unsafe { (api().error_new)(code, c_text(message).as_ptr()) }
}

/// Writes a message to the server's log.
pub fn log(level: LogLevel, message: &str) {
    // SAFETY: the server copies the texts. A message that it refuses is lost.
    let _ = check(unsafe { (api().log)(level, c"tfcompile".as_ptr(), 0, c_text(message).as_ptr()) });
}

/// Returns the version of the backend interface of the server.
pub fn version() -> Result<(u32, u32)> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both are written.
    check(unsafe { (api().api_version)(&raw mut major, &raw mut minor) })?;
    Ok((major, minor))
}

/// States that instances run on the processor unless the configuration says otherwise, and that
/// they may be created at the same time.
pub fn set_attributes(attributes: *mut api::BackendAttribute) -> Result<()> {
    let kind = api::TRITONSERVER_INSTANCEGROUPKIND_CPU;
    // SAFETY: the server passes its attributes; there are no device numbers.
    check(unsafe { (api().add_preferred_group)(attributes, kind, 0, null(), 0) })?;
    // SAFETY: as above.
    check(unsafe { (api().set_parallel_loading)(attributes, true) })
}

/// A model of the server.
#[derive(Clone, Copy)]
pub struct Model(pub *mut api::Model);

impl Model {
    /// Returns its name and version.
    pub fn label(self) -> Result<String> {
        let (mut name, mut version) = (null(), 0);
        // SAFETY: the server's model; both are written.
        check(unsafe { (api().model_name)(self.0, &raw mut name) })?;
        // SAFETY: as above.
        check(unsafe { (api().model_version)(self.0, &raw mut version) })?;
        Ok(format!("model '{}', version {version}", text(name)))
    }

    /// Returns the directory of its version.
    pub fn folder(self) -> Result<PathBuf> {
        let (mut kind, mut location, mut version) = (0, null(), 0);
        // SAFETY: the server's model; all are written.
        check(unsafe { (api().model_repository)(self.0, &raw mut kind, &raw mut location) })?;
        // SAFETY: as above.
        check(unsafe { (api().model_version)(self.0, &raw mut version) })?;
        if kind != api::TRITONBACKEND_ARTIFACT_FILESYSTEM {
            return Err(Error::unsupported("the model is not in a directory"));
        }
        Ok(PathBuf::from(text(location)).join(version.to_string()))
    }

    /// Returns its configuration.
    pub fn config(self) -> Result<Value> {
        let mut message = null_mut();
        // SAFETY: the server's model; the message is written and belongs to the caller.
        check(unsafe { (api().model_config)(self.0, 1, &raw mut message) })?;
        let (mut base, mut size) = (null::<c_char>(), 0);
        // SAFETY: a message of the server; the text is valid until the message is deleted.
        let json = check(unsafe { (api().message_json)(message, &raw mut base, &raw mut size) }).map(|()| {
            // SAFETY: as above.
            unsafe { bytes_at(base.cast(), size) }.to_vec()
        });
        // SAFETY: deleted once.
        check(unsafe { (api().message_delete)(message) })?;
        serde_json::from_slice(&json?)
            .map_err(|e| Error::internal(format!("the server's configuration of the model: {e}")))
    }

    /// True if the server lets the backend complete the configuration.
    pub fn completes_config(self) -> Result<bool> {
        let mut completes = false;
        // SAFETY: the server's model; the flag is written.
        check(unsafe { (api().model_completes)(self.0, &raw mut completes) })?;
        Ok(completes)
    }

    /// Replaces the configuration.
    pub fn set_config(self, config: &Value) -> Result<()> {
        let json = config.to_string();
        let mut message = null_mut();
        // SAFETY: the server copies the text.
        check(unsafe { (api().message_new)(&raw mut message, json.as_ptr().cast(), json.len()) })?;
        // SAFETY: the server's model; the server reads the message.
        let set = check(unsafe { (api().model_set_config)(self.0, 1, message) });
        // SAFETY: deleted once.
        check(unsafe { (api().message_delete)(message) })?;
        set
    }

    /// Returns what the backend keeps with the model.
    pub fn state(self) -> Result<*mut c_void> {
        let mut state = null_mut();
        // SAFETY: the server's model; the address is written.
        check(unsafe { (api().model_state)(self.0, &raw mut state) })?;
        Ok(state)
    }

    /// Keeps an address with the model.
    pub fn set_state(self, state: *mut c_void) -> Result<()> {
        // SAFETY: the server's model.
        check(unsafe { (api().model_set_state)(self.0, state) })
    }
}

/// An instance of a model of the server.
#[derive(Clone, Copy)]
pub struct Instance(pub *mut api::ModelInstance);

/// Times of a run in nanoseconds: the start of the call, start and end of the computation, and the
/// end of the call.
pub type Times = [u64; 4];

impl Instance {
    /// Returns its name.
    pub fn name(self) -> Result<String> {
        let mut name = null();
        // SAFETY: the server's instance; the text is written.
        check(unsafe { (api().instance_name)(self.0, &raw mut name) })?;
        Ok(text(name))
    }

    /// Returns the number of the GPU that it runs on, if it is not for the processor.
    pub fn gpu(self) -> Result<Option<usize>> {
        let (mut kind, mut device) = (0, 0);
        // SAFETY: the server's instance; both are written.
        check(unsafe { (api().instance_kind)(self.0, &raw mut kind) })?;
        // SAFETY: as above.
        check(unsafe { (api().instance_device)(self.0, &raw mut device) })?;
        Ok((kind == api::TRITONSERVER_INSTANCEGROUPKIND_GPU).then_some(usize::try_from(device).unwrap_or(0)))
    }

    /// Returns its model.
    pub fn model(self) -> Result<Model> {
        let mut model = null_mut();
        // SAFETY: the server's instance; the address is written.
        check(unsafe { (api().instance_model)(self.0, &raw mut model) })?;
        Ok(Model(model))
    }

    /// Returns what the backend keeps with the instance.
    pub fn state(self) -> Result<*mut c_void> {
        let mut state = null_mut();
        // SAFETY: the server's instance; the address is written.
        check(unsafe { (api().instance_state)(self.0, &raw mut state) })?;
        Ok(state)
    }

    /// Keeps an address with the instance.
    pub fn set_state(self, state: *mut c_void) -> Result<()> {
        // SAFETY: the server's instance.
        check(unsafe { (api().instance_set_state)(self.0, state) })
    }

    /// Adds a request to the statistics.
    pub fn report(self, request: &Request, is_success: bool, [start, begin, done, end]: Times) -> Result<()> {
        // SAFETY: the server's objects.
        check(unsafe { (api().report)(self.0, request.0.as_ptr(), is_success, start, begin, done, end) })
    }

    /// Adds a run to the statistics.
    pub fn report_run(self, rows: u64, [start, begin, done, end]: Times) -> Result<()> {
        // SAFETY: the server's instance.
        check(unsafe { (api().report_batch)(self.0, rows, start, begin, done, end) })
    }
}

/// A request, until it is released.
pub struct Request(NonNull<api::Request>);

/// A tensor of a request, in one or more buffers.
pub struct Input<'r> {
    /// Type of its elements.
    pub data_type: DataType,
    /// Its sizes.
    pub sizes: Vec<i64>,
    /// Its bytes.
    pub buffers: Vec<&'r [u8]>,
}

impl Request {
    /// Takes over a request from the server, which does not use it until it is released.
    pub fn new(pointer: *mut api::Request) -> Option<Self> {
        NonNull::new(pointer).map(Self)
    }

    /// True if the client gave up.
    pub fn is_cancelled(&self) -> Result<bool> {
        let mut is_cancelled = false;
        // SAFETY: the request is not released; the flag is written.
        check(unsafe { (api().request_is_cancelled)(self.0.as_ptr(), &raw mut is_cancelled) })?;
        Ok(is_cancelled)
    }

    /// Returns a tensor.
    pub fn input(&self, name: &str) -> Result<Input<'_>> {
        let (mut input, c_name) = (null_mut(), c_text(name));
        // SAFETY: the request is not released; the address is written.
        check(unsafe { (api().request_input)(self.0.as_ptr(), c_name.as_ptr(), &raw mut input) })?;
        let (mut data_type, mut sizes, mut rank, mut bytes, mut count) = (0, null(), 0, 0, 0);
        // SAFETY: an input of the request; all are written, the name is not asked for.
        check(unsafe {
            (api().input_properties)(
                input,
                null_mut(),
                &raw mut data_type,
                &raw mut sizes,
                &raw mut rank,
                &raw mut bytes,
                &raw mut count,
            )
        })?;
        let sizes = match rank {
            0 => Vec::new(),
            // SAFETY: the server's array of this many sizes.
            rank => unsafe { std::slice::from_raw_parts(sizes, rank as usize) }.to_vec(),
        };
        let mut buffers = Vec::new();
        for k in 0..count {
            let (mut buffer, mut bytes, mut place, mut device) = (null(), 0, api::TRITONSERVER_MEMORY_CPU, 0);
            // SAFETY: as above.
            check(unsafe {
                (api().input_buffer)(
                    input,
                    k,
                    &raw mut buffer,
                    &raw mut bytes,
                    &raw mut place,
                    &raw mut device,
                )
            })?;
            if place == api::TRITONSERVER_MEMORY_GPU {
                return Err(Error::unsupported(format!(
                    "input '{name}' is in the memory of a GPU; send it from the memory of the host"
                )));
            }
            // SAFETY: the server keeps the buffer until the request is released.
            buffers.push(unsafe { bytes_at(buffer.cast(), bytes as usize) });
        }
        Ok(Input { data_type, sizes, buffers })
    }

    /// Returns the names of the outputs that the client asks for.
    pub fn outputs(&self) -> Result<Vec<String>> {
        let mut count = 0;
        // SAFETY: the request is not released; the number is written.
        check(unsafe { (api().request_output_count)(self.0.as_ptr(), &raw mut count) })?;
        let name = |k| {
            let mut name = null();
            // SAFETY: as above.
            check(unsafe { (api().request_output_name)(self.0.as_ptr(), k, &raw mut name) })?;
            Ok(text(name))
        };
        (0..count).map(name).collect()
    }

    /// Gives the memory of a sequence's state to `fill`, and makes it the next request's value.
    pub fn update_state(
        &self,
        name: &str,
        (data_type, sizes): (DataType, &[i64]),
        bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<()> {
        let (mut state, c_name) = (null_mut(), c_text(name));
        let rank = sizes.len() as u32;
        // SAFETY: the request is not released; the server copies name and sizes.
        check(unsafe {
            (api().state_new)(
                &raw mut state,
                self.0.as_ptr(),
                c_name.as_ptr(),
                data_type,
                sizes.as_ptr(),
                rank,
            )
        })?;
        let (mut buffer, mut place, mut device) = (null_mut(), api::TRITONSERVER_MEMORY_CPU, 0);
        // SAFETY: a new state of the request; all are written.
        check(unsafe {
            (api().state_buffer)(state, &raw mut buffer, bytes as u64, &raw mut place, &raw mut device)
        })?;
        fill(host_buffer(name, buffer, bytes, place)?);
        // SAFETY: as above; the state is not used afterward.
        check(unsafe { (api().state_update)(state) })
    }

    /// Returns a response to this request.
    pub fn response(&self) -> Result<Response<'_>> {
        let mut response = null_mut();
        // SAFETY: the request is not released; the address is written.
        check(unsafe { (api().response_new)(&raw mut response, self.0.as_ptr()) })?;
        let response = NonNull::new(response).ok_or_else(|| Error::internal("the server has no response"))?;
        Ok(Response(response, PhantomData))
    }

    /// Sends an error as the response.
    pub fn refuse(&self, failure: &Failure) -> Result<()> {
        self.response()?.send(Some(failure))
    }

    /// Gives the request back to the server.
    pub fn release(self) -> Result<()> {
        // SAFETY: released once; nothing borrows it.
        check(unsafe { (api().request_release)(self.0.as_ptr(), api::TRITONSERVER_REQUEST_RELEASE_ALL) })
    }
}

/// A response that is not sent.
pub struct Response<'r>(NonNull<api::Response>, PhantomData<&'r Request>);

impl Response<'_> {
    /// Adds a tensor and returns its memory.
    pub fn output(
        &mut self,
        name: &str,
        (data_type, sizes): (DataType, &[i64]),
        bytes: usize,
    ) -> Result<&mut [u8]> {
        let (mut output, c_name) = (null_mut(), c_text(name));
        let rank = sizes.len() as u32;
        // SAFETY: the response is not sent; the server copies name and sizes.
        check(unsafe {
            (api().response_output)(
                self.0.as_ptr(),
                &raw mut output,
                c_name.as_ptr(),
                data_type,
                sizes.as_ptr(),
                rank,
            )
        })?;
        let (mut buffer, mut place, mut device) = (null_mut(), api::TRITONSERVER_MEMORY_CPU, 0);
        // SAFETY: a new output of the response; all are written.
        check(unsafe {
            (api().output_buffer)(output, &raw mut buffer, bytes as u64, &raw mut place, &raw mut device)
        })?;
        host_buffer(name, buffer, bytes, place)
    }

    /// Sends the response, or an error in its place.
    pub fn send(self, failure: Option<&Failure>) -> Result<()> {
        let error = match failure {
            None => null_mut(),
            Some(Failure::Cancelled) => {
                new_error(api::TRITONSERVER_ERROR_CANCELLED, "the request was cancelled")
            }
            Some(Failure::Failed(error)) => answer(error),
        };
        let flags = api::TRITONSERVER_RESPONSE_COMPLETE_FINAL;
        // SAFETY: sent once. The server takes over the response, and the error stays the caller's.
        let sent = check(unsafe { (api().response_send)(self.0.as_ptr(), flags, error) });
        if !error.is_null() {
            // SAFETY: deleted once.
            unsafe { (api().error_delete)(error) };
        }
        sent
    }
}

/// Returns a buffer of the server, which must be in the memory of the host.
fn host_buffer<'b>(name: &str, buffer: *mut c_void, bytes: usize, place: u32) -> Result<&'b mut [u8]> {
    if place == api::TRITONSERVER_MEMORY_GPU {
        return Err(Error::unsupported(format!(
            "output '{name}' is requested in the memory of a GPU; receive it in the memory of the host"
        )));
    }
    if bytes == 0 {
        return Ok(&mut []);
    }
    if buffer.is_null() {
        return Err(Error::internal(format!("the server has no memory for output '{name}'")));
    }
    // SAFETY: the server's memory of this size. Nothing else uses it before the response is sent.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer.cast(), bytes) })
}

/// Returns the bytes at an address, which may be null if there are none.
///
/// # Safety
/// The memory must be valid as long as the result.
unsafe fn bytes_at<'b>(address: *const u8, bytes: usize) -> &'b [u8] {
    if bytes == 0 || address.is_null() {
        return &[];
    }
    // SAFETY: required of the caller.
    unsafe { std::slice::from_raw_parts(address, bytes) }
}
