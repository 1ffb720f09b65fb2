//! Rows → a BPF program → every thread of the process, and a look afterwards whether it is there.
//!
//! A call that is on no row kills the process at once (`SIGSYS`); so does a call of another architecture.
//! Not here: which calls (policy/).

use std::collections::BTreeMap;

use rustix::thread::SecureComputingMode;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::policy::{self, Cond, Row, Test};
use crate::{Error, Role};

const WHAT: &str = "the seccomp filter";

/// What a filter allows: by number, any of the rules; none: any arguments.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Installs the role's filter on all threads.
pub(crate) fn install(role: Role) -> Result<(), Error> {
    let program = compile(role).map_err(|e| Error::unenforced(WHAT, e))?;
    seccompiler::apply_filter_all_threads(&program).map_err(|e| Error::unenforced(WHAT, e))?;
    // PR_GET_SECCOMP answers 2 under a filter that allows it, as all of ours do.
    match rustix::thread::secure_computing_mode() {
        Ok(SecureComputingMode::Filter) => Ok(()),
        _ => Err(Error::Broken(WHAT)),
    }
}

fn compile(role: Role) -> Result<BpfProgram, BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules(role)?, SeccompAction::KillProcess, SeccompAction::Allow, arch)?.try_into()
}

/// The role's rows; for the monitor, whose filter its children inherit, everybody's rows with its own on top.
fn rules(role: Role) -> Result<Rules, BackendError> {
    let mut all = Rules::new();
    if role == Role::Monitor {
        for child in Role::ALL.into_iter().filter(|r| *r != Role::Monitor) {
            for row in policy::calls(child).into_iter().flatten() {
                join(&mut all, row)?;
            }
        }
    }
    for row in policy::calls(role).into_iter().flatten() {
        join(&mut all, row)?;
    }
    Ok(all)
}

/// Adds a row: a call that is on two rows is allowed if either row allows it.
fn join(all: &mut Rules, row: &Row) -> Result<(), BackendError> {
    let new = alternatives(row)?;
    let known = all.get(&row.number).map(Vec::len);
    let rules = all.entry(row.number).or_default();
    match known {
        Some(0) => {}
        _ if new.is_empty() => rules.clear(),
        _ => rules.extend(new.into_iter().filter(|r| !rules.contains(r)).collect::<Vec<_>>()),
    }
    Ok(())
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
