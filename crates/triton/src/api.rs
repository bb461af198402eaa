//! Functions, types, and numbers of Triton Inference Server that the backend uses: those of
//! `tritonbackend.h` and `tritonserver.h`, version 1 of both interfaces.
//!
//! `scripts/triton/check_headers.py` compares every declaration here with those headers. The
//! functions are found in the process when the server loads the backend, so that the backend is
//! built without the server, and a server that has too few of them is an error with a message.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use support::{Error, Result};

/// Major version of the backend interface.
pub const TRITONBACKEND_API_VERSION_MAJOR: u32 = 1;

/// Element type of a tensor.
pub type DataType = u32;
pub const TRITONSERVER_TYPE_BOOL: DataType = 1;
pub const TRITONSERVER_TYPE_UINT8: DataType = 2;
pub const TRITONSERVER_TYPE_UINT16: DataType = 3;
pub const TRITONSERVER_TYPE_UINT32: DataType = 4;
pub const TRITONSERVER_TYPE_UINT64: DataType = 5;
pub const TRITONSERVER_TYPE_INT8: DataType = 6;
pub const TRITONSERVER_TYPE_INT16: DataType = 7;
pub const TRITONSERVER_TYPE_INT32: DataType = 8;
pub const TRITONSERVER_TYPE_INT64: DataType = 9;
pub const TRITONSERVER_TYPE_FP16: DataType = 10;
pub const TRITONSERVER_TYPE_FP32: DataType = 11;
pub const TRITONSERVER_TYPE_FP64: DataType = 12;
pub const TRITONSERVER_TYPE_BF16: DataType = 14;

/// Place of a buffer.
pub type MemoryType = u32;
pub const TRITONSERVER_MEMORY_CPU: MemoryType = 0;
pub const TRITONSERVER_MEMORY_GPU: MemoryType = 2;

/// Kind of an error.
pub type ErrorCode = u32;
pub const TRITONSERVER_ERROR_INTERNAL: ErrorCode = 1;
pub const TRITONSERVER_ERROR_INVALID_ARG: ErrorCode = 3;
pub const TRITONSERVER_ERROR_UNSUPPORTED: ErrorCode = 5;
pub const TRITONSERVER_ERROR_CANCELLED: ErrorCode = 7;

/// Importance of a message in the log.
pub type LogLevel = u32;
pub const TRITONSERVER_LOG_INFO: LogLevel = 0;
pub const TRITONSERVER_LOG_WARN: LogLevel = 1;
pub const TRITONSERVER_LOG_ERROR: LogLevel = 2;

/// Kind of the processor that an instance of a model runs on.
pub type InstanceKind = u32;
pub const TRITONSERVER_INSTANCEGROUPKIND_CPU: InstanceKind = 1;
pub const TRITONSERVER_INSTANCEGROUPKIND_GPU: InstanceKind = 2;

/// Form in which a model is given to the backend.
pub type ArtifactType = u32;
pub const TRITONBACKEND_ARTIFACT_FILESYSTEM: ArtifactType = 0;

pub const TRITONSERVER_REQUEST_RELEASE_ALL: u32 = 1;
pub const TRITONSERVER_RESPONSE_COMPLETE_FINAL: u32 = 1;

macro_rules! objects {
    ($($name:ident)*) => {$(
        /// An object of the server.
        #[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        }
    )*};
}

objects! {
    Backend BackendAttribute Model ModelInstance Request Response Input Output State Message
    ServerError
}

/// Null, or an error that the receiver owns.
pub type Answer = *mut ServerError;

macro_rules! functions {
    ($($field:ident: $symbol:ident($($argument:ty),*) -> $result:ty;)*) => {
        /// The server's functions.
        pub struct Api {
            $(pub $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Api {
            /// Finds all functions, or returns the name of one that is missing.
            fn find(address: impl Fn(&str) -> *mut c_void) -> std::result::Result<Self, &'static str> {
                Ok(Self {$(
                    $field: {
                        let found = address(concat!(stringify!($symbol), "\0"));
                        if found.is_null() {
                            return Err(stringify!($symbol));
                        }
                        // SAFETY: the server's function of this name has this type.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($argument),*) -> $result,
                            >(found)
                        }
                    },
                )*})
            }
        }
    };
}

functions! {
    api_version: TRITONBACKEND_ApiVersion(*mut u32, *mut u32) -> Answer;
    error_new: TRITONSERVER_ErrorNew(ErrorCode, *const c_char) -> Answer;
    error_delete: TRITONSERVER_ErrorDelete(*mut ServerError) -> ();
    error_code: TRITONSERVER_ErrorCode(*mut ServerError) -> ErrorCode;
    error_message: TRITONSERVER_ErrorMessage(*mut ServerError) -> *const c_char;
    message_new: TRITONSERVER_MessageNewFromSerializedJson(*mut *mut Message, *const c_char, usize) -> Answer;
    message_delete: TRITONSERVER_MessageDelete(*mut Message) -> Answer;
    message_json: TRITONSERVER_MessageSerializeToJson(*mut Message, *mut *const c_char, *mut usize) -> Answer;
    log: TRITONSERVER_LogMessage(LogLevel, *const c_char, c_int, *const c_char) -> Answer;
    add_preferred_group: TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(*mut BackendAttribute, InstanceKind, u64, *const u64, u64) -> Answer;
    set_parallel_loading: TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(*mut BackendAttribute, bool) -> Answer;
    model_name: TRITONBACKEND_ModelName(*mut Model, *mut *const c_char) -> Answer;
    model_version: TRITONBACKEND_ModelVersion(*mut Model, *mut u64) -> Answer;
    model_repository: TRITONBACKEND_ModelRepository(*mut Model, *mut ArtifactType, *mut *const c_char) -> Answer;
    model_config: TRITONBACKEND_ModelConfig(*mut Model, u32, *mut *mut Message) -> Answer;
    model_completes: TRITONBACKEND_ModelAutoCompleteConfig(*mut Model, *mut bool) -> Answer;
    model_set_config: TRITONBACKEND_ModelSetConfig(*mut Model, u32, *mut Message) -> Answer;
    model_state: TRITONBACKEND_ModelState(*mut Model, *mut *mut c_void) -> Answer;
    model_set_state: TRITONBACKEND_ModelSetState(*mut Model, *mut c_void) -> Answer;
    instance_name: TRITONBACKEND_ModelInstanceName(*mut ModelInstance, *mut *const c_char) -> Answer;
    instance_kind: TRITONBACKEND_ModelInstanceKind(*mut ModelInstance, *mut InstanceKind) -> Answer;
    instance_device: TRITONBACKEND_ModelInstanceDeviceId(*mut ModelInstance, *mut i32) -> Answer;
    instance_model: TRITONBACKEND_ModelInstanceModel(*mut ModelInstance, *mut *mut Model) -> Answer;
    instance_state: TRITONBACKEND_ModelInstanceState(*mut ModelInstance, *mut *mut c_void) -> Answer;
    instance_set_state: TRITONBACKEND_ModelInstanceSetState(*mut ModelInstance, *mut c_void) -> Answer;
    report: TRITONBACKEND_ModelInstanceReportStatistics(*mut ModelInstance, *mut Request, bool, u64, u64, u64, u64) -> Answer;
    report_batch: TRITONBACKEND_ModelInstanceReportBatchStatistics(*mut ModelInstance, u64, u64, u64, u64, u64) -> Answer;
    request_is_cancelled: TRITONBACKEND_RequestIsCancelled(*mut Request, *mut bool) -> Answer;
    request_input: TRITONBACKEND_RequestInput(*mut Request, *const c_char, *mut *mut Input) -> Answer;
    request_output_count: TRITONBACKEND_RequestOutputCount(*mut Request, *mut u32) -> Answer;
    request_output_name: TRITONBACKEND_RequestOutputName(*mut Request, u32, *mut *const c_char) -> Answer;
    request_release: TRITONBACKEND_RequestRelease(*mut Request, u32) -> Answer;
    input_properties: TRITONBACKEND_InputProperties(*mut Input, *mut *const c_char, *mut DataType, *mut *const i64, *mut u32, *mut u64, *mut u32) -> Answer;
    input_buffer: TRITONBACKEND_InputBuffer(*mut Input, u32, *mut *const c_void, *mut u64, *mut MemoryType, *mut i64) -> Answer;
    response_new: TRITONBACKEND_ResponseNew(*mut *mut Response, *mut Request) -> Answer;
    response_output: TRITONBACKEND_ResponseOutput(*mut Response, *mut *mut Output, *const c_char, DataType, *const i64, u32) -> Answer;
    response_send: TRITONBACKEND_ResponseSend(*mut Response, u32, *mut ServerError) -> Answer;
    output_buffer: TRITONBACKEND_OutputBuffer(*mut Output, *mut *mut c_void, u64, *mut MemoryType, *mut i64) -> Answer;
    state_new: TRITONBACKEND_StateNew(*mut *mut State, *mut Request, *const c_char, DataType, *const i64, u32) -> Answer;
    state_buffer: TRITONBACKEND_StateBuffer(*mut State, *mut *mut c_void, u64, *mut MemoryType, *mut i64) -> Answer;
    state_update: TRITONBACKEND_StateUpdate(*mut State) -> Answer;
}

/// The server's functions in this process.
static API: OnceLock<Api> = OnceLock::new();

/// Returns the server's functions, which `load` found before anything else ran.
pub fn api() -> &'static Api {
    API.get().expect("the server initializes a backend before it uses it")
}

/// True if the server's functions were found.
pub fn is_loaded() -> bool {
    API.get().is_some()
}

/// Returns an error for a server whose other functions are missing; null if it cannot make one.
pub fn early_error(message: &CStr) -> Answer {
    // SAFETY: the name ends with NUL.
    let found = unsafe { dlsym(std::ptr::null_mut(), c"TRITONSERVER_ErrorNew".as_ptr()) };
    if found.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the server's function of this name has this type, and copies the message.
    unsafe {
        let new = std::mem::transmute::<*mut c_void, unsafe extern "C" fn(ErrorCode, *const c_char) -> Answer>(
            found,
        );
        new(TRITONSERVER_ERROR_UNSUPPORTED, message.as_ptr())
    }
}

/// Finds the server's functions. The server may be a library that the process keeps to itself, as
/// when a Python program contains the server: its functions are then found by the library's name.
pub fn load() -> Result<&'static Api> {
    // SAFETY: names end with NUL, and the handle of a library that is loaded anyway stays valid.
    let own = unsafe { dlopen(c"libtritonserver.so".as_ptr(), RTLD_LAZY | RTLD_NOLOAD) };
    let address = |symbol: &str| {
        // SAFETY: as above.
        let found = unsafe { dlsym(std::ptr::null_mut(), symbol.as_ptr().cast()) };
        if found.is_null() && !own.is_null() {
            // SAFETY: as above.
            unsafe { dlsym(own, symbol.as_ptr().cast()) }
        } else {
            found
        }
    };
    let missing = |symbol: &str| {
        Error::invalid(format!(
            "the server does not have the function {symbol}; use a later version of Triton Inference Server"
        ))
    };
    let found = Api::find(address).map_err(missing)?;
    Ok(API.get_or_init(|| found))
}

const RTLD_LAZY: c_int = 1;
const RTLD_NOLOAD: c_int = 4;

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, symbol: *const c_char) -> *mut c_void;
}
