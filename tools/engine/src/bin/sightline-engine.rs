//! The engine's process on its own: `sightline engine` without the rest of the binary.
//!
//! `sightline-engine DATA_DIR [PORT]` makes its passwords from the system's random source and writes them to
//! `DATA_DIR/engine.json`; `sightline-engine --child DATA_DIR [PORT]` takes them from its parent.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use sightline_engine::{CredentialSource, EngineCredentials, EngineOptions, FrontLimits, LibrarySearch, serve_engine};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Where standard error is gone there is nobody to tell.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{message}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let child = arguments.first().is_some_and(|first| first == "--child");
    if child {
        arguments.remove(0);
    }
    let (data_dir, port) = match arguments.as_slice() {
        [data_dir] => (PathBuf::from(data_dir), 0),
        [data_dir, port] => (PathBuf::from(data_dir), port.parse().map_err(|_| format!("`{port}` is no port"))?),
        _ => return Err("usage: sightline-engine [--child] DATA_DIR [PORT]".to_owned()),
    };
    let credentials = if child { CredentialSource::Parent } else { CredentialSource::Given(random_credentials()?) };
    let library = LibrarySearch {
        configured: std::env::var_os("SIGHTLINE_LIBCHDB").map(PathBuf::from),
        binary_dir: std::env::current_exe().ok().and_then(|path| path.parent().map(PathBuf::from)),
        data_dir: Some(data_dir.clone()),
        home_dir: std::env::home_dir(),
    };
    let options = EngineOptions { data_dir, port, library, credentials, limits: FrontLimits::default() };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(serve_engine(options)).map_err(|error| error.to_string())
}

fn random_credentials() -> Result<EngineCredentials, String> {
    let mut seed = [0; 32];
    let mut source = std::fs::File::open("/dev/urandom").map_err(|error| format!("no random source: {error}"))?;
    source.read_exact(&mut seed).map_err(|error| format!("no random source: {error}"))?;
    Ok(EngineCredentials::from_random(seed))
}
