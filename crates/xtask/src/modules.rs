//! Modules of a crate: the file that holds each, the names in its scope, and the paths that each
//! file names.
//!
//! Names are resolved through imports, re-exports, and glob imports. Methods are not, because that
//! would need types.

use crate::tokens::{Token, closed, tokens};
use crate::tree::SourceFile;
use std::collections::BTreeMap;

/// Index of a module.
pub type ModuleId = usize;

/// A module: a file, or `mod name { … }` within one.
#[derive(Debug, Default)]
struct Module<'a> {
    /// Names of the modules from the crate's root to this one.
    path: Vec<&'a str>,
    /// The module whose file this one is in: itself, unless it is inline.
    file: ModuleId,
    /// Names of the items defined here.
    items: Vec<&'a str>,
    /// Imported names, with their paths.
    imports: BTreeMap<&'a str, Vec<&'a str>>,
    /// Paths of glob imports.
    globs: Vec<Vec<&'a str>>,
}

/// A path that is written in a file.
#[derive(Debug)]
struct Mention<'a> {
    module: ModuleId,
    path: Vec<&'a str>,
    line: usize,
}

/// Use of one file by another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// The module of the file that names.
    pub from: ModuleId,
    /// The module of the file that is named.
    pub to: ModuleId,
    /// The used name.
    pub name: String,
    /// Line of the first use.
    pub line: usize,
}

/// The modules of one crate.
pub struct Modules<'a> {
    modules: Vec<Module<'a>>,
    files: BTreeMap<ModuleId, &'a str>,
    by_path: BTreeMap<Vec<&'a str>, ModuleId>,
    mentions: Vec<Mention<'a>>,
    name: String,
}

/// A name's meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// A module.
    Module(ModuleId),
    /// Something that this module defines.
    Item(ModuleId),
}

impl<'a> Modules<'a> {
    /// The modules below `source`, which is a crate's folder `src/`.
    pub fn read(name: &str, source: &str, files: &'a [SourceFile]) -> Modules<'a> {
        let mut all = Modules {
            modules: Vec::new(),
            files: BTreeMap::new(),
            by_path: BTreeMap::new(),
            mentions: Vec::new(),
            name: name.replace('-', "_"),
        };
        all.module(Vec::new(), None);
        let mut read = Vec::new();
        for file in files {
            let Some(path) = file.path.strip_prefix(source).and_then(|path| path.strip_suffix(".rs")) else {
                continue;
            };
            let mut path: Vec<&str> = path.split('/').collect();
            let is_root = path == ["lib"] || path == ["main"];
            if path.last().is_some_and(|name| *name == "tests" || name.ends_with("_tests")) {
                continue;
            }
            if is_root || path.last() == Some(&"mod") {
                path.pop();
            }
            let id = all.module(path, None);
            all.files.insert(id, &file.path);
            read.push((id, &file.text));
        }
        for (id, text) in read {
            Reader { all: &mut all, module: id }.read(&tokens(text));
        }
        all
    }

    /// The module of this path, a new one if there is none.
    fn module(&mut self, path: Vec<&'a str>, file: Option<ModuleId>) -> ModuleId {
        if let Some(id) = self.by_path.get(&path) {
            return *id;
        }
        let id = self.modules.len();
        self.by_path.insert(path.clone(), id);
        self.modules.push(Module { path, file: file.unwrap_or(id), ..Module::default() });
        id
    }

    /// Path of a module from the crate's root.
    pub fn path(&self, id: ModuleId) -> &[&'a str] {
        &self.modules[id].path
    }

    /// The file of a module.
    pub fn file(&self, id: ModuleId) -> &'a str {
        self.files.get(&id).copied().unwrap_or_default()
    }

    /// Uses of one file by another, each name once.
    pub fn uses(&self) -> Vec<Use> {
        let mut found: BTreeMap<(ModuleId, ModuleId, String), usize> = BTreeMap::new();
        for mention in &self.mentions {
            let Some((target, rest)) = self.resolve(mention.module, &mention.path, 0) else { continue };
            let (Target::Module(to) | Target::Item(to)) = target;
            let (from, to) = (self.modules[mention.module].file, self.modules[to].file);
            if from != to {
                let name = mention.path.get(mention.path.len() - rest.max(1)).copied().unwrap_or_default();
                let line = found.entry((from, to, name.to_owned())).or_insert(mention.line);
                *line = mention.line.min(*line);
            }
        }
        found.into_iter().map(|((from, to, name), line)| Use { from, to, name, line }).collect()
    }

    /// The module in which a path ends, and the number of its names left there. `None` outside the
    /// crate.
    fn resolve(&self, module: ModuleId, path: &[&'a str], depth: usize) -> Option<(Target, usize)> {
        let parent = |id: ModuleId| {
            let path = &self.modules[id].path;
            path.split_last().and_then(|(_, parent)| self.by_path.get(parent)).copied()
        };
        let (first, mut rest) = path.split_first()?;
        let mut target = match *first {
            "crate" => Target::Module(0),
            "self" => Target::Module(module),
            "super" => Target::Module(parent(module)?),
            name => match self.look(module, name, depth) {
                Some(target) => target,
                None if name == self.name => Target::Module(0),
                None => return None,
            },
        };
        loop {
            let Target::Module(at) = target else { return Some((target, rest.len() + 1)) };
            let Some((name, after)) = rest.split_first() else { return Some((target, 0)) };
            target = match *name {
                "super" => Target::Module(parent(at)?),
                "self" => Target::Module(at),
                name => self.look(at, name, depth).unwrap_or(Target::Item(at)),
            };
            rest = after;
        }
    }

    /// The meaning of a name within a module.
    fn look(&self, module: ModuleId, name: &str, depth: usize) -> Option<Target> {
        let at = &self.modules[module];
        let child: Vec<&str> = at.path.iter().copied().chain([name]).collect();
        if let Some(id) = self.by_path.get(&child) {
            return Some(Target::Module(*id));
        }
        if at.items.contains(&name) {
            return Some(Target::Item(module));
        }
        // Imports, and globs above all, may be circular.
        if depth > 8 {
            return None;
        }
        if let Some(path) = at.imports.get(name) {
            // `use name::…` of another crate: the import is not its own source.
            let (path, own) = (path.as_slice(), path.first() == Some(&name));
            return (!own).then(|| self.resolve(module, path, depth + 1))?.map(|(target, _)| target);
        }
        at.globs.iter().find_map(|glob| match self.resolve(module, glob, depth + 1)? {
            (Target::Module(from), _) if from != module => self.look(from, name, depth + 1),
            _ => None,
        })
    }
}

/// Reads the tokens of a file.
struct Reader<'m, 'a> {
    all: &'m mut Modules<'a>,
    module: ModuleId,
}

/// Keywords before the name of an item.
const ITEMS: &[&str] = &["fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"];

impl<'a> Reader<'_, 'a> {
    fn read(&mut self, tokens: &[Token<'a>]) {
        // Open braces, outer ones first: the module around an inline module, `None` for others.
        let mut open: Vec<Option<ModuleId>> = Vec::new();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let text = |n: usize| tokens.get(at + n).map_or("", |t| t.text);
            let top = open.iter().all(Option::is_some);
            match token.text {
                "{" => open.push(None),
                "}" => {
                    if let Some(Some(outer)) = open.pop() {
                        self.module = outer;
                    }
                }
                "mod" if text(2) == "{" => {
                    open.push(Some(self.module));
                    let mut path = self.all.modules[self.module].path.clone();
                    path.push(tokens[at + 1].text);
                    let file = self.all.modules[self.module].file;
                    self.module = self.all.module(path, Some(file));
                    at += 3;
                    continue;
                }
                "use" if text(1) != "<" => {
                    at = self.import(tokens, at + 1, &mut Vec::new(), top);
                    continue;
                }
                "mod" | "." => at += 1,
                word if ITEMS.contains(&word) => {
                    let name = if text(1) == "!" { text(2) } else { text(1) };
                    if top && !ITEMS.contains(&name) {
                        self.all.modules[self.module].items.push(name);
                    }
                    // A function's own name does not mention another item.
                    at += usize::from(
                        !ITEMS.contains(&text(1)) && tokens.get(at + 1).is_some_and(Token::is_word),
                    );
                }
                _ if token.is_word() => {
                    at = self.mention(tokens, at);
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Reads a path in an expression or a type, and returns the index after it.
    fn mention(&mut self, tokens: &[Token<'a>], start: usize) -> usize {
        let mut path = vec![tokens[start].text];
        let mut at = start + 1;
        while tokens.get(at).is_some_and(|t| t.text == "::") && tokens.get(at + 1).is_some_and(Token::is_word)
        {
            path.push(tokens[at + 1].text);
            at += 2;
        }
        // A single name is looked up because of glob imports. A variable may have a function's name.
        let next = tokens.get(at).map_or("", |t| t.text);
        let called = next == "(" || next == "!" || next == "::";
        if path.len() > 1 || called || path[0].starts_with(char::is_uppercase) {
            self.all.mentions.push(Mention { module: self.module, path, line: tokens[start].line });
        }
        at
    }

    /// Reads a tree of imports after `prefix`, and returns the index after it.
    fn import(&mut self, tokens: &[Token<'a>], mut at: usize, prefix: &mut Vec<&'a str>, top: bool) -> usize {
        let length = prefix.len();
        while let Some(token) = tokens.get(at) {
            match token.text {
                "::" => {}
                "{" => {
                    let end = closed(tokens, at);
                    at += 1;
                    while at + 1 < end {
                        at = self.import(&tokens[..end - 1], at, prefix, top);
                    }
                    at = end;
                    break;
                }
                "*" => {
                    if top {
                        self.all.modules[self.module].globs.push(prefix.clone());
                    }
                    self.all.mentions.push(Mention {
                        module: self.module,
                        path: prefix.clone(),
                        line: token.line,
                    });
                    at += 1;
                    break;
                }
                "," | ";" => break,
                _ => {
                    prefix.push(token.text);
                    let next = tokens.get(at + 1).map_or(";", |t| t.text);
                    if next != "::" {
                        let renamed = (next == "as").then(|| tokens[at + 2].text);
                        self.imported(prefix, renamed, token.line, top);
                        at += if renamed.is_some() { 3 } else { 1 };
                        break;
                    }
                }
            }
            at += 1;
        }
        prefix.truncate(length);
        at + usize::from(tokens.get(at).is_some_and(|t| t.text == "," || t.text == ";"))
    }

    fn imported(&mut self, path: &[&'a str], renamed: Option<&'a str>, line: usize, top: bool) {
        let mut path = path.to_vec();
        if path.len() > 1 && path.last() == Some(&"self") {
            path.pop();
        }
        let module = self.module;
        if let Some(name) = renamed.or(path.last().copied()).filter(|_| top) {
            self.all.modules[module].imports.insert(name, path.clone());
        }
        self.all.mentions.push(Mention { module, path, line });
    }
}
