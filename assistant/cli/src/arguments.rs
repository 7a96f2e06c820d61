//! The command line.

pub(crate) mod audit;
pub(crate) mod eval;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use sightline_server::Flags;
use sightline_server::commands::ask::AskOptions;
use sightline_server::commands::policy::Explain;
use sightline_server::commands::{self, CommandError};
use sightline_server::config::PlannerChoice;

/// Ask a GPU cluster in plain language, and get an answer with proof.
#[derive(Debug, Parser)]
#[command(name = "sightline", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) flags: CommonFlags,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct CommonFlags {
    /// The configuration file (default: ./sightline.toml, if there is one).
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where all state lives (default: ./.sightline).
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where the service listens (default: 127.0.0.1:8787; port 0 takes a free one).
    #[arg(long, global = true, value_name = "ADDR")]
    listen: Option<String>,
}

impl From<CommonFlags> for Flags {
    fn from(flags: CommonFlags) -> Self {
        let CommonFlags { config, data_dir, listen } = flags;
        Self { config, data_dir, listen }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answer questions over HTTP, with a page at `/`.
    Serve {
        /// Load a demo fleet that ends now, print logins, and answer a first question.
        #[arg(long)]
        demo: bool,
        /// Which planner answers (default: `llm.planner` of the configuration, else offline).
        #[arg(long, value_enum, value_name = "PLANNER")]
        planner: Option<PlannerName>,
    },
    /// Ask one question and print the answer.
    Ask(AskArguments),
    /// Run the embedded engine on its own; `ask`, `serve` and `doctor` attach to it.
    Engine {
        /// Take the passwords from standard input, and end with it.
        #[arg(long, hide = true)]
        child: bool,
        /// The port on 127.0.0.1; 0 takes a free one.
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// The file libchdb.so (default: beside the binary, in the data folder, in your cache).
        #[arg(long, value_name = "FILE")]
        library: Option<PathBuf>,
    },
    /// Bearer tokens: who may ask over HTTP. With `--as` (or `cli.principal`) the policy must let that principal manage tokens; without,
    /// as for the first token of a site, whoever owns the data folder may. The audit log names both.
    Token {
        /// Who does this: a principal of the policy files that may `manage_tokens`.
        #[arg(long = "as", global = true, value_name = "PRINCIPAL")]
        actor: Option<String>,
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Recorded incidents in the embedded engine.
    Incident {
        #[command(subcommand)]
        command: IncidentCommand,
    },
    /// How good the answers are: a suite of recorded incidents, asked and scored.
    Eval {
        #[command(subcommand)]
        command: eval::EvalSubcommand,
    },
    /// Hold SQL from outside against the grammar of our own queries.
    ///
    /// Reads JSON lines {id, sql, params?} and writes {id, verdict, reasons}. The exit code is 0 whatever the verdicts.
    CheckSql {
        /// Whose tenants the tenant parameter must lie in.
        #[arg(long = "as", value_name = "PRINCIPAL", default_value = "operator@atlas")]
        principal: String,
        /// The database whose tables may be read.
        #[arg(long, default_value = "sightline")]
        database: String,
        /// The file to read; `-` or nothing reads standard input.
        file: Option<PathBuf>,
    },
    /// The audit log: who asked what, which data was read, what was refused.
    Audit {
        /// Who reviews: a principal of the policy files.
        #[arg(long = "as", global = true, value_name = "PRINCIPAL")]
        reviewer: Option<String>,
        /// Print one JSON document.
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        command: audit::AuditSubcommand,
    },
    /// Who may do what: check it, show it, say why.
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Say what is missing on this machine, and what to do about it.
    Doctor {
        /// Print instead what an administrator runs on a ClickHouse of your own, so that it keeps tenants apart.
        #[arg(long)]
        sql: bool,
        /// The tenants that get a role there (default: those that principals belong to).
        #[arg(long, value_name = "TENANT,…", value_delimiter = ',', requires = "sql")]
        tenants: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it, this once.
    New {
        /// The principal it stands for.
        #[arg(long = "for", value_name = "PRINCIPAL")]
        principal: String,
        /// For how long it holds, like 90d or 12h; `never` for no end (default: 90d).
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        /// What it is for, in your words.
        #[arg(long, value_name = "TEXT")]
        label: Option<String>,
    },
    /// List the tokens, without anything secret.
    List {
        /// Print one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// End a token, and the sessions it opened.
    Revoke {
        /// The token's id, as `token list` shows it.
        #[arg(required_unless_present = "principal", conflicts_with = "principal")]
        id: Option<String>,
        /// End every token of this principal, and its sessions; also of one that an identity provider vouches for.
        #[arg(long = "for", value_name = "PRINCIPAL")]
        principal: Option<String>,
    },
}

impl From<TokenCommand> for commands::token::TokenCommand {
    fn from(command: TokenCommand) -> Self {
        match command {
            TokenCommand::New { principal, expires, label } => Self::New { principal, expires, label },
            TokenCommand::List { json } => Self::List { json },
            TokenCommand::Revoke { id: Some(id), principal: _ } => Self::Revoke { id },
            // The parser asks for one of the two.
            TokenCommand::Revoke { id: None, principal } => Self::RevokeOf { principal: principal.unwrap_or_default() },
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum IncidentCommand {
    /// Load a bundle, once.
    Load {
        /// The bundle's folder.
        dir: PathBuf,
    },
    /// List the bundles that are loaded.
    List,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Read a folder of policies as the service would, and name every fault by file and line.
    Check {
        /// The folder (default: `policies.dir` of the configuration, else what ships).
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print who may do what: roles against tools, datasets and whose rows they are.
    Matrix {
        /// The folder (default: `policies.dir` of the configuration, else what ships).
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// The tenant that the roles belong to; rules may name one.
        #[arg(long, value_name = "TENANT", default_value = "own-tenant")]
        tenant: String,
    },
    /// Say whether a principal may do something, by which rule, and whom to ask if not.
    ///
    /// The exit code is 0 whatever the decision.
    Explain(ExplainArguments),
    /// Write the policies that ship into a new folder, as a start for your own.
    Init {
        /// The folder; nothing in it is replaced.
        dir: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// The folder (default: `policies.dir` of the configuration, else what ships).
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Who asks: a principal of the policy files.
    #[arg(long = "as", value_name = "PRINCIPAL")]
    principal: String,
    /// The tool it calls.
    #[arg(long, value_name = "TOOL", required_unless_present = "action")]
    tool: Option<String>,
    /// What it does instead of reading, like `export_audit`.
    #[arg(long, value_name = "ACTION", conflicts_with_all = ["dataset", "tenant", "job_of"])]
    action: Option<String>,
    /// The dataset that the tool reads (default: each of them).
    #[arg(long, value_name = "DATASET")]
    dataset: Option<String>,
    /// Whose rows (default: those of all its tenants).
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Whose the job is that the call is about.
    #[arg(long, value_name = "USER")]
    job_of: Option<String>,
}

impl From<ExplainArguments> for (Option<PathBuf>, Explain) {
    fn from(arguments: ExplainArguments) -> Self {
        let ExplainArguments { dir, principal, tool, action, dataset, tenant, job_of } = arguments;
        (dir, Explain { principal, tool, action, dataset, tenant, job_of })
    }
}

/// A planner by its name.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PlannerName {
    /// The built-in one.
    Offline,
    /// The one that asks a model.
    Llm,
}

impl From<PlannerName> for PlannerChoice {
    fn from(name: PlannerName) -> Self {
        match name {
            PlannerName::Offline => Self::Offline,
            PlannerName::Llm => Self::Llm,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct AskArguments {
    /// Which planner answers (default: `llm.planner` of the configuration, else offline).
    #[arg(long, value_enum, value_name = "PLANNER")]
    pub(crate) planner: Option<PlannerName>,
    /// Ask about a recorded incident in this folder.
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
    /// Who asks: a principal of the policy files, or `role@tenant` with --bundle.
    #[arg(long = "as", value_name = "PRINCIPAL")]
    principal: Option<String>,
    /// The instant to take as now, RFC 3339 (default: now, or a bundle's latest sample).
    #[arg(long, value_name = "TIME")]
    as_of: Option<String>,
    /// The zone in which time words are meant, an IANA name (default: this machine's).
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// The conversation this question belongs to.
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Print the answer as one JSON document.
    #[arg(long)]
    json: bool,
    /// Say on standard error how the offline planner read the question: marks, the reading and what it was held against.
    #[arg(long)]
    explain: bool,
    /// The question.
    #[arg(required = true, num_args = 1..)]
    question: Vec<String>,
}

impl From<AskArguments> for AskOptions {
    fn from(arguments: AskArguments) -> Self {
        let AskArguments { planner: _, bundle, principal, as_of, tz, conversation, json, explain, question } =
            arguments;
        Self { question: question.join(" "), bundle, principal, as_of, time_zone: tz, conversation, json, explain }
    }
}

/// The lines to check: a file's, or standard input's.
pub(crate) fn input(file: Option<&Path>) -> Result<Box<dyn BufRead + Send>, CommandError> {
    match file {
        None => Ok(Box::new(BufReader::new(std::io::stdin()))),
        Some(path) if path == Path::new("-") => Ok(Box::new(BufReader::new(std::io::stdin()))),
        Some(path) => match std::fs::File::open(path) {
            Ok(file) => Ok(Box::new(BufReader::new(file))),
            Err(error) => Err(CommandError::Failed(format!("`{}` cannot be read: {error}", path.display()))),
        },
    }
}
