//! `make bench`: starts the real service on the demo fleet, asks, and prints what it took; then what the guard costs, on the same
//! engine, and what a diagnosis costs. `bench guarded` and `bench diagnosed` do one of these only; `bench isolation` asks instead about a job of another tenant and one that does not
//! exist, and says whether the time tells them apart.

use std::error::Error;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use sightline_engine::{EngineUser, engine_address};
use sightline_evals::bench::{Asked, median, report};
use sightline_evals::diagnosed::diagnosed;
use sightline_evals::guarded::guarded;

/// How often each question is asked.
const TIMES: usize = 5;
/// How often the engine is asked for nothing.
const ROUND_TRIPS: usize = 200;
/// How often each of the two jobs is asked about, after some asks that do not count.
const ISOLATION_TIMES: usize = 200;
const ISOLATION_WARM_UP: usize = 10;
/// A job of the demo's other tenant, and one of nobody, as long.
const FOREIGN_JOB: &str = "J201";
const NO_JOB: &str = "J291";
/// What is asked, as operator@atlas.
const QUESTIONS: [&str; 4] = [
    "Why was training job J123 slow yesterday?",
    "What was the GPU temperature of node atlas-n03 over the last 3 hours?",
    "Top 5 hottest GPUs in the last hour",
    "Compare GPU power today and yesterday",
];

/// The service, ended with this value.
struct Service {
    child: Child,
    url: String,
    token: String,
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(Command::new("kill").arg(self.child.id().to_string()).status());
        drop(self.child.wait());
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(bench())
}

async fn bench() -> Result<(), Box<dyn Error>> {
    let binary = PathBuf::from("target/release/sightline");
    if !binary.is_file() {
        return Err("build the binary first: cargo build --release --package sightline".into());
    }
    let data_dir = PathBuf::from("target/bench-data");
    let part = std::env::args().nth(1);
    if part.as_deref() == Some("isolation") {
        let policies = patient_policies(&data_dir)?;
        let service = start(&binary, &data_dir, Some(&policies))?;
        return isolation(&service).await;
    }
    let service = start(&binary, &data_dir, None)?;
    let address = engine_address(&data_dir)?.ok_or("the engine does not run")?;
    if part.is_none() {
        questions(&binary, &data_dir, &service).await?;
    }
    if part.as_deref() != Some("guarded") {
        std::io::stdout().write_all(diagnosed(&address).await?.as_bytes())?;
    }
    if part.as_deref() != Some("diagnosed") {
        std::io::stdout().write_all(guarded(&address).await?.as_bytes())?;
    }
    Ok(())
}

/// A client over HTTP, with the product's provider of cryptography: TLS is built without one.
fn client() -> reqwest::Client {
    // It may be there already, and is the same one then.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::new()
}

async fn questions(binary: &Path, data_dir: &Path, service: &Service) -> Result<(), Box<dyn Error>> {
    let client = client();
    let round_trip = round_trips(&client, data_dir).await?;
    let shell = shell_asks(binary, data_dir)?;
    let mut asked = Vec::new();
    for question in QUESTIONS {
        asked.push(ask(&client, service, question).await?);
    }
    std::io::stdout().write_all(report(round_trip, shell, &asked).as_bytes())?;
    Ok(())
}

/// The shipped principals and limits, but for how often one may ask: what is measured is the answer, not the wait.
fn patient_policies(data_dir: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let folder = data_dir.join("policies");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("principals.toml"), include_str!("../../../policies/principals.toml"))?;
    let patient = |line: &str| match line.split_once(" = ") {
        Some(("questions_per_minute", _)) => "questions_per_minute = 100_000".to_owned(),
        Some(_) | None => line.to_owned(),
    };
    let limits: Vec<String> = include_str!("../../../policies/limits.toml").lines().map(patient).collect();
    std::fs::write(folder.join("limits.toml"), limits.join("\n"))?;
    Ok(folder)
}

/// Asks about both jobs in turn, and prints what their times say.
async fn isolation(service: &Service) -> Result<(), Box<dyn Error>> {
    let client = client();
    let [mut foreign, mut unknown] = [Vec::new(), Vec::new()];
    for round in 0..ISOLATION_TIMES + ISOLATION_WARM_UP {
        // Each is the first of a pair as often as the other.
        let pair = if round % 2 == 0 { [FOREIGN_JOB, NO_JOB] } else { [NO_JOB, FOREIGN_JOB] };
        for job in pair {
            let question = format!("Why was training job {job} slow yesterday?");
            let started = Instant::now();
            let request = client
                .post(format!("{}/v1/chat", service.url))
                .bearer_auth(&service.token)
                .json(&json!({ "question": question }));
            let answer: Value = request.send().await?.error_for_status()?.json().await?;
            let took = started.elapsed().as_secs_f64() * 1000.0;
            if answer.get("outcome").and_then(Value::as_str) == Some("answered") {
                return Err(format!("`{question}` was answered, so the job is the asker's: {answer}").into());
            }
            let times = if job == FOREIGN_JOB { &mut foreign } else { &mut unknown };
            if round >= ISOLATION_WARM_UP {
                times.push(took);
            }
        }
    }
    let said = sightline_evals::isolation::report(&foreign, &unknown).ok_or("nothing was measured")?;
    std::io::stdout().write_all(said.as_bytes())?;
    Ok(())
}

/// Starts `serve --demo` and reads its address and the operator's token from what it prints.
fn start(binary: &Path, data_dir: &Path, policies: Option<&Path>) -> Result<Service, Box<dyn Error>> {
    let mut command = Command::new(binary);
    if let Some(policies) = policies {
        command.env("SIGHTLINE_POLICIES_DIR", policies);
    }
    let mut child = command
        .arg("--data-dir")
        .arg(data_dir)
        .args(["--listen", "127.0.0.1:0", "serve", "--demo"])
        .stderr(Stdio::piped())
        .spawn()?;
    let stderr = child.stderr.take().ok_or("the service has no stderr")?;
    let (mut url, mut token) = (None, None);
    let mut lines = BufReader::new(stderr).lines();
    for line in lines.by_ref() {
        let line = line?;
        let mut words = line.split_whitespace();
        match (words.next(), words.next_back()) {
            (Some("Sightline"), Some(address)) if line.contains("listens on") => url = Some(address.to_owned()),
            (Some("operator@atlas"), Some(text)) if text.starts_with("sl_") => token = Some(text.to_owned()),
            (Some(_) | None, Some(_) | None) => {}
        }
        if let (Some(url), Some(token)) = (&url, &token) {
            let service = Service { child, url: url.clone(), token: token.clone() };
            // Somebody has to go on reading, or the service would block on a full pipe.
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(service);
        }
    }
    Err("the service ended before it listened; run `make demo` to see why".into())
}

/// The median time of a statement that does nothing, milliseconds.
async fn round_trips(client: &reqwest::Client, data_dir: &Path) -> Result<f64, Box<dyn Error>> {
    let address = engine_address(data_dir)?.ok_or("the engine does not run")?;
    let password = address.credentials.password(EngineUser::Writer);
    let mut millis = Vec::new();
    for _ in 0..ROUND_TRIPS {
        let started = Instant::now();
        let request = client.post(address.url()).basic_auth(EngineUser::Writer.name(), Some(password)).body("SELECT 1");
        request.send().await?.error_for_status()?.bytes().await?;
        millis.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    median(millis).ok_or_else(|| "nothing was measured".into())
}

/// The median time of one small question from the shell, milliseconds: start, attach, ask, end.
fn shell_asks(binary: &Path, data_dir: &Path) -> Result<f64, Box<dyn Error>> {
    let mut millis = Vec::new();
    for _ in 0..TIMES {
        let started = Instant::now();
        let output = Command::new(binary)
            .arg("--data-dir")
            .arg(data_dir)
            .args(["ask", "--json", "--as", "operator@atlas", "top 5 hottest gpus in the last hour"])
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        millis.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    median(millis).ok_or_else(|| "nothing was measured".into())
}

async fn ask(client: &reqwest::Client, service: &Service, question: &str) -> Result<Asked, Box<dyn Error>> {
    let mut asked = Asked { question: question.to_owned(), millis: Vec::new(), queries: 0, rows_read: 0 };
    for _ in 0..TIMES {
        let started = Instant::now();
        let request = client
            .post(format!("{}/v1/chat", service.url))
            .bearer_auth(&service.token)
            .json(&json!({ "question": question }));
        let answer: Value = request.send().await?.error_for_status()?.json().await?;
        asked.millis.push(started.elapsed().as_secs_f64() * 1000.0);
        asked.queries = answer.pointer("/cost/queries").and_then(Value::as_u64).unwrap_or(0);
        asked.rows_read = answer.pointer("/cost/rows_read").and_then(Value::as_u64).unwrap_or(0);
        if answer.get("outcome").and_then(Value::as_str) != Some("answered") {
            return Err(format!("`{question}` was not answered: {answer}").into());
        }
    }
    Ok(asked)
}
