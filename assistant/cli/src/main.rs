//! The binary `sightline`: arguments and main, nothing else.

mod arguments;
mod eval;
mod eval_questions;
mod transcripts;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser as _;
use sightline_server::commands::{self, CommandError};
use sightline_server::{Config, output};

use arguments::eval::EvalSubcommand;
use arguments::{Arguments, Command, IncidentCommand, PolicyCommand};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Two TLS providers are pulled in; without a choice, building a TLS client panics.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        output::note("another TLS provider was installed first; report this");
        return ExitCode::FAILURE;
    }
    log_to_stderr();
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(&format!("sightline: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(arguments: Arguments) -> Result<(), CommandError> {
    let Arguments { flags, command } = arguments;
    let mut config = Config::load(&flags.into(), &environment).map_err(|e| CommandError::Usage(e.to_string()))?;
    if let Command::CheckSql { principal, database, file } = command {
        return commands::check_sql::check(&config, arguments::input(file.as_deref())?, &principal, &database);
    }
    if let Command::Policy { command } = command {
        return policy(&config, command);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| CommandError::Failed(format!("the runtime cannot start: {e}")))?;
    runtime.block_on(async {
        match command {
            Command::Serve { demo, planner } => {
                config.planner = planner.map_or(config.planner, Into::into);
                commands::serve::serve(&config, demo).await
            }
            Command::Ask(ask) => {
                config.planner = ask.planner.map_or(config.planner, Into::into);
                commands::ask::ask(&config, ask.into()).await
            }
            Command::Engine { child, port, library } => {
                config.library = library.or(config.library);
                let command = commands::engine::EngineCommand { child, port };
                commands::engine::engine(&config, command).await
            }
            Command::Audit { reviewer, json, command } => {
                commands::audit::audit(&config, reviewer.as_deref(), json, command.into()).await
            }
            Command::Token { actor, command } => {
                commands::token::token(&config, actor.as_deref(), command.into()).await
            }
            Command::Incident { command: IncidentCommand::Load { dir } } => {
                commands::incident::load(&config, &dir).await
            }
            Command::Eval { command: EvalSubcommand::Run(run) } => {
                config.planner = run.planner.map_or(config.planner, Into::into);
                eval::eval_run(config, run.into()).await
            }
            Command::Eval { command: EvalSubcommand::Questions(questions) } => {
                eval_questions::run(&config, &questions).await
            }
            Command::Incident { command: IncidentCommand::List } => commands::incident::list(&config).await,
            Command::Doctor { sql: true, tenants } => commands::doctor::admin_sql(&config, tenants),
            Command::Doctor { sql: false, tenants: _ } => commands::doctor::doctor(&config).await,
            Command::CheckSql { .. } | Command::Policy { .. } => Ok(()),
        }
    })
}

fn policy(config: &Config, command: PolicyCommand) -> Result<(), CommandError> {
    match command {
        PolicyCommand::Check { dir } => commands::policy::check(config, dir),
        PolicyCommand::Matrix { dir, tenant } => commands::policy::matrix(config, dir, &tenant),
        PolicyCommand::Explain(explain) => {
            let (dir, question) = explain.into();
            commands::policy::explain(config, dir, &question)
        }
        PolicyCommand::Init { dir } => commands::policy::init(&dir),
    }
}

/// The environment, read here and nowhere else.
#[expect(clippy::disallowed_methods, reason = "configuration is read here, once")]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Logs go to stderr, as much as `SIGHTLINE_LOG` asks for. The client library quotes the engine's error text, which quotes rows of
/// other tenants: it is silenced whatever is asked for.
fn log_to_stderr() {
    let wanted = environment("SIGHTLINE_LOG").unwrap_or_else(|| "warn".to_owned());
    let filter = tracing_subscriber::EnvFilter::try_new(format!("{wanted},clickhouse=off,async_openai=off"))
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn,clickhouse=off,async_openai=off"));
    // Colours are for a terminal; in a file they are noise.
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_tls_client_can_be_built_once_the_provider_is_installed() {
        rustls::crypto::ring::default_provider().install_default().unwrap();
        let roots = rustls::RootCertStore::empty();
        let built = std::panic::catch_unwind(|| {
            rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
        });
        assert!(built.is_ok());
    }
}
