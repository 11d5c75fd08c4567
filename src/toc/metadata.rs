//! The YAML block that a Markdown file may start with.

use saphyr::{LoadableYamlNode, Scalar, Yaml};

use super::text;

/// A YAML block at a file's start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Metadata {
    /// Its `title`, folded.
    pub(super) title: Option<String>,
    /// Bytes of the block, from the opening line to the end of the closing one.
    pub(super) len: usize,
}

/// Whether `source` starts with what looks like a YAML block and is none: `key: value` between two
/// lines `---`, and not YAML as a whole, often for a colon in a value.
pub(super) fn is_broken(source: &str) -> bool {
    let is_said = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let yaml = block(source).map(|(yaml, _)| yaml);
    let yaml = yaml.filter(|yaml| !begins_blank(yaml));
    let first = yaml.and_then(|yaml| yaml.lines().find(is_said));
    let key = first
        .and_then(|line| line.split_once(':'))
        .map(|(key, _)| key);
    let is_name = |key: &str| {
        key.starts_with(char::is_alphabetic)
            && key
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
    };
    key.is_some_and(is_name) && Metadata::read(source).is_none()
}

impl Metadata {
    /// The block that `source` starts with: a line `---`, a YAML mapping, and a line `---` or
    /// `...`. `None` where one of these is missing: then the first line is Markdown, a thematic
    /// break.
    ///
    /// A mapping too large or too deep to have been written as metadata is Markdown too, and so is what
    /// follows a blank line: Pandoc's rule, by which `---` above a heading is a thematic break.
    pub(super) fn read(source: &str) -> Option<Self> {
        let (yaml, len) = block(source)?;
        if begins_blank(yaml) || !is_modest(yaml) {
            return None;
        }
        let documents = Yaml::load_from_str(yaml).ok()?;
        let [mapping @ Yaml::Mapping(_)] = documents.as_slice() else {
            return None;
        };
        let title = match mapping.as_mapping_get("title") {
            Some(Yaml::Value(Scalar::String(title))) => Some(text::fold(title)),
            // A title such as `1984` or `1.10` is a number to YAML; it is meant as it stands there.
            Some(Yaml::Value(Scalar::Integer(title))) => Some(written(yaml, title)),
            Some(Yaml::Value(Scalar::FloatingPoint(title))) => Some(written(yaml, title)),
            Some(Yaml::Value(Scalar::Boolean(title))) => Some(written(yaml, title)),
            _ => None,
        };
        Some(Self {
            title: title.filter(|title| !text::is_blank(title)),
            len,
        })
    }

    /// Lines of the block that would be headings if it were none: comments to YAML.
    pub(super) fn comments(&self, source: &str) -> usize {
        let lines = source[..self.len].lines();
        lines.filter(|line| line.starts_with("# ")).count()
    }
}

/// The title as it is written, where it stands plainly on a line of its own; else as it was read.
fn written(yaml: &str, read: &impl ToString) -> String {
    let value = yaml.lines().find_map(|line| line.strip_prefix("title:"));
    let value = value.map(|value| value.split([' ', '\t']).find(|word| !word.is_empty()));
    match value.flatten() {
        Some(value) if !value.starts_with('#') => value.trim_end().to_owned(),
        _ => read.to_string(),
    }
}

fn begins_blank(yaml: &str) -> bool {
    yaml.lines()
        .next()
        .is_some_and(|line| line.trim().is_empty())
}

/// Bytes of YAML looked at.
const MAX_LEN: usize = 1 << 16;
/// Characters of indentation.
const MAX_INDENTATION: usize = 128;
/// Asterisks beside an ampersand, so possibly aliases.
const MAX_ALIASES: usize = 16;

/// The YAML between the lines that mark it, and the length of all.
fn block(source: &str) -> Option<(&str, usize)> {
    let mut lines = source.split_inclusive('\n');
    let opening = lines.next().filter(|line| line.trim_end() == "---")?;
    let mut end = opening.len();
    for line in lines {
        if matches!(line.trim_end(), "---" | "...") {
            return Some((&source[opening.len()..end], end + line.len()));
        }
        end += line.len();
        if end - opening.len() > MAX_LEN {
            return None;
        }
    }
    None
}

/// Whether the YAML parser is safe with `yaml`: it recurses with each level of block collections
/// (flow collections it stops at 255), and copies what an alias names, where aliases within aliases
/// multiply.
fn is_modest(yaml: &str) -> bool {
    // Block collections nest by indentation; `- - -` and `? - ?` nest within a line.
    let indentation = |line: &str| {
        let starts = |c: &char| matches!(c, ' ' | '\t' | '-' | '?' | ':');
        line.chars().take_while(starts).count()
    };
    yaml.lines()
        .all(|line| indentation(line) <= MAX_INDENTATION)
        && (!yaml.contains('&') || yaml.matches('*').count() <= MAX_ALIASES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn title(source: &str) -> Option<Option<String>> {
        Metadata::read(source).map(|metadata| metadata.title)
    }

    #[test]
    fn a_mapping_between_its_lines_is_metadata() {
        for (source, expected) in [
            ("---\ntitle: A\n---\n# B", Some("A")),
            ("---\r\ntitle: A\r\nx: [y]\r\n...\r\n", Some("A")),
            ("--- \ntitle: 'A: b'\n---\t\n", Some("A: b")),
            ("---\ntitle: >\n  A\n  b\n---", Some("A b")),
            ("---\ntitle: 1984\n---\n", Some("1984")),
            ("---\ntitle: 1.10 # the tenth\n---\n", Some("1.10")),
            ("---\nx: 1\ntitle:  007\r\n---\n", Some("007")),
            ("---\ntitle: true\n---\n", Some("true")),
            ("---\ntitle: 0x10\t# sixteen\n---\n", Some("0x10")),
            ("---\n\"title\": 1984\n---\n", Some("1984")),
            ("---\ntitle:\n  1984\n---\n", Some("1984")),
            ("---\ntitle: ''\n---\n", None),
            ("---\ntitle: [A]\n---\n", None),
            ("---\ntitle:\n---\n", None),
            ("---\nauthor: A\n---\n", None),
            ("---\nx:\n  title: A\n---\n", None),
            ("---\n{}\n---\n", None),
        ] {
            let metadata = Metadata::read(source).expect(source);
            assert_eq!(metadata.title.as_deref(), expected, "{source:?}");
        }
    }

    #[test]
    fn the_block_ends_after_its_closing_line() {
        let source = "---\na: b\n---\n# A\n---\n";
        let len = Metadata::read(source).map(|metadata| metadata.len);
        assert_eq!(len, Some("---\na: b\n---\n".len()));
    }

    #[test]
    fn anything_else_is_markdown() {
        for source in [
            "",
            "---",
            "---\n",
            "---\n---\n",
            "---\ntitle: A\n",
            "---\ntext\n---\n",
            "---\n- a\n---\n",
            "---\na: b: c\n---\n",
            "---\n# A\n---\n",
            "---\n\n# A\n\nVersion: 2\n\n---\n",
            "----\na: b\n----\n",
            "\n---\na: b\n---\n",
            " ---\na: b\n---\n",
            "--- a\na: b\n---\n",
            "---\na: b\n ---\n",
        ] {
            assert_eq!(Metadata::read(source), None, "{source:?}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "large inputs take Miri hours")]
    fn hostile_yaml_is_markdown() {
        let deep = |open: &str, n| format!("---\na: {}\n---\n", open.repeat(n));
        let indented = (0..1000).map(|n| format!("{}a:\n", " ".repeat(n)));
        let indented = format!("---\n{}---\n", indented.collect::<String>());
        for source in [
            deep("[", 100_000),
            deep("[a: ", 50_000),
            deep("{a: ", 50_000),
            format!("---\na:\n{}b\n---\n", "- ".repeat(20_000)),
            format!("---\n{}b\n---\n", "? ".repeat(20_000)),
            indented,
            format!("---\na: {}\n---\n", "b".repeat(MAX_LEN)),
            format!("---\na: &a b\nb: [{}]\n---\n", "*a, ".repeat(1000)),
        ] {
            assert_eq!(Metadata::read(&source), None, "{:.40}", source);
        }
    }

    #[test]
    fn yaml_at_the_limits_is_read() {
        let nested = format!("---\na: {}{}\n---\n", "[a: ".repeat(250), "]".repeat(250));
        assert_eq!(title(&nested), Some(None));
        let levels = (0..MAX_INDENTATION).map(|n| format!("{}a:\n", " ".repeat(n)));
        let indented = format!("---\ntitle: A\nb:\n{}---\n", levels.collect::<String>());
        // The first `a:` stands beside `b:`, which is then empty.
        assert_eq!(title(&indented), Some(Some("A".to_owned())));
    }

    proptest! {
        #[test]
        fn any_block_is_read_without_a_panic(
            yaml in "([\\[\\]{},:&*!|>'\"%@`#?a-c0-9.\\- \t\r]{0,12}\n){0,8}",
        ) {
            let _ = Metadata::read(&format!("---\n{yaml}---\n"));
        }
    }
}
