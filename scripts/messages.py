#!/usr/bin/env python3
"""Lists every string that users may read, one per line: file, line, kind, text, separated by tabs.

    scripts/messages.py [FOLDER]              of this tree, or of another checkout of it
    scripts/messages.py --compare OLD NEW     counts texts that differ between two such lists

Kinds: `invalid`, `unsupported`, `internal`, and `resource` are errors; `print` is written to the
terminal; `help` is a doc comment that `--help` shows; `text` is any other string of two words or
more, such as a clause that an error takes in. Tests and benchmarks are left out.
"""

import pathlib
import re
import sys

TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/'
    r'|b?r(?P<hashes>#*)"(?P<raw>.*?)"(?P=hashes)'
    r'|b?"(?P<text>(?:\\.|[^"\\])*)"'
    r"|'(?:\\.[^']*|[^\\'\n])'"
    r'|[A-Za-z_][A-Za-z_0-9]*!?|::|\S',
    re.S,
)
ERRORS = {'invalid', 'unsupported', 'internal', 'resource'}
PRINTS = {'println!', 'eprintln!', 'print!', 'eprint!', 'warn', 'note', 'warning'}
# Calls whose strings only developers see.
SILENT = {'expect', 'assert!', 'assert_eq!', 'debug_assert!', 'panic!', 'unreachable!', 'cfg', 'cfg_attr', 'include_str!', 'expect_err'}
# Crates whose output only developers see.
TOOLS = {'xtask', 'filetest', 'conformance'}


def main():
    if len(sys.argv) == 4 and sys.argv[1] == '--compare':
        compare(*sys.argv[2:])
        return
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else '.')
    for path in sorted(root.glob('crates/*/src/**/*.rs')):
        name = path.relative_to(root)
        if name.parts[1] not in TOOLS and name.name != 'tests.rs':
            for line, kind, text in strings(path.read_text(), is_help(name)):
                print(name, line, kind, text, sep='\t')


def is_help(name):
    """True if doc comments of this file become help texts."""
    return name.parts[1] == 'cli' and ('args' in str(name) or 'commands' in str(name) or name.name == 'main.rs')


def strings(source, shows_help):
    """Line, kind, and text of the strings of one file."""
    source = source.split('\n#[cfg(test)]\nmod tests')[0]
    calls, callee = [], ''
    for token in TOKEN.finditer(source):
        word = token.group()
        text = token.group('raw') if token.group('raw') is not None else token.group('text')
        line = source.count('\n', 0, token.start()) + 1
        if text is not None and not word.startswith('b'):
            text = re.sub(r'\\\n\s*', '', text).replace('\n', '\\n').replace('\t', '\\t')
            kind = kind_of(calls)
            if kind and (kind != 'text' or re.search(r'[A-Za-z]{2,} [a-z{]', text)) and re.search('[a-z]{2}', text):
                yield line, kind, text
        elif word.startswith('///') and shows_help:
            yield line, 'help', word[3:].strip()
        elif word in '([{' and len(word) == 1:
            calls.append(callee)
        elif word in ')]}' and calls:
            calls.pop()
        callee = word if re.match(r'[A-Za-z_]', word) else ''


def kind_of(calls):
    """Kind of a string within the given calls, outermost first; None if users never see it."""
    if any(call in SILENT for call in calls):
        return None
    for call in reversed(calls):
        if call in ERRORS:
            return call
        if call in PRINTS:
            return 'print'
    return 'text'


def compare(old, new):
    """Prints, by kind, how many texts two lists have and how many of the old ones are gone."""
    texts = []
    for path in (old, new):
        kinds = {}
        for row in open(path):
            _, _, kind, text = row.rstrip('\n').split('\t', 3)
            kinds.setdefault(kind, set()).add(text)
        texts.append(kinds)
    before, after = texts
    print(f'{"kind":12} {"before":>7} {"after":>7} {"rewritten":>9}')
    for kind in sorted(before | after):
        was, is_ = before.get(kind, set()), after.get(kind, set())
        print(f'{kind:12} {len(was):7} {len(is_):7} {len(was - is_):9}')


if __name__ == '__main__':
    main()
