//! The policies of a site as they lie on the disk: a folder with rules, limits, principals and identity providers, read as a whole.

use std::path::Path;

use sha2::{Digest as _, Sha256};
use sightline_policies::{Fault, Policies, Source, Sources};

/// Largest file that is read, bytes: rules for thousands of people, and a cap all the same.
const MAX_FILE: u64 = 1024 * 1024;
/// Most files of rules.
const MAX_RULE_FILES: usize = 256;
/// What a folder of policies may hold beside its rules.
const FILES: [&str; 3] = ["limits.toml", "principals.toml", "identity.toml"];

/// One text, and the name that faults give it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    name: String,
    text: String,
}

/// The texts of a policy set as they were read; what a folder does not have is the shipped one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFiles {
    rules: Option<Vec<Text>>,
    limits: Option<Text>,
    principals: Option<Text>,
    identity: Option<Text>,
}

/// Everything that is wrong with the policies of a site; none of it was taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the policies cannot be used:\n{}", faults.iter().map(|fault| format!("  {fault}")).collect::<Vec<_>>().join("\n"))]
pub struct PolicyFilesError {
    /// By file and line. Guaranteed: not empty.
    pub faults: Vec<Fault>,
}

impl PolicyFiles {
    /// Reads a folder; the shipped texts where there is none.
    ///
    /// # Errors
    /// Everything that cannot be read, and every file that would be passed over in silence.
    pub fn read(dir: Option<&Path>) -> Result<Self, PolicyFilesError> {
        let Some(dir) = dir else {
            return Ok(Self { rules: None, limits: None, principals: None, identity: None });
        };
        let mut faults = Vec::new();
        refuse_strangers(dir, &mut faults);
        let rules = read_rules(&dir.join("rules"), &mut faults);
        let [limits, principals, identity] = FILES.map(|name| read_text(&dir.join(name), &mut faults));
        if principals.is_none() && faults.is_empty() {
            let what =
                "it is missing; say who there is (the principals that ship with the program are those of its demo)";
            faults.push(fault(&dir.join("principals.toml"), what));
        }
        let files = Self { rules, limits, principals, identity };
        if faults.is_empty() { Ok(files) } else { Err(PolicyFilesError { faults }) }
    }

    /// Refuses this reading if rules or limits that `before` had from files are gone from it.
    ///
    /// Only at the start does a missing part mean the shipped one. While a service runs it more likely means that somebody is about to
    /// replace it, and with the shipped rules others could read other things from one moment to the next. Identity providers that are
    /// gone are no fault: then fewer people come in.
    ///
    /// # Errors
    /// What is gone.
    pub fn since(self, before: &Self) -> Result<Self, PolicyFilesError> {
        let what = "it is gone, and what was read from it stays in force; put it back, or restart the service to have the shipped ones";
        let rules = before.rules.as_ref().filter(|_| self.rules.is_none()).and_then(|rules| rules.first());
        let limits = before.limits.as_ref().filter(|_| self.limits.is_none());
        let rules = rules.and_then(|rule| Path::new(&rule.name).parent()).map(|folder| fault(folder, what));
        let limits = limits.map(|limits| fault(Path::new(&limits.name), what));
        let faults: Vec<Fault> = rules.into_iter().chain(limits).collect();
        if faults.is_empty() { Ok(self) } else { Err(PolicyFilesError { faults }) }
    }

    /// Makes a policy set of the texts, all or nothing.
    ///
    /// # Errors
    /// Every fault of every file.
    pub fn policies(&self) -> Result<Policies, PolicyFilesError> {
        let rules = self.rules();
        Policies::from_sources(&self.sources(&rules))
            .map_err(|errors| PolicyFilesError { faults: errors.faults().to_vec() })
    }

    /// What the policies are known by: SHA-256 over the name and text of every part, the shipped ones among them, hex.
    pub fn digest(&self) -> String {
        let rules = self.rules();
        let Sources { schema, rules, limits, principals, identity } = self.sources(&rules);
        let mut digest = Sha256::new();
        for Source { name, text } in [schema].iter().chain(rules).chain([&limits, &principals]).chain(&identity) {
            for part in [name, text] {
                digest.update((part.len() as u64).to_be_bytes());
                digest.update(part.as_bytes());
            }
        }
        hex::encode(digest.finalize())
    }

    fn rules(&self) -> Vec<Source<'_>> {
        match &self.rules {
            Some(texts) => texts.iter().map(Text::source).collect(),
            None => Sources::SHIPPED.rules.to_vec(),
        }
    }

    /// What holds: the texts that were read, and the shipped ones where there are none.
    fn sources<'a>(&'a self, rules: &'a [Source<'a>]) -> Sources<'a> {
        let shipped = Sources::SHIPPED;
        Sources {
            schema: shipped.schema,
            rules,
            limits: self.limits.as_ref().map_or(shipped.limits, Text::source),
            principals: self.principals.as_ref().map_or(shipped.principals, Text::source),
            identity: self.identity.as_ref().map(Text::source),
        }
    }

    /// The files that were read, in the order of their names.
    pub fn names(&self) -> Vec<&str> {
        self.texts().map(|text| text.name.as_str()).collect()
    }

    /// Where each part comes from, in words.
    pub fn origins(&self) -> [(&'static str, String); 4] {
        let file = |text: &Option<Text>, otherwise: &str| {
            text.as_ref().map_or_else(|| otherwise.to_owned(), |text| text.name.clone())
        };
        let rules = match &self.rules {
            Some(texts) => texts.iter().map(|text| text.name.as_str()).collect::<Vec<_>>().join(", "),
            None => "the shipped ones".to_owned(),
        };
        let mut principals = file(&self.principals, "the shipped ones");
        if self.principals.as_ref().is_none_or(|text| text.text == Sources::SHIPPED.principals.text) {
            principals.push_str(", those of the demo");
        }
        [
            ("rules", rules),
            ("limits", file(&self.limits, "the shipped ones")),
            ("principals", principals),
            ("identity", file(&self.identity, "none; people come by token alone")),
        ]
    }

    fn texts(&self) -> impl Iterator<Item = &Text> {
        self.rules.iter().flatten().chain(&self.limits).chain(&self.principals).chain(&self.identity)
    }
}

impl Text {
    fn source(&self) -> Source<'_> {
        Source { name: &self.name, text: &self.text }
    }
}

/// A file that looks like policy and is not read would be a rule that nobody enforces.
fn refuse_strangers(dir: &Path, faults: &mut Vec<Fault>) {
    let Some(names) = list(dir, faults) else {
        let what =
            "it is no folder that can be read; make one with `sightline policy init DIR`, or correct `policies.dir`";
        return faults.push(fault(dir, what));
    };
    for name in names {
        let looks_like_policy = [".toml", ".cedar", ".cedarschema"].iter().any(|end| name.ends_with(end));
        if looks_like_policy && !FILES.contains(&name.as_str()) {
            let what = format!(
                "it is not read; the files are {}, and `rules/*.cedar`",
                FILES.map(|file| format!("`{file}`")).join(", ")
            );
            faults.push(fault(&dir.join(&name), what));
        }
    }
}

/// The rules of a folder, by name; none when there is no folder.
fn read_rules(dir: &Path, faults: &mut Vec<Fault>) -> Option<Vec<Text>> {
    let names = list(dir, faults)?;
    let (rules, others): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.ends_with(".cedar"));
    for name in others {
        faults.push(fault(&dir.join(name), "it is not read; files of rules end in `.cedar`"));
    }
    if rules.is_empty() {
        faults
            .push(fault(dir, "it holds no rules, so nothing would be allowed; take it away to have the shipped ones"));
    }
    if rules.len() > MAX_RULE_FILES {
        faults.push(fault(dir, format!("it holds over {MAX_RULE_FILES} files; put rules together")));
        return None;
    }
    Some(rules.into_iter().filter_map(|name| read_text(&dir.join(name), faults)).collect())
}

/// The names in a folder, in order, without hidden ones: where a folder is replaced as a whole its former texts lie in those.
fn list(dir: &Path, faults: &mut Vec<Fault>) -> Option<Vec<String>> {
    let mut names: Vec<String> = match std::fs::read_dir(dir) {
        Ok(entries) => entries
            .filter_map(|entry| entry.ok().map(|entry| entry.file_name().to_string_lossy().into_owned()))
            .filter(|name| !name.starts_with('.'))
            .collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            faults.push(fault(dir, format!("it cannot be listed: {error}")));
            return None;
        }
    };
    names.sort();
    Some(names)
}

/// A file's text; none when there is no such file.
fn read_text(path: &Path, faults: &mut Vec<Fault>) -> Option<Text> {
    let read = match std::fs::metadata(path) {
        Ok(about) if !about.is_file() => Err("it is no file".to_owned()),
        Ok(about) if about.len() > MAX_FILE => Err(format!("it has over {MAX_FILE} bytes; divide it")),
        Ok(_) => std::fs::read_to_string(path).map_err(|error| format!("it cannot be read: {error}")),
        // A link to nothing is a file that somebody meant to be there.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && std::fs::symlink_metadata(path).is_err() => {
            return None;
        }
        Err(error) => Err(format!("it cannot be read: {error}")),
    };
    match read {
        Ok(text) => Some(Text { name: path.display().to_string(), text }),
        Err(what) => {
            faults.push(fault(path, what));
            None
        }
    }
}

fn fault(path: &Path, what: impl Into<String>) -> Fault {
    Fault { file: path.display().to_string(), line: 1, what: what.into() }
}
