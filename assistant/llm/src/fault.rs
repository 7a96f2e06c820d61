//! Why a model gave nothing to go on with.

use std::time::Duration;

/// Why a request to the model, or what came back, is of no use. Guaranteed: no text of a server, a model or a key is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelFault {
    /// The configuration makes no client.
    #[error("the model's client cannot be made: {reason}")]
    Client {
        /// What is wrong, and with which setting.
        reason: &'static str,
    },
    /// Nobody answers at the address.
    #[error("the model's server cannot be reached; check `llm.base_url`, `llm.proxy` and `llm.ca_file`")]
    Unreachable,
    /// The answer took too long, as a whole or between two pieces.
    #[error("the model gave no answer within {seconds} s")]
    TimedOut {
        /// How long was waited.
        seconds: u64,
    },
    /// The key is missing or wrong.
    #[error("the model's server takes no request with this key (status {status}); check `OPENAI_API_KEY`")]
    Unauthorized {
        /// The HTTP status.
        status: u16,
    },
    /// The server has too much to do, also after several tries.
    #[error("the model's server is overloaded or the key's quota is spent (status {status})")]
    Overloaded {
        /// The HTTP status.
        status: u16,
    },
    /// The server does not take the request as it is.
    #[error(
        "the model's server refused the request (status {status}); check `llm.model`, `llm.mode` and `llm.reply_limit`"
    )]
    Rejected {
        /// The HTTP status.
        status: u16,
    },
    /// What came back is no chat completion.
    #[error("the model's server did not send a chat completion: {what}")]
    Malformed {
        /// What it was instead.
        what: &'static str,
    },
    /// The answer broke off, or was larger than anything of use and was broken off.
    #[error("the model's answer broke off before its end")]
    Cut,
    /// The model declines.
    #[error("the model declined to answer")]
    Declined,
    /// The model called no tool.
    #[error("the model called no tool")]
    NoCalls,
    /// The model goes in circles.
    #[error("the model repeated calls instead of answering")]
    Loop,
    /// A budget of the question is spent.
    #[error("the question's budget of {what} for the model is spent")]
    Budget {
        /// Of what.
        what: &'static str,
    },
    /// The day's tokens are spent, or cannot be looked at.
    #[error("{reason}")]
    Quota {
        /// Whose budget, and until when.
        reason: String,
    },
    /// The transcript in the model's place has no such reply.
    #[error("the transcript holds no further reply to this question; record it again with `eval run --record`")]
    NotRecorded,
    /// Nothing of what it wrote holds.
    #[error("nothing that the model wrote was borne out by the evidence")]
    Ungrounded,
}

impl ModelFault {
    /// Whether the same request may be taken a moment later.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable | Self::Overloaded { .. } => true,
            Self::Client { .. }
            | Self::TimedOut { .. }
            | Self::Unauthorized { .. }
            | Self::Rejected { .. }
            | Self::Malformed { .. }
            | Self::Cut
            | Self::Declined
            | Self::NoCalls
            | Self::Loop
            | Self::Budget { .. }
            | Self::Quota { .. }
            | Self::NotRecorded
            | Self::Ungrounded => false,
        }
    }

    /// One word for the audit log.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Client { .. } => "client",
            Self::Unreachable => "unreachable",
            Self::TimedOut { .. } => "timed_out",
            Self::Unauthorized { .. } => "unauthorized",
            Self::Overloaded { .. } => "overloaded",
            Self::Rejected { .. } => "rejected",
            Self::Malformed { .. } => "malformed",
            Self::Cut => "cut",
            Self::Declined => "declined",
            Self::NoCalls => "no_calls",
            Self::Loop => "loop",
            Self::Budget { .. } => "budget",
            Self::Quota { .. } => "quota",
            Self::NotRecorded => "not_recorded",
            Self::Ungrounded => "ungrounded",
        }
    }

    pub(crate) fn timed_out(after: Duration) -> Self {
        Self::TimedOut { seconds: after.as_secs().max(1) }
    }
}
