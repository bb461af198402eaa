//! The methods of the model.

use super::types::{ALLOW, about};
use super::{Field, RUNTIME, Source};
use crate::header::{Constants, Text};

pub(super) fn methods(out: &mut Text, source: &Source<'_>) {
    let name = source.name;
    out.line(ALLOW);
    out.line(&format!("impl {name} {{"));
    new(out, source);
    source.feeds().iter().for_each(|feed| accessors(out, "Feed", feed));
    source.variables().iter().for_each(|variable| accessors(out, "Variable", variable));
    for (index, fetch) in source.fetches.iter().enumerate() {
        getter(out, "Fetch", fetch);
        if !fetch.shape.is_static() {
            out.line("    /// How many elements of each dimension the last run made.");
            out.line(&format!(
                "    pub fn {}_sizes(&self) -> [usize; {}] {{",
                fetch.name,
                fetch.shape.rank()
            ));
            let sizes = source.true_sizes(index, "self.memory.dynamic_sizes");
            out.line(&format!("        [{}]", sizes.join(", ")));
            out.line("    }");
        }
    }
    constants(out, source);
    if !source.artifact.profile_counters.is_empty() {
        out.line("    /// Summed over all runs, the total first.");
        out.line(&format!(
            "    pub fn profile_counters(&self) -> &[i64; {}] {{ &self.memory.profile_counters }}",
            source.artifact.profile_counters.len()
        ));
    }
    run(out, source);
    enter(out, source);
    out.line("}");
    if !source.options.no_std {
        out.blank();
        out.line(&format!("impl ::core::default::Default for {name} {{"));
        out.line("    fn default() -> Self { Self::new() }");
        out.line("}");
    }
}

fn new(out: &mut Text, source: &Source<'_>) {
    let name = source.name;
    out.line("    /// Arguments and variables are zeros.");
    let constants = if source.artifact.constants_file.is_some() { ", constants: None" } else { "" };
    match source.options.no_std {
        true => {
            out.line("    pub const fn new() -> Self {");
            let mut fields: Vec<String> = source.fields().map(|field| field.name.clone()).collect();
            fields.extend(["temps", "scratch", "profile_counters", "dynamic_sizes"].map(str::to_owned));
            let zeroed: Vec<String> = fields
                .iter()
                .map(|field| format!("            {field}: {RUNTIME}::Aligned::zeroed(),"))
                .collect();
            out.line(&format!("        Self {{ memory: {name}Memory {{"));
            zeroed.iter().for_each(|line| out.line(line));
            out.line(&format!("        }}{constants} }}"));
        }
        false => {
            let scratch = source.artifact.memory.scratch;
            out.line("    ///");
            out.line("    /// Panics if there is not enough memory.");
            out.line("    pub fn new() -> Self {");
            out.line(&format!(
                "        let scratch = {RUNTIME}::AlignedBlock::zeroed({scratch}).expect(\"memory for one worker\");"
            ));
            out.line(&format!(
                "        Self {{ memory: {RUNTIME}::zeroed_box(), workers: None, scratch{constants} }}"
            ));
        }
    }
    out.line("    }");
}

fn getter(out: &mut Text, what: &str, field: &Field<'_>) {
    out.line(&format!("    {}", about(what, field)));
    out.line(&format!("    pub fn {0}(&self) -> &{1} {{ &self.memory.{0} }}", field.name, field.rust_type));
}

fn accessors(out: &mut Text, what: &str, field: &Field<'_>) {
    getter(out, what, field);
    out.line(&format!("    {}", about(&format!("{what}, to write:"), field)));
    out.line(&format!(
        "    pub fn {0}_mut(&mut self) -> &mut {1} {{ &mut self.memory.{0} }}",
        field.name, field.rust_type
    ));
}

fn constants(out: &mut Text, source: &Source<'_>) {
    let Some(layout) = source.artifact.constants_file else { return };
    out.line("    /// What a file of constants has to share with the code.");
    let bytes: Vec<String> = layout.0.iter().map(|byte| format!("0x{byte:02x}")).collect();
    out.line("    const LAYOUT_HASH: [u8; 32] = [");
    bytes.chunks(16).for_each(|row| out.line(&format!("        {},", row.join(", "))));
    out.line("    ];");
    out.line("    /// Gives it its constants: before the first run, and between runs to swap them. On an error nothing changed.");
    out.line(&format!(
        "    pub fn set_constants(&mut self, constants: {RUNTIME}::Constants) -> ::core::result::Result<(), {RUNTIME}::Error> {{"
    ));
    out.line("        constants.check(&Self::LAYOUT_HASH)?;");
    out.line("        self.constants = Some(constants);");
    out.line("        Ok(())");
    out.line("    }");
}

/// What starts a run, and with how many threads.
fn run(out: &mut Text, source: &Source<'_>) {
    let (name, scratch) = (source.name, source.artifact.memory.scratch);
    let result = |of: &str| format!("::core::result::Result<{of}, {RUNTIME}::Error>");
    let feeds = source.feeds();
    let inside = match (feeds.is_empty(), source.options.no_std) {
        (true, _) => "",
        (false, true) => "None, ",
        (false, false) => "None",
    };
    if source.options.no_std {
        out.line("    /// Computes the results from the arguments and variables inside.");
        out.line(&format!("    pub fn run(&mut self) -> {} {{ self.enter({inside}None) }}", result("()")));
        out.line(
            "    /// The same with workers that share the work. Each needs a piece of the scratch memory.",
        );
        out.line(&format!("    pub fn run_on(&mut self, workers: &dyn {RUNTIME}::Workers, scratch: &mut [{RUNTIME}::Aligned<[u8; {scratch}]>]) -> {} {{", result("()")));
        out.line(&format!("        self.enter({inside}Some((workers, scratch)))"));
        out.line("    }");
    } else {
        out.line(
            "    /// Runs on so many threads from now on, the caller's included. Results don't depend on it.",
        );
        out.line(&format!("    pub fn set_threads(&mut self, count: usize) -> {} {{", result("()")));
        out.line("        match count {");
        out.line("            1 => self.set_workers(None),");
        out.line(&format!("            _ => self.set_workers(Some(::std::sync::Arc::new({RUNTIME}::ThreadPool::new(count)?))),"));
        out.line("        }");
        out.line("    }");
        out.line("    /// Runs on these workers from now on, which other models may use as well; `None`: on the calling thread.");
        out.line(&format!("    pub fn set_workers(&mut self, workers: ::core::option::Option<::std::sync::Arc<dyn {RUNTIME}::Workers>>) -> {} {{", result("()")));
        out.line("        let count = workers.as_ref().map_or(1, |workers| workers.count().max(1));");
        out.line(&format!(
            "        self.scratch = {RUNTIME}::AlignedBlock::zeroed({scratch}usize.saturating_mul(count))?;"
        ));
        out.line("        self.workers = workers;");
        out.line("        Ok(())");
        out.line("    }");
        out.line("    /// Computes the results from the arguments and variables inside.");
        out.line(&format!("    pub fn run(&mut self) -> {} {{ self.enter({inside}) }}", result("()")));
    }
    if !feeds.is_empty() && !source.fetches.is_empty() {
        out.line("    /// Computes the results from the caller's arguments, which are not copied.");
        out.line(&format!(
            "    pub fn call(&mut self, inputs: &{name}Inputs<'_>) -> {} {{",
            result(&format!("{name}Outputs<'_>"))
        ));
        let more = if source.options.no_std { ", None" } else { "" };
        out.line(&format!("        self.enter(Some(inputs){more})?;"));
        out.line("        Ok(self.outputs())");
        out.line("    }");
    }
    if !source.fetches.is_empty() {
        out.line("    /// The results of the last run.");
        out.line(&format!("    pub fn outputs(&self) -> {name}Outputs<'_> {{"));
        out.line(&format!("        {name}Outputs {{"));
        for fetch in &source.fetches {
            out.line(&format!("            {0}: self.{0}(),", fetch.name));
            if !fetch.shape.is_static() {
                out.line(&format!("            {0}_sizes: self.{0}_sizes(),", fetch.name));
            }
        }
        out.line("        }");
        out.line("    }");
    }
}

/// The one place with a frame.
fn enter(out: &mut Text, source: &Source<'_>) {
    let (name, artifact) = (source.name, source.artifact);
    let (entry, feeds) = (&artifact.entry_point, source.feeds());
    let mut parameters = Vec::new();
    if !feeds.is_empty() {
        parameters.push(format!("inputs: ::core::option::Option<&{name}Inputs<'_>>"));
    }
    if source.options.no_std {
        parameters.push(format!(
            "workers: ::core::option::Option<(&dyn {RUNTIME}::Workers, &mut [{RUNTIME}::Aligned<[u8; {}]>])>",
            artifact.memory.scratch
        ));
    }
    out.line(&format!(
        "    fn enter(&mut self, {}) -> ::core::result::Result<(), {RUNTIME}::Error> {{",
        parameters.join(", ")
    ));
    out.line("        unsafe extern \"C\" {");
    out.line(&format!("            fn {entry}(frame: *mut {RUNTIME}::Frame) -> i32;"));
    match Constants::of(artifact) {
        Constants::Near => out.line(&format!("            static {entry}_constants: u8;")),
        Constants::Far => {
            out.line(&format!("            static {entry}_constants_pointer: *const ::core::ffi::c_void;"))
        }
        Constants::File => {}
    }
    out.line("        }");
    match Constants::of(artifact) {
        Constants::Near => {
            out.line(&format!("        let constants = &raw const {entry}_constants;"));
        }
        Constants::Far => {
            out.line("        // SAFETY: a constant of the object.");
            out.line(&format!("        let constants = unsafe {{ {entry}_constants_pointer }};"));
        }
        Constants::File => {
            out.line("        let Some(constants) = &self.constants else {");
            out.line(&format!(
                "            return Err({RUNTIME}::Error::new(\"the constants are not loaded: call set_constants before the first run\"));"
            ));
            out.line("        };");
            out.line("        let constants = constants.address();");
        }
    }
    out.line(match source.options.no_std {
        true => "        let memory = &mut self.memory;",
        false => "        let memory = &mut *self.memory;",
    });
    out.line(&format!("        let args: [*mut ::core::ffi::c_void; {}] = [", source.arguments.len()));
    for (index, argument) in source.arguments.iter().enumerate() {
        let field = &argument.name;
        if index < feeds.len() {
            out.line(&format!(
                "            match inputs {{ Some(inputs) => ::core::ptr::from_ref(inputs.{field}).cast_mut().cast(), None => (&raw mut memory.{field}).cast() }},"
            ));
        } else {
            out.line(&format!("            (&raw mut memory.{field}).cast(),"));
        }
    }
    out.line("        ];");
    out.line(&format!(
        "        let results: [*mut ::core::ffi::c_void; {}] = [",
        artifact.interface.results().len()
    ));
    let mut fetches = source.fetches.iter();
    for result in artifact.interface.results() {
        match result.alias {
            None => {
                let fetch = fetches.next().expect("a field for each fetch");
                out.line(&format!("            (&raw mut memory.{}).cast(),", fetch.name));
            }
            Some(argument) => out.line(&format!("            args[{argument}],")),
        }
    }
    out.line("        ];");
    out.line(&format!("        let frame = {RUNTIME}::Frame {{"));
    for line in [
        "args: args.as_ptr(),",
        "results: results.as_ptr(),",
        "temps: (&raw mut memory.temps).cast(),",
        "constants: constants.cast(),",
        "profile_counters: (&raw mut memory.profile_counters).cast(),",
        "dynamic_sizes: (&raw mut memory.dynamic_sizes).cast(),",
    ] {
        out.line(&format!("            {line}"));
    }
    out.line(&format!("            ..{RUNTIME}::Frame::empty()"));
    out.line("        };");
    match source.options.no_std {
        true => {
            out.line("        let (workers, scratch) = match workers {");
            out.line("            None => (None, ::core::slice::from_mut(&mut memory.scratch)),");
            out.line("            Some((workers, scratch)) => (Some(workers), scratch),");
            out.line("        };");
            out.line(&format!("        let scratch = {RUNTIME}::Scratch::of(scratch);"));
        }
        false => {
            out.line("        let workers = self.workers.as_deref();");
            let each = artifact.memory.scratch;
            out.line(&format!(
                "        let scratch = {RUNTIME}::Scratch {{ bytes: self.scratch.bytes_mut(), each: {each} }};"
            ));
        }
    }
    out.line("        // SAFETY: the addresses are those of fields that have the types of the graph's arrays, borrowed uniquely; feeds are");
    out.line("        // only read.");
    out.line(&format!("        unsafe {{ {RUNTIME}::enter({entry}, frame, workers, scratch) }}"));
    out.line("    }");
}
