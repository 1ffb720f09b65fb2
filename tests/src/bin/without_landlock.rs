//! Runs a program as on a kernel without Landlock: `landlock_create_ruleset` answers ENOSYS, in it and its children.
//!
//! usage: without-landlock PROGRAM [ARGUMENT...]

use std::{env, error::Error, os::unix::process::CommandExt, process::Command};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args_os().skip(1);
    let program = words.next().ok_or("usage: without-landlock PROGRAM [ARGUMENT...]")?;
    let enosys = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    let rows = [(libc::SYS_landlock_create_ruleset, Vec::new())].into_iter().collect();
    let filter = SeccompFilter::new(rows, SeccompAction::Allow, enosys, env::consts::ARCH.try_into()?)?;
    apply_filter(&BpfProgram::try_from(filter)?)?;
    Err(Command::new(program).args(words).exec().into())
}
