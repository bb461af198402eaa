//! The user-facing table of ops: `docs/ops.md` with its pages in `docs/ops`, and the output of
//! `tfcompile ops`.

use crate::table::op_notes::NOTES;
use crate::table::rules::{FOLDERS, SupportedOp, supported_ops};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tf::DataType::{
    self, Bfloat16, Complex64, Complex128, Double, Float, Float8e4m3fn, Float8e5m2, Half, Int2, Int4, Int8,
    Int16, Int32, Int64, Qint8, Qint16, Qint32, Quint8, Quint16, Uint2, Uint4, Uint8, Uint16, Uint32, Uint64,
};

/// Results of the last conformance run over all recorded cases, written by `conformance --counts`:
/// `op,passed,cases`.
const COUNTS: &str = include_str!("../../data/conformance.csv");

/// Types that the table names as a group if a rule accepts all of them.
const GROUPS: &[(&str, &[DataType])] = &[
    ("floats", &[Half, Bfloat16, Float, Double]),
    ("complex", &[Complex64, Complex128]),
    ("ints", &[Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64]),
    ("quantized", &[Qint8, Quint8, Qint32]),
    ("quantized16", &[Qint16, Quint16]),
    ("float8", &[Float8e4m3fn, Float8e5m2]),
    ("narrow", &[Int2, Uint2, Int4, Uint4]),
];

/// The names of a set of types: groups first, then the others.
fn type_names(types: &[DataType]) -> String {
    let mut names = Vec::new();
    let mut named = Vec::new();
    for (name, members) in GROUPS {
        if members.iter().all(|member| types.contains(member)) {
            names.push(*name);
            named.extend_from_slice(members);
        }
    }
    names.extend(types.iter().filter(|t| !named.contains(t)).map(|t| t.name()));
    names.join(" ")
}

/// For each op of the recorded cases, the number that passed and the number of cases.
fn counts() -> BTreeMap<&'static str, (u32, u32)> {
    let row = |line: &'static str| {
        let mut fields = line.split(',');
        let (op, passed, cases) = (fields.next()?, fields.next()?, fields.next()?);
        Some((op, (passed.parse().ok()?, cases.parse().ok()?)))
    };
    COUNTS.lines().skip(1).filter_map(row).collect()
}

/// Explanation of the columns of the table.
fn legend() -> String {
    let mut out = String::from(
        "The types are those of the named attributes; attributes that are not named are not restricted.\n\
         Groups of types:\n\n",
    );
    for (name, members) in GROUPS {
        let members: Vec<&str> = members.iter().map(|t| t.name()).collect();
        writeln!(out, "- {name}: {}", members.join(" ")).expect("writing to a string cannot fail");
    }
    out.push_str(
        "\nThe cases are the recorded test cases that contain the op, alone or with others: their number, and\n\
         how many pass if not all do. The notes state what was chosen where TensorFlow's kernels and XLA\n\
         differ, and what is not supported.\n",
    );
    out
}

/// Header of the table.
const HEAD: &str = "| op | types | cases | notes |\n|---|---|---|---|\n";

/// The row of an op: types, recorded cases, and differences between TensorFlow and XLA.
fn row(op: &SupportedOp, counts: &BTreeMap<&str, (u32, u32)>, notes: &BTreeMap<&str, &str>) -> String {
    let types: Vec<String> =
        op.types.iter().map(|(attribute, types)| format!("{attribute}: {}", type_names(types))).collect();
    let cases = match counts.get(op.name) {
        None => "-".to_owned(),
        Some((passed, cases)) if passed == cases => cases.to_string(),
        Some((passed, cases)) => format!("{passed} of {cases}"),
    };
    let note = notes.get(op.name).copied().unwrap_or_default();
    format!("| {} | {} | {cases} | {note} |\n", op.name, types.join("; "))
}

/// The number of ops, and the ops of recorded cases that are not supported.
fn summary(ops: &[SupportedOp], counts: &BTreeMap<&'static str, (u32, u32)>) -> String {
    let mut out = format!("\n{} ops.\n", ops.len());
    let missing: Vec<&str> =
        counts.keys().copied().filter(|op| !ops.iter().any(|known| known.name == *op)).collect();
    if !missing.is_empty() {
        writeln!(
            out,
            "\nThe recorded cases also contain these ops, which are not supported: {}.",
            missing.join(", ")
        )
        .expect("writing to a string cannot fail");
    }
    out
}

/// The table of all ops as Markdown.
pub fn op_table() -> String {
    let (ops, counts, notes) = (supported_ops(), counts(), NOTES.iter().copied().collect());
    let mut out = format!("# Ops\n\n{}\n{HEAD}", legend());
    ops.iter().for_each(|op| out.push_str(&row(op, &counts, &notes)));
    out + &summary(&ops, &counts)
}

/// The pages of the documentation about ops, by their paths below `docs`: an index, and one for
/// each folder of rules.
pub fn op_pages() -> Vec<(String, String)> {
    let (ops, counts, notes) = (supported_ops(), counts(), NOTES.iter().copied().collect());
    let mut index = format!(
        "# Ops\n\nThese pages list the TensorFlow ops that the compiler supports. `tfcompile ops` prints all of them as\n\
         one table. `make docs` generates these pages.\n\n{}\n| ops | number |\n|---|---:|\n",
        legend()
    );
    let mut pages = Vec::new();
    for folder in FOLDERS {
        let rows: Vec<String> =
            ops.iter().filter(|op| folder.has(op.name)).map(|op| row(op, &counts, &notes)).collect();
        let (page, title) = (folder.page, folder.title);
        writeln!(index, "| [{title}](ops/{page}.md) | {} |", rows.len())
            .expect("writing to a string cannot fail");
        let text =
            format!("# Ops: {title}\n\n[Ops](../ops.md) explains the columns.\n\n{HEAD}{}", rows.concat());
        pages.push((format!("ops/{page}.md"), text));
    }
    index.push_str(&summary(&ops, &counts));
    pages.push(("ops.md".to_owned(), index));
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_in_groups() {
        let types = [Half, Bfloat16, Float, Double, Int32, Complex64, Complex128];
        assert_eq!(type_names(&types), "floats complex int32");
        assert_eq!(type_names(&[Float, Half]), "float half");
    }

    #[test]
    fn notes_name_supported_ops_are_sorted_and_fit_a_cell() {
        let ops = supported_ops();
        for (op, note) in NOTES {
            assert!(ops.iter().any(|known| known.name == *op), "{op}");
            assert!(!note.contains(['|', '\n']) && !note.is_empty(), "{op}");
        }
        assert!(NOTES.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn counts_are_read() {
        assert!(COUNTS.starts_with("op,passed,cases\n"));
        assert_eq!(counts().len() + 1, COUNTS.lines().count());
        assert!(counts().values().all(|(passed, cases)| passed <= cases));
    }
}
