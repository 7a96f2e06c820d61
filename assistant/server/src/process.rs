//! The name of a process in the audit log: enough to tell later, on the same machine, whether it still lives.

use std::fs;

/// A process id alone is used again; with its start time, the boot and the namespace it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process<'a> {
    boot: &'a str,
    namespace: &'a str,
    pid: u32,
    started: &'a str,
}

impl<'a> Process<'a> {
    fn parse(name: &'a str) -> Option<Self> {
        let mut words = name.split(' ');
        let process = Self {
            boot: words.next()?,
            namespace: words.next()?,
            pid: words.next()?.parse().ok()?,
            started: words.next()?,
        };
        words.next().is_none().then_some(process)
    }
}

/// This process. None where the system does not tell these things.
pub fn this() -> Option<String> {
    let pid = std::process::id();
    Some(format!("{} {} {pid} {}", boot()?, namespace()?, started(pid)?))
}

/// Whether the process of this name lives. None when that cannot be told from here, for example in another container.
pub fn alive(name: &str) -> Option<bool> {
    let process = Process::parse(name)?;
    if process.boot != boot()? {
        // The log is shared by processes of one machine: that boot is over.
        return Some(false);
    }
    if process.namespace != namespace()? {
        return None;
    }
    Some(started(process.pid).is_some_and(|started| started == process.started))
}

fn boot() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

fn namespace() -> Option<String> {
    Some(fs::read_link("/proc/self/ns/pid").ok()?.to_string_lossy().into_owned())
}

/// When a process started, in ticks since the boot; none when there is no such process.
fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name may hold anything, blanks and brackets too: fields are counted behind its last bracket.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    // Fields 3 and 22 of proc_pid_stat(5); a process that has ended and was not collected yet is no more.
    let state = fields.next()?;
    let started = fields.nth(18)?;
    (!["Z", "X"].contains(&state)).then(|| started.to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::{alive, boot, namespace, started, this};

    #[test]
    fn this_process_lives_and_one_that_was_killed_does_not() {
        let name = this().unwrap();
        assert_eq!(alive(&name), Some(true));
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let (boot, namespace, pid) = (boot().unwrap(), namespace().unwrap(), child.id());
        let child_name = format!("{boot} {namespace} {pid} {}", started(pid).unwrap());
        assert_eq!(alive(&child_name), Some(true));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(alive(&child_name), Some(false));
    }

    #[test]
    fn a_process_of_another_start_boot_or_container_is_not_taken_for_this_one() {
        let (boot, namespace, pid) = (boot().unwrap(), namespace().unwrap(), std::process::id());
        assert_eq!(alive(&format!("{boot} {namespace} {pid} 1")), Some(false));
        assert_eq!(alive(&format!("0000 {namespace} {pid} {}", started(pid).unwrap())), Some(false));
        assert_eq!(alive(&format!("{boot} pid:[1] {pid} 1")), None);
        assert_eq!(alive("something else"), None);
        assert_eq!(alive(""), None);
    }
}
