//! libchdb behind safe types. The only file of the workspace with `unsafe` in it.
//!
//! The C interface is the one of libchdb 26.5. What holds of it, as far as it was measured:
//! many connections to one path may be open and run queries at once; a connection runs one statement at a time
//! (hence `&mut self`); the last connection must be closed before the process ends, else the library's own
//! destructors crash.

#![expect(unsafe_code, reason = "libchdb is a C library; every call into it is in this file")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use libloading::Library;

/// A connection as libchdb sees it: a pointer to the pointer that `chdb_close_conn` clears.
type RawConnection = *mut *mut c_void;
type RawResult = *mut c_void;
type QueryFn = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    *const *const c_char,
    *const usize,
    usize,
) -> RawResult;
type CounterFn = unsafe extern "C" fn(RawResult) -> u64;

/// The functions of libchdb that the front uses.
#[derive(Clone, Copy)]
struct Functions {
    connect: unsafe extern "C" fn(c_int, *const *const c_char) -> RawConnection,
    close: unsafe extern "C" fn(RawConnection),
    query: QueryFn,
    stream_query: QueryFn,
    stream_fetch: unsafe extern "C" fn(*mut c_void, RawResult) -> RawResult,
    stream_cancel: unsafe extern "C" fn(*mut c_void, RawResult),
    destroy: unsafe extern "C" fn(RawResult),
    buffer: unsafe extern "C" fn(RawResult) -> *const u8,
    length: unsafe extern "C" fn(RawResult) -> usize,
    error: unsafe extern "C" fn(RawResult) -> *const c_char,
    rows: CounterFn,
    bytes: CounterFn,
    rows_read: CounterFn,
    bytes_read: CounterFn,
    rows_written: CounterFn,
    bytes_written: CounterFn,
    set_signal_handlers: unsafe extern "C" fn(c_int),
}

/// libchdb, loaded. It stays loaded until the process ends.
pub(crate) struct Chdb {
    functions: Functions,
    /// Never dropped: the library's threads outlive its last connection, so unmapping its code would crash.
    _library: ManuallyDrop<Library>,
}

/// A bound parameter, `(name, value)`; the value in ClickHouse's escaped text form, as `param_` over HTTP.
pub(crate) type Parameter = (String, Vec<u8>);

/// What a statement or a part of a stream returned, and what was read for it.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// The bytes in the requested format.
    pub(crate) bytes: Vec<u8>,
    /// What it cost.
    pub(crate) counters: Counters,
}

/// Rows and bytes, as libchdb counts them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) result_rows: u64,
    pub(crate) result_bytes: u64,
    pub(crate) read_rows: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_rows: u64,
    pub(crate) written_bytes: u64,
}

/// The engine's own error text, beginning with `Code: N. DB::Exception:`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ChdbError(pub(crate) String);

impl Chdb {
    /// Loads the library and finds the functions in it.
    pub(crate) fn load(path: &Path) -> Result<Arc<Self>, libloading::Error> {
        // SAFETY: loading runs the library's initialisers. The path is the operator's choice of library, trusted like
        // the binary itself; libchdb's initialisers touch no state of ours.
        let library = unsafe { Library::new(path)? };
        // SAFETY: each name is asked for with the signature that libchdb 26.5's header gives it. The function pointers
        // are copied out and stay valid, since the library is never unloaded.
        let functions = unsafe {
            Functions {
                connect: *library.get(b"chdb_connect")?,
                close: *library.get(b"chdb_close_conn")?,
                query: *library.get(b"chdb_query_with_params_n")?,
                stream_query: *library.get(b"chdb_stream_query_with_params_n")?,
                stream_fetch: *library.get(b"chdb_stream_fetch_result")?,
                stream_cancel: *library.get(b"chdb_stream_cancel_query")?,
                destroy: *library.get(b"chdb_destroy_query_result")?,
                buffer: *library.get(b"chdb_result_buffer")?,
                length: *library.get(b"chdb_result_length")?,
                error: *library.get(b"chdb_result_error")?,
                rows: *library.get(b"chdb_result_rows_read")?,
                bytes: *library.get(b"chdb_result_bytes_read")?,
                rows_read: *library.get(b"chdb_result_storage_rows_read")?,
                bytes_read: *library.get(b"chdb_result_storage_bytes_read")?,
                rows_written: *library.get(b"chdb_result_rows_written")?,
                bytes_written: *library.get(b"chdb_result_bytes_written")?,
                set_signal_handlers: *library.get(b"chdb_set_signal_handlers_enabled")?,
            }
        };
        // Its handlers sleep for minutes before they let a crash through; a crash here should be seen at once.
        // SAFETY: takes an int, sets a flag of the library and resets signal dispositions; called before any connection.
        unsafe { (functions.set_signal_handlers)(0) };
        Ok(Arc::new(Self { functions, _library: ManuallyDrop::new(library) }))
    }

    /// Opens a connection to the data under `path`, which is the same for every connection of the process.
    /// Gives `None` when the engine refuses; it prints its reason to stderr.
    pub(crate) fn connect(self: &Arc<Self>, path: &Path) -> Option<Connection> {
        let name = CString::new("clickhouse").ok()?;
        let path = CString::new(format!("--path={}", path.display())).ok()?;
        let arguments = [name.as_ptr(), path.as_ptr()];
        // SAFETY: `arguments` holds two NUL-terminated strings that live through the call, and says so.
        let raw = unsafe { (self.functions.connect)(2, arguments.as_ptr()) };
        let raw = NonNull::new(raw)?;
        Some(Connection { chdb: Arc::clone(self), raw })
    }

    /// Takes the bytes and counters out of a result and frees it.
    fn take(&self, raw: RawResult) -> Result<Output, ChdbError> {
        if raw.is_null() {
            return Err(ChdbError("Code: 1002. DB::Exception: libchdb returned no result".to_owned()));
        }
        let result = OwnedResult { functions: self.functions, raw };
        if let Some(message) = result.error() {
            // The counters of a failed result are uninitialised memory, so they are not read.
            return Err(ChdbError(message));
        }
        Ok(Output { bytes: result.bytes(), counters: result.counters() })
    }
}

/// One connection: a session with its own settings, used by one thread at a time.
pub(crate) struct Connection {
    chdb: Arc<Chdb>,
    raw: NonNull<*mut c_void>,
}

// SAFETY: libchdb keeps a connection's state behind its own mutex and ties nothing of it to a thread; `&mut self` on
// every call keeps it to one thread at a time.
unsafe impl Send for Connection {}

impl Connection {
    /// Runs one statement to its end and returns everything it produced.
    pub(crate) fn query(&mut self, sql: &[u8], format: &str, parameters: &[Parameter]) -> Result<Output, ChdbError> {
        let raw = self.call(self.chdb.functions.query, sql, format, parameters);
        self.chdb.take(raw)
    }

    /// Starts a SELECT whose result is fetched block by block. Each block is a document of `format` of its own.
    pub(crate) fn stream(
        &mut self,
        sql: &[u8],
        format: &str,
        parameters: &[Parameter],
    ) -> Result<Stream<'_>, ChdbError> {
        let raw = self.call(self.chdb.functions.stream_query, sql, format, parameters);
        if raw.is_null() {
            return Err(ChdbError("Code: 1002. DB::Exception: libchdb returned no stream".to_owned()));
        }
        let result = OwnedResult { functions: self.chdb.functions, raw };
        if let Some(message) = result.error() {
            return Err(ChdbError(message));
        }
        Ok(Stream { connection: self, result, ended: false })
    }

    fn call(&mut self, function: QueryFn, sql: &[u8], format: &str, parameters: &[Parameter]) -> RawResult {
        let names: Vec<*const c_char> = parameters.iter().map(|(name, _)| name.as_ptr().cast()).collect();
        let name_lengths: Vec<usize> = parameters.iter().map(|(name, _)| name.len()).collect();
        let values: Vec<*const c_char> = parameters.iter().map(|(_, value)| value.as_ptr().cast()).collect();
        let value_lengths: Vec<usize> = parameters.iter().map(|(_, value)| value.len()).collect();
        // SAFETY: the connection is open (closed in `drop` alone). Every pointer comes with its length, points into
        // memory that lives through the call, and is never null (an empty Vec's pointer is dangling, not null, and is
        // given with length 0). libchdb copies what it keeps.
        unsafe {
            function(
                *self.raw.as_ptr(),
                sql.as_ptr().cast(),
                sql.len(),
                format.as_ptr().cast(),
                format.len(),
                names.as_ptr(),
                name_lengths.as_ptr(),
                values.as_ptr(),
                value_lengths.as_ptr(),
                parameters.len(),
            )
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: `raw` came from `chdb_connect` and is closed here once; nothing borrowed from it is left, since
        // `Stream` borrows the connection mutably.
        unsafe { (self.chdb.functions.close)(self.raw.as_ptr()) };
    }
}

/// A running SELECT. Dropping it cancels what is left.
pub(crate) struct Stream<'a> {
    connection: &'a mut Connection,
    result: OwnedResult,
    ended: bool,
}

impl Stream<'_> {
    /// The next block, or `None` after the last one. The last call may carry bytes and no rows (an empty result).
    pub(crate) fn next(&mut self) -> Result<Option<Output>, ChdbError> {
        if self.ended {
            return Ok(None);
        }
        let chdb = Arc::clone(&self.connection.chdb);
        // SAFETY: the connection is open and the stream's handle belongs to it and is not yet destroyed.
        let raw = unsafe { (chdb.functions.stream_fetch)(*self.connection.raw.as_ptr(), self.result.raw) };
        let output = match chdb.take(raw) {
            Ok(output) => output,
            Err(error) => {
                self.ended = true;
                return Err(error);
            }
        };
        // libchdb ends a stream with a part of zero rows.
        self.ended = output.counters.result_rows == 0;
        if self.ended && output.bytes.is_empty() {
            return Ok(None);
        }
        Ok(Some(output))
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let functions = self.connection.chdb.functions;
            // SAFETY: as in `next`; the handle itself is freed afterwards by `OwnedResult`.
            unsafe { (functions.stream_cancel)(*self.connection.raw.as_ptr(), self.result.raw) };
        }
    }
}

/// A result that is freed when it goes.
struct OwnedResult {
    functions: Functions,
    raw: RawResult,
}

impl OwnedResult {
    fn error(&self) -> Option<String> {
        // SAFETY: `raw` is a live result; the text is NUL-terminated, owned by the result and copied here.
        let text = unsafe {
            let text = (self.functions.error)(self.raw);
            if text.is_null() {
                return None;
            }
            std::ffi::CStr::from_ptr(text)
        };
        Some(text.to_string_lossy().into_owned())
    }

    fn bytes(&self) -> Vec<u8> {
        // SAFETY: `raw` is a live result without error; buffer and length describe one allocation that it owns.
        unsafe {
            let length = (self.functions.length)(self.raw);
            let buffer = (self.functions.buffer)(self.raw);
            if length == 0 || ptr::eq(buffer, ptr::null()) {
                return Vec::new();
            }
            std::slice::from_raw_parts(buffer, length).to_vec()
        }
    }

    fn counters(&self) -> Counters {
        let Functions { rows, bytes, rows_read, bytes_read, rows_written, bytes_written, .. } = self.functions;
        // SAFETY: `raw` is a live result without error.
        unsafe {
            Counters {
                result_rows: rows(self.raw),
                result_bytes: bytes(self.raw),
                read_rows: rows_read(self.raw),
                read_bytes: bytes_read(self.raw),
                written_rows: rows_written(self.raw),
                written_bytes: bytes_written(self.raw),
            }
        }
    }
}

impl Drop for OwnedResult {
    fn drop(&mut self) {
        // SAFETY: `raw` came from libchdb, is not null, and is destroyed here once.
        unsafe { (self.functions.destroy)(self.raw) };
    }
}
