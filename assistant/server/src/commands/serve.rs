//! `sightline serve`: the HTTP service.

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use super::demo::{self, Login};
use super::{CommandError, failed};
use crate::answers::Answers;
use crate::config::Config;
use crate::heartbeat::Heartbeat;
use crate::http::{Service, bind, router, serve as serve_http};
use crate::output;
use crate::room::Room;
use crate::stations::{Data, Stations};
use crate::tokens::Tokens;

/// Serves until it is asked to stop.
///
/// # Errors
/// When the address is taken or a station cannot be opened.
pub async fn serve(config: &Config, with_demo: bool) -> Result<(), CommandError> {
    // The port first: a taken one is told before minutes of loading.
    let listener = bind(config.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let room = Room::open(config).await.map_err(failed)?;
    let loaded = if with_demo { Some(demo::load(config, &room).await?) } else { None };
    let data = if with_demo { Data::Database(demo::DATABASE) } else { Data::Own };
    let stations = Stations::open_in(config, room, data).await.map_err(failed)?;
    let mut tokens = Tokens::open(&config.data_dir).map_err(failed)?;
    match &loaded {
        Some(loaded) => {
            let logins = demo::logins(&mut tokens, &stations.assistant)?;
            demo::first_answer(&stations.assistant, loaded).await?;
            output::note(&banner(&address.to_string(), &logins));
        }
        None => output::note(&format!("Sightline listens on http://{address}")),
    }
    let answers = Answers::open(&config.data_dir, config.keep_days).map_err(failed)?;
    let service = Service::new(Arc::clone(&stations.assistant), Arc::clone(&stations.audit), tokens, answers);
    let heartbeat = Heartbeat::start(&stations, config.heartbeat_seconds).await;
    let asked = asked_to_stop()?;
    let stop = async {
        asked.await;
        output::note("stopping: running answers may finish");
    };
    serve_http(listener, router(service), stop).await;
    heartbeat.stop().await;
    if let Some(copies) = &stations.copies {
        // The engine that takes them is about to end.
        copies.finish().await;
    }
    stations.close().await;
    Ok(())
}

/// Resolves on Ctrl-C or SIGTERM.
fn asked_to_stop() -> Result<impl Future<Output = ()>, CommandError> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

fn banner(address: &str, logins: &[Login]) -> String {
    let mut text = format!(
        "\nSightline listens on http://{address}\n\nLogins (paste a token into the page, or send it as a bearer token):\n"
    );
    for login in logins {
        text.push_str(&format!("  {:<20} {}\n", login.principal, login.token));
    }
    text.push_str("\nStop with Ctrl-C.");
    text
}
