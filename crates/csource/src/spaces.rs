//! The kind of memory that each address of a kernel points to. OpenCL C 1.2 has no address of
//! unknown kind.

use nest::{Expression, Function, Statement, Type, ValueId};
use support::{Error, Id, Result};

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Space {
    /// Memory of the device: all parameters of kernels.
    Global,
    /// Memory of a workgroup.
    Local,
    /// Memory of a thread.
    Private,
    /// Tables.
    Constant,
}

impl Space {
    /// The qualifier of addresses.
    pub(crate) fn qualifier(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Local => "local",
            Self::Private => "private",
            Self::Constant => "constant",
        }
    }

    /// The middle of the names of functions that access the memory.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Global => "",
            Self::Local => "local_",
            Self::Private => "private_",
            Self::Constant => "constant_",
        }
    }
}

/// Returns the kind of memory of each address of a kernel; `Global` for other values.
///
/// Errors: `unsupported` for an address that may point to several kinds, or is read from memory.
pub(crate) fn of(function: &Function) -> Result<Vec<Space>> {
    let mut known: Vec<Option<Space>> = vec![None; function.values.len()];
    for parameter in &function.parameters {
        known[parameter.value.index()] = Some(Space::Global);
    }
    loop {
        let before = known.iter().flatten().count();
        for statement in function.body.walk() {
            spread(function, statement, &mut known)?;
        }
        if known.iter().flatten().count() == before {
            break;
        }
    }
    for (id, ty) in function.values.iter() {
        if *ty == Type::PTR && known[id.index()].is_none() && is_used(function, id) {
            return Err(Error::unsupported(format!(
                "OpenCL C: the address {id} has no known kind of memory"
            )));
        }
    }
    Ok(known.into_iter().map(|space| space.unwrap_or(Space::Global)).collect())
}

fn is_used(function: &Function, id: ValueId) -> bool {
    function.body.walk().any(|statement| match statement {
        Statement::Let(_, expression) => expression.operands().contains(&id),
        other => other.operands().contains(&id),
    })
}

fn spread(function: &Function, statement: &Statement, known: &mut [Option<Space>]) -> Result<()> {
    let mut same = |ids: &[ValueId]| {
        let ids: Vec<ValueId> = ids.iter().copied().filter(|&id| function.values[id] == Type::PTR).collect();
        let Some(space) = ids.iter().find_map(|id| known[id.index()]) else { return Ok(()) };
        for id in ids {
            if known[id.index()].is_some_and(|other| other != space) {
                return Err(Error::unsupported(
                    "OpenCL C: an address points to memory of the device or of a workgroup, depending on data",
                ));
            }
            known[id.index()] = Some(space);
        }
        Ok(())
    };
    match statement {
        Statement::Let(id, Expression::Offset { pointer, .. }) => same(&[*pointer, *id]),
        Statement::Let(id, Expression::Select(_, a, b)) => same(&[*id, *a, *b]),
        Statement::Let(id, expression) => {
            let root = match expression {
                Expression::WorkgroupMemory { .. } => Some(Space::Local),
                Expression::StackSlot { .. } => Some(Space::Private),
                Expression::Bytes(_) => Some(Space::Constant),
                _ => None,
            };
            if root.is_some() {
                known[id.index()] = root;
            }
            Ok(())
        }
        Statement::For { carried, body, .. } | Statement::While { carried, body, .. } => carried
            .iter()
            .zip(&body.yields)
            .try_for_each(|(c, &next)| same(&[c.inner, c.initial, c.result, next])),
        Statement::If { results, then, otherwise, .. } => results
            .iter()
            .zip(then.yields.iter().zip(&otherwise.yields))
            .try_for_each(|(&result, (&a, &b))| same(&[result, a, b])),
        _ => Ok(()),
    }
}
