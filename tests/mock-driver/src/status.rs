//! `CUresult`, as the plain integer that it is in C.

use std::ffi::{CStr, c_int};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Status(pub c_int);

macro_rules! statuses {
    ($($name:ident = $number:literal, $c_name:literal, $text:literal;)*) => {
        impl Status {
            $(pub(crate) const $name: Status = Status($number);)*

            /// The name and the description of a number.
            pub(crate) fn words(number: c_int) -> Option<(&'static CStr, &'static CStr)> {
                match number {
                    $($number => Some(($c_name, $text)),)*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    SUCCESS = 0, c"CUDA_SUCCESS", c"no error";
    INVALID_VALUE = 1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument";
    OUT_OF_MEMORY = 2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory";
    INVALID_DEVICE = 101, c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal";
    INVALID_IMAGE = 200, c"CUDA_ERROR_INVALID_IMAGE", c"device kernel image is invalid";
    INVALID_CONTEXT = 201, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context";
    NO_BINARY_FOR_GPU = 209, c"CUDA_ERROR_NO_BINARY_FOR_GPU",
        c"no kernel image is available for execution on the device";
    INVALID_HANDLE = 400, c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle";
    NOT_FOUND = 500, c"CUDA_ERROR_NOT_FOUND", c"named symbol not found";
    NOT_READY = 600, c"CUDA_ERROR_NOT_READY", c"device not ready";
    ILLEGAL_ADDRESS = 700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered";
    LAUNCH_FAILED = 719, c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure";
    UNKNOWN = 999, c"CUDA_ERROR_UNKNOWN", c"unknown error";
}

pub(crate) type Result<T> = std::result::Result<T, Status>;

impl From<Result<()>> for Status {
    fn from(result: Result<()>) -> Status {
        result.err().unwrap_or(Status::SUCCESS)
    }
}
