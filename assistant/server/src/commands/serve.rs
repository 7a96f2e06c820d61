//! `sightline serve`: the HTTP service.

use std::sync::Arc;
use std::time::Duration;

use sightline_llm::LlmPlanner;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::demo::{self, Login};
use super::{CommandError, failed, model};
use crate::answers::Answers;
use crate::config::Config;
use crate::heartbeat::Heartbeat;
use crate::http::{Service, Site, bind, router, serve as serve_http};
use crate::identity::{Identity, IdentityStore};
use crate::output;
use crate::policies::PolicyWatch;
use crate::retention::{self, KeptLog};
use crate::room::Room;
use crate::stations::{Data, Stations};

/// How often failed credentials and denials that were counted are looked through for what is to be recorded.
const RECORD_EVERY: Duration = Duration::from_secs(10);

/// What the model's server can do, in a line. Questions are taken meanwhile.
async fn probed(model: &LlmPlanner) -> String {
    match model::probed(model).await {
        Ok(can) => format!("The model {can}"),
        Err(fault) => format!("The model cannot be asked, so the built-in planner answers: {fault}"),
    }
}

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
    let heartbeat = Heartbeat::start(&stations, config.heartbeat_seconds).await;
    let watch = watch(config, &stations)?;
    let store = IdentityStore::open(&config.data_dir).map_err(failed)?;
    match &loaded {
        Some(loaded) => {
            let logins = demo::logins(&store, &stations.assistant).await?;
            demo::first_answer(&stations.assistant, loaded).await?;
            output::note(&banner(&address.to_string(), &logins));
        }
        None => output::note(&format!("Sightline listens on http://{address}")),
    }
    if let Some(model) = stations.model.clone() {
        tokio::spawn(async move { output::note(&probed(&model).await) });
    }
    let answers = Answers::open(&config.data_dir, config.keep_days).map_err(failed)?;
    let identity = Identity::new(store, &stations.assistant);
    let site = Site::new(config.public_url.as_deref());
    let service = Service::new(Arc::clone(&stations.assistant), Arc::clone(&stations.audit), identity, site, answers);
    let sweeping = tokio::spawn({
        let service = service.clone();
        let kept = KeptLog { log: Arc::clone(&stations.log), keep_days: config.audit_keep_days };
        async move {
            let clock = Arc::clone(&service.assistant().clock);
            retention::keep_sweeping(service.answers(), service.audit().as_ref(), clock.as_ref(), kept).await;
        }
    });
    let asked = asked_to_stop()?;
    let stop = async {
        asked.await;
        output::note("stopping: running answers may finish");
    };
    let recording = tokio::spawn(record_counted(service.clone()));
    let reading = stations.site.clone().map(|site| tokio::spawn(site.run()));
    serve_http(listener, router(service.clone()), stop).await;
    recording.abort();
    sweeping.abort();
    watch.abort();
    if let Some(reading) = reading {
        reading.abort();
    }
    service.record_last_counted().await;
    heartbeat.stop().await;
    drop(service);
    if let Some(copies) = &stations.copies {
        // The engine that takes them is about to end.
        copies.finish().await;
    }
    stations.close().await;
    Ok(())
}

/// Failed credentials and denials are counted, and recorded a minute at a time.
async fn record_counted(service: Service) {
    loop {
        tokio::time::sleep(RECORD_EVERY).await;
        service.record_counted().await;
    }
}

/// Keeps the policies up to date with the site's files, if it has its own.
fn watch(config: &Config, stations: &Stations) -> Result<JoinHandle<()>, CommandError> {
    let mut hangups = signal(SignalKind::hangup()).map_err(failed)?;
    let Some(dir) = config.policies_dir.clone() else {
        // Without a handler the signal would end the service.
        return Ok(tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                output::note("asked to read the policies again, but `policies.dir` is not set: the shipped ones stay");
            }
        }));
    };
    let assistant = &stations.assistant;
    let watch = PolicyWatch::new(
        dir,
        stations.policy_files.clone(),
        Arc::clone(&assistant.policies),
        Arc::clone(&assistant.audit),
        Arc::clone(&assistant.clock),
    );
    Ok(tokio::spawn(watch.run(hangups)))
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
        "\nSightline listens on http://{address}\n\nLogins (log in to the page with a token, or send it as a bearer token):\n"
    );
    for login in logins {
        text.push_str(&format!("  {:<20} {}\n", login.principal, login.token));
    }
    text.push_str("\nStop with Ctrl-C.");
    text
}
