//! The arguments of `sightline audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sightline_server::commands::audit::{AuditCommand, EraseOptions, ExportFormat, ExportOptions, VerifyOptions};
use sightline_server::review::{SearchQuery, UsageQuery};

#[derive(Debug, Subcommand)]
pub(crate) enum AuditSubcommand {
    /// List questions and events, the newest first.
    List {
        #[command(flatten)]
        search: SearchArguments,
        /// Go on where the page before ended.
        #[arg(long, value_name = "CURSOR")]
        cursor: Option<String>,
        /// The most entries, up to 1,000 (default: 100).
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
    },
    /// Open one question: its calls, what was decided, how it ended.
    Show {
        /// The question's id.
        question: String,
    },
    /// Check every record, text, checkpoint and copy. The exit code is 1 when the log is broken, or a copy that should show it
    /// whole does not.
    Verify {
        /// Check against this public key. Neither --as nor the secret key is needed then.
        #[arg(long, value_name = "HEX")]
        public_key: Option<String>,
        /// The log (default: that of the data folder).
        #[arg(long, value_name = "FILE", requires = "public_key")]
        log: Option<PathBuf>,
        /// A file of copied checkpoints to compare with.
        #[arg(long = "copy", value_name = "FILE", requires = "public_key")]
        copies: Vec<PathBuf>,
    },
    /// Print one record with the proof that it stands in the log, for somebody who may not see the others.
    Proof {
        /// The record's number.
        seq: u64,
    },
    /// Check a proof of one record; it takes no log and no data folder.
    CheckProof {
        /// The file with the proof.
        file: PathBuf,
        /// The public key of the log.
        #[arg(long, value_name = "HEX")]
        public_key: String,
    },
    /// Print the public key, with which others check the log.
    PublicKey,
    /// Write the log for other programs.
    Export {
        /// jsonl is the chain itself and can be verified elsewhere; ocsf and csv are for reading.
        #[arg(long, value_enum, default_value_t = FormatArgument::Jsonl)]
        format: FormatArgument,
        #[command(flatten)]
        search: SearchArguments,
        /// The file to write (default: standard output).
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Run a question's queries again under your own rights, and say whether the rows are the same.
    Replay {
        /// The question's id.
        question: String,
        /// The recorded incident that it was asked about.
        #[arg(long, value_name = "DIR")]
        bundle: Option<PathBuf>,
    },
    /// Erase the texts of questions on request; that they were asked stays provable.
    Erase {
        /// The questions' ids.
        #[arg(required_unless_present = "principal", conflicts_with = "principal", value_name = "QUESTION_ID")]
        questions: Vec<String>,
        /// All questions of this principal.
        #[arg(long, value_name = "PRINCIPAL")]
        principal: Option<String>,
        /// The principal's conversations, too.
        #[arg(long, requires = "principal")]
        conversations: bool,
    },
    /// Make a new key and sign with it from here on; whoever trusts the old one can go on checking the log.
    RotateKey,
    /// What was used: questions, rows, bytes and tokens of each principal on each day.
    Usage {
        /// From this day on (UTC).
        #[arg(long, value_name = "DAY")]
        from: Option<String>,
        /// Before this day.
        #[arg(long, value_name = "DAY")]
        to: Option<String>,
        /// Of this principal.
        #[arg(long, value_name = "PRINCIPAL")]
        principal: Option<String>,
        /// Of principals of this tenant.
        #[arg(long, value_name = "TENANT")]
        tenant: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SearchArguments {
    /// `question`, `event`, or a kind of event such as `login_failed`.
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// By this principal.
    #[arg(long, value_name = "PRINCIPAL")]
    who: Option<String>,
    /// By principals of this tenant.
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Questions that called this tool.
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Questions that read this table.
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,
    /// `allowed` or `denied`.
    #[arg(long, value_name = "DECISION")]
    decision: Option<String>,
    /// How it ended: `answered`, `refused`, `error`, `open`, `abandoned`, …
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,
    /// From this time or day on (UTC).
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Before this time or day.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Questions that hold this text.
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormatArgument {
    Jsonl,
    Ocsf,
    Csv,
}

impl SearchArguments {
    fn query(self, cursor: Option<String>, limit: Option<u32>) -> SearchQuery {
        let Self { kind, who, tenant, tool, table, decision, outcome, from, to, text } = self;
        SearchQuery { kind, who, tenant, tool, table, decision, outcome, from, to, text, cursor, limit }
    }
}

impl From<FormatArgument> for ExportFormat {
    fn from(format: FormatArgument) -> Self {
        match format {
            FormatArgument::Jsonl => Self::Jsonl,
            FormatArgument::Ocsf => Self::Ocsf,
            FormatArgument::Csv => Self::Csv,
        }
    }
}

impl From<AuditSubcommand> for AuditCommand {
    fn from(command: AuditSubcommand) -> Self {
        match command {
            AuditSubcommand::List { search, cursor, limit } => Self::List(search.query(cursor, limit)),
            AuditSubcommand::Show { question } => Self::Show(question),
            AuditSubcommand::Verify { public_key, log, copies } => {
                Self::Verify(VerifyOptions { public_key, log, copies })
            }
            AuditSubcommand::Proof { seq } => Self::Proof(seq),
            AuditSubcommand::CheckProof { file, public_key } => Self::CheckProof { file, public_key },
            AuditSubcommand::PublicKey => Self::PublicKey,
            AuditSubcommand::Export { format, search, out } => {
                Self::Export(ExportOptions { format: format.into(), query: search.query(None, None), out })
            }
            AuditSubcommand::Replay { question, bundle } => Self::Replay { question, bundle },
            AuditSubcommand::Erase { questions, principal, conversations } => {
                Self::Erase(EraseOptions { questions, principal, conversations })
            }
            AuditSubcommand::RotateKey => Self::RotateKey,
            AuditSubcommand::Usage { from, to, principal, tenant } => {
                Self::Usage(UsageQuery { from, to, principal, tenant })
            }
        }
    }
}
