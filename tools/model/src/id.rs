//! Ids as newtypes over text. They are made by the caller's id source (UUIDv7), never here.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The id with this text.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// Its text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// One question as it was asked once; the key of its audit records.
    QuestionId
);
id!(
    /// One answer.
    AnswerId
);
id!(
    /// A conversation: questions that may refer back.
    ConversationId
);
id!(
    /// One query as the engine knows it.
    QueryId
);
id!(
    /// A piece of evidence within one answer, for example `E1`.
    EvidenceId
);
