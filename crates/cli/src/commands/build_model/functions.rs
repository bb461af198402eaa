//! `tfcompile build --signature A,B`: several functions of a model in one object or C file.

use super::{Build, class, input, needs_headers, options};
use crate::args::model::ModelArgs;
use crate::args::xla_flags::XlaFlags;
use crate::artifacts::kind::Kind;
use crate::artifacts::names::{FileNames, class_of};
use crate::files::outputs::{self, Output};
use crate::report::Reporter as _;
use crate::report::dump::{Dumper, Watch};
use crate::report::progress::Progress;
use aot::CHeaderOptions;
use compiler::{Function, Functions};
use std::fmt::Write as _;
use support::{Code, Error, Result};

/// The report of a function that is not quantized.
pub(super) const NO_LAYERS: &str = "no layers to quantize\n";

/// The signatures that `--signature` names, if there are several.
pub(super) fn signatures(model: &ModelArgs) -> Option<Vec<String>> {
    let names = model.choice.signature.as_deref()?;
    names.contains(',').then(|| names.split(',').map(|name| name.trim().to_owned()).collect())
}

/// Compiles the functions, writes the files of their object, and lists them.
pub(super) fn run(arguments: &Build, name: &str, signatures: &[String], xla: &XlaFlags) -> Result<()> {
    check(arguments, signatures)?;
    let cpp_class = class(arguments, name)?;
    let mut progress = Progress::new(&arguments.model, name);
    let mut dumper = Dumper::new(xla);
    let (mut functions, mut reports) = (Vec::new(), String::new());
    let mut has_layers = arguments.quantize.is_none();
    // Flags without effect on any function so far.
    let mut unused: Option<Vec<String>> = None;
    for signature in signatures {
        let mut model = arguments.model.clone();
        model.choice.signature = Some(signature.clone());
        model.inference = model.inference.of_function(signature, signatures);
        let input = input(arguments, &model, xla, &mut progress, &mut dumper);
        let (input, report, not_here) = input.map_err(|e| e.context(format!("function '{signature}'")))?;
        unused = match unused {
            Some(unused) => Some(unused.into_iter().filter(|flag| not_here.contains(flag)).collect()),
            None => Some(not_here),
        };
        has_layers |= report != NO_LAYERS;
        if !report.is_empty() {
            reports += &format!("function '{signature}': {report}");
        }
        let suffix = class_of(signature);
        let suffix = suffix.strip_suffix("Model").unwrap_or(&suffix);
        let entry_point = format!("{name}_{signature}");
        let mut options = options(arguments, &format!("{cpp_class}{suffix}"), &entry_point, xla)?;
        options.c_header = arguments.emits(Kind::CHeader).then(CHeaderOptions::default);
        functions.push(Function { name: signature.clone(), input, options });
    }
    if let Some(flag) = unused.iter().flatten().next() {
        return Err(Error::invalid(format!(
            "{flag}: no function has a dimension of this name that the model leaves open: correct or remove the flag"
        ))
        .coded(Code::NotInferred));
    }
    if !has_layers {
        return Err(Error::invalid(
            "--quantize: no function has layers to quantize, which are dots and convolutions of float32 with constant \
             weights: remove the flag, or turn arguments into constants with --weights",
        ));
    }
    let triple = functions[0].options.back.target.triple.as_str().to_owned();
    let names = FileNames::new(name, &triple)?;
    let request = Functions { name: name.to_owned(), cpp_class, functions };
    let built = compiler::guarded(|| {
        compiler::build_functions(request, &mut Watch::new(&mut progress, &mut dumper))
    })?;
    dumper.finish()?;
    progress.compiled();
    let at = |file: &str| arguments.output.join(file);
    let text = |path, text: String| Output { path, parts: vec![text.into_bytes().into()] };
    let kind = if arguments.emits(Kind::C) { Kind::C } else { Kind::Obj };
    let mut files = Vec::new();
    if arguments.emits(kind) {
        files.push(Output { path: at(&names.of(kind)), parts: vec![built.object.into()] });
    }
    if arguments.emits(Kind::Header) {
        files.push(text(at(&names.of(Kind::Header)), built.header));
        files.extend(built.headers.into_iter().map(|(file, header)| text(at(&file), header)));
    }
    files.extend(built.c_headers.into_iter().map(|(file, header)| text(at(&file), header)));
    files.push(Output { path: at(&names.of(Kind::Constants)), parts: built.constants_file.parts()? });
    let listed = files.len();
    if needs_headers(arguments) {
        files.extend(outputs::runtime_headers(&arguments.output.join("include"), false));
    }
    outputs::create_directories(&files)?;
    outputs::write(&files)?;
    if !arguments.model.quiet {
        let width =
            files[..listed].iter().map(|file| file.path.display().to_string().len()).max().unwrap_or(0);
        let mut lines = reports;
        for file in &files[..listed] {
            let _ = writeln!(
                lines,
                "{:<width$}  {:>9}",
                file.path.display().to_string(),
                terminal::bytes(file.size())
            );
        }
        outputs::print(&lines)?;
    }
    Ok(())
}

/// Rejects flags that are for a single function, and names that a class cannot have.
fn check(arguments: &Build, signatures: &[String]) -> Result<()> {
    let given = [
        ("--freestanding", arguments.freestanding),
        ("--constants-section", arguments.constants_section.is_some()),
        ("--depfile", arguments.depfile.is_some()),
        ("--keep-unchanged", arguments.keep_unchanged),
        ("--standalone-header", arguments.standalone_header),
        ("--autotune", arguments.autotune.autotune.is_some()),
    ];
    if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
        return Err(Error::invalid(format!(
            "{flag} is for a single function, but --signature names {}: build each one alone",
            signatures.len()
        )));
    }
    let is_shared = |kind: &Kind| matches!(kind, Kind::Obj | Kind::C | Kind::Header | Kind::CHeader);
    if arguments.kinds().iter().any(|kind| !is_shared(kind)) {
        return Err(Error::invalid(format!(
            "--emit: the {} functions that --signature names share an object or C source and its headers: give obj \
             or c, header, and c-header only, or build each function alone",
            signatures.len()
        )));
    }
    for (k, name) in signatures.iter().enumerate() {
        if !aot::is_identifier(name) || aot::is_keyword(name) || signatures[..k].contains(name) {
            return Err(Error::invalid(format!(
                "--signature: '{name}' cannot be the name of a function of the class: give different C identifiers"
            ))
            .coded(Code::OutputName));
        }
    }
    Ok(())
}
