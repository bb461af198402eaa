//! Conversion of the config's names to parts of C++ names.
//!
//! An accessor's name is a prefix followed by the config's name, so keywords and leading digits are
//! valid as they are. Every other character that is not allowed in identifiers becomes `_`. Valid
//! names never change: they are assigned first. A changed name gets a suffix `_2`, `_3`, ... if its
//! members would clash with earlier ones.

use std::collections::BTreeSet;
use support::{Error, Result};

/// The members generated for each entry of a group: `set_<group><suffix>_data`,
/// `<group><suffix>_data`, and so on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// `arg`, `result` or `var`.
    pub(crate) prefix: &'static str,
    /// The config's word for such an entry: `feed`, `fetch`, `variable`.
    pub(crate) noun: &'static str,
    /// True if there is a setter.
    pub(crate) settable: bool,
}

/// A named entry of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    /// Name in the config, or the node's name for a variable that the config does not name.
    pub(crate) name: &'a str,
    /// True if the user chose the name, so that clashes are the user's to resolve.
    pub(crate) chosen: bool,
    /// Number of parameters of the element accessor.
    pub(crate) parameters: usize,
    /// True if the entry is quantized, so that it has members for scale and zero point.
    pub(crate) is_quantized: bool,
    /// True if the entry has named dimensions, so that it has a member for their sizes.
    pub(crate) is_sized: bool,
}

/// Members of the base class that begin like accessors. A member with the same name would hide
/// them, whatever its type.
const BASE_MEMBERS: [&str; 5] = ["arg_data", "set_arg_data", "arg_size", "result_data", "result_size"];

/// A member's name and number of parameters, which must be unique in a class.
type Signature = (String, usize);

/// Returns the C++ name of each entry without the group's prefix and `_`; `None` for unnamed
/// entries.
pub(crate) fn mangle(group: Group, entries: &[Option<Named<'_>>]) -> Result<Vec<Option<String>>> {
    check_duplicates(group, entries)?;
    let mut taken = BTreeSet::new();
    let mut names: Vec<Option<String>> = vec![None; entries.len()];
    let is_plain = |named: &Named<'_>| replace_illegal(named.name) == named.name;
    for plain in [true, false] {
        for (slot, entry) in names.iter_mut().zip(entries) {
            let Some(named) = entry.filter(|named| is_plain(named) == plain) else { continue };
            *slot = Some(claim(group, named, &mut taken));
        }
    }
    Ok(names)
}

/// Rejects equal names that the user chose, and pairs such as `x` and `x_data`, as TensorFlow's
/// tfcompile does.
fn check_duplicates(group: Group, entries: &[Option<Named<'_>>]) -> Result<()> {
    let mut chosen = BTreeSet::new();
    for named in entries.iter().flatten().filter(|named| named.chosen) {
        if !chosen.insert(named.name) {
            return Err(Error::invalid(format!(
                "duplicate {noun} name: {}; give each {noun} another name",
                named.name,
                noun = group.noun
            )));
        }
    }
    for name in &chosen {
        let with_data = format!("{name}_data");
        if chosen.contains(with_data.as_str()) {
            return Err(Error::invalid(format!(
                "conflicting {} name: {name} and {with_data}; both would define the C++ method {}_{with_data}()",
                group.noun, group.prefix
            )));
        }
    }
    Ok(())
}

fn claim(group: Group, named: Named<'_>, taken: &mut BTreeSet<Signature>) -> String {
    let base = replace_illegal(named.name);
    let mut candidate = base.clone();
    for number in 2.. {
        let members = members(group, &candidate, named);
        let hides_base = members.iter().any(|(name, _)| BASE_MEMBERS.contains(&name.as_str()));
        if !hides_base && members.iter().all(|member| !taken.contains(member)) {
            taken.extend(members);
            break;
        }
        candidate = format!("{base}_{number}");
    }
    candidate
}

fn members(group: Group, suffix: &str, named: Named<'_>) -> Vec<Signature> {
    let stem = format!("{}_{suffix}", group.prefix);
    let mut members = vec![
        (format!("{stem}_data"), 0),
        (format!("{stem}_size"), 0),
        (format!("{stem}_count"), 0),
        (stem.clone(), named.parameters),
    ];
    if group.prefix == "result" || named.is_sized {
        // Only bounded results have this member. The name is reserved for all results.
        members.push((format!("{stem}_dim_size"), 1));
    }
    if group.settable {
        members.push((format!("set_{stem}_data"), 1));
    }
    if named.is_quantized {
        members.extend(["scale", "zero_point"].map(|of| (format!("{stem}_{of}"), 0)));
    }
    members
}

fn replace_illegal(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEED: Group = Group { prefix: "arg", noun: "feed", settable: true };

    fn mangled(names: &[(&str, usize)]) -> Result<Vec<String>> {
        let named = |&(name, parameters)| {
            Some(Named { name, chosen: true, parameters, is_quantized: false, is_sized: false })
        };
        let entries: Vec<_> = names.iter().map(named).collect();
        Ok(mangle(FEED, &entries)?.into_iter().flatten().collect())
    }

    #[test]
    fn members_of_quantized_entries_are_taken() {
        let named = |name, is_quantized| {
            Some(Named { name, chosen: true, parameters: 0, is_quantized, is_sized: false })
        };
        let names = |is_quantized| {
            let entries =
                ["x", "x_scale", "x_zero_point"].map(|name| named(name, is_quantized && name == "x"));
            mangle(FEED, &entries).unwrap().into_iter().flatten().collect::<Vec<_>>()
        };
        assert_eq!(names(true), ["x", "x_scale_2", "x_zero_point_2"]);
        assert_eq!(names(false), ["x", "x_scale", "x_zero_point"]);
    }

    #[test]
    fn illegal_characters_become_underscores_and_legal_names_stay() {
        let names = [("tower/x:0", 2), ("class", 0), ("3x", 1), ("naïve name", 1), ("plain", 0)];
        assert_eq!(mangled(&names).unwrap(), ["tower_x_0", "class", "3x", "na_ve_name", "plain"]);
    }

    #[test]
    fn clashes_get_numbers_and_plain_names_come_first() {
        assert_eq!(mangled(&[("a/b", 0), ("a_b", 0), ("a:b", 0)]).unwrap(), ["a_b_2", "a_b", "a_b_3"]);
        // arg_x_data() of 'x' and the element accessor of 'x/data' clash, and so would the second
        // candidate.
        assert_eq!(
            mangled(&[("x", 1), ("x/data", 0), ("x_data_2", 0)]).unwrap(),
            ["x", "x_data_3", "x_data_2"]
        );
    }

    #[test]
    fn overloads_that_differ_in_their_parameters_are_no_clash() {
        assert_eq!(mangled(&[("x", 1), ("x_size", 2)]).unwrap(), ["x", "x_size"]);
        assert_eq!(mangled(&[("x", 1), ("x_size", 0)]).unwrap(), ["x", "x_size_2"]);
    }

    #[test]
    fn members_of_the_base_class_are_not_hidden() {
        assert_eq!(mangled(&[("data", 1), ("size", 1)]).unwrap(), ["data_2", "size_2"]);
    }

    #[test]
    fn names_that_the_user_chose_twice_are_refused() {
        assert!(mangled(&[("a", 0), ("a", 0)]).unwrap_err().message().contains("duplicate feed name: a"));
        let error = mangled(&[("a_data", 0), ("a", 0)]).unwrap_err();
        assert!(error.message().contains("conflicting feed name: a and a_data"), "{error}");
    }
}
