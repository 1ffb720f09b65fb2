//! Rows → a BPF program → every thread of the process, and a look afterwards whether it is there.
//!
//! A call that is on no row kills the process at once (`SIGSYS`); so does a call of another architecture.
//! Not here: which calls (policy/).

use rustix::thread::SecureComputingMode;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::Error;
use crate::policy::{Cond, Policy, Row, Test};

const WHAT: &str = "the seccomp filter";

/// Puts every thread of the process under a filter of these rows: a call that is on none kills the process. The last step before
/// the loop.
///
/// # Errors
/// [`Error::Unenforced`] if the kernel has no seccomp filters or a thread cannot be synchronised.
pub fn seal(policy: &Policy) -> Result<(), Error> {
    let program = compile(policy).map_err(|e| Error::unenforced(WHAT, e))?;
    seccompiler::apply_filter_all_threads(&program).map_err(|e| Error::unenforced(WHAT, e))?;
    // PR_GET_SECCOMP answers 2 under a filter that allows it, as all of ours do.
    match rustix::thread::secure_computing_mode() {
        Ok(SecureComputingMode::Filter) => Ok(()),
        _ => Err(Error::Broken(WHAT)),
    }
}

fn compile(policy: &Policy) -> Result<BpfProgram, BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let rows = policy.iter().copied().flatten();
    let rules = rows.map(|row| Ok((row.number, alternatives(row)?))).collect::<Result<_, BackendError>>()?;
    SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, arch)?.try_into()
}

/// The row's conditions as rules of which one must match; conditions within a rule all must.
fn alternatives(row: &Row) -> Result<Vec<SeccompRule>, BackendError> {
    if row.when.is_empty() {
        return Ok(Vec::new());
    }
    let mut rules: Vec<Vec<SeccompCondition>> = vec![Vec::new()];
    for cond in row.when {
        let ways = ways(cond)?;
        rules =
            rules.iter().flat_map(|rule| ways.iter().map(|way| [rule.as_slice(), way.as_slice()].concat())).collect();
    }
    rules.into_iter().map(SeccompRule::new).collect()
}

/// The ways in which one condition can hold.
fn ways(cond: &Cond) -> Result<Vec<Vec<SeccompCondition>>, BackendError> {
    // The kernel takes these arguments as `int`: only the lower half counts, bit for bit.
    let int = |value: libc::c_int| u64::from(value.cast_unsigned());
    let on = |len, op, value| SeccompCondition::new(cond.arg, len, op, value);
    let dword = SeccompCmpArgLen::Dword;
    let one_way = |conditions: Vec<SeccompCondition>| vec![conditions];
    Ok(match cond.test {
        Test::OneOf(values) => values
            .iter()
            .map(|v| Ok(vec![on(dword.clone(), SeccompCmpOp::Eq, int(*v))?]))
            .collect::<Result<_, BackendError>>()?,
        Test::Without(bits) => one_way(vec![on(dword, SeccompCmpOp::MaskedEq(int(bits)), 0)?]),
        Test::Null => one_way(vec![on(SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?]),
        Test::OwnPid => one_way(vec![on(dword, SeccompCmpOp::Eq, u64::from(std::process::id()))?]),
    })
}
