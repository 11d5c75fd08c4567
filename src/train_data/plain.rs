//! A section's Markdown as plain text in blocks, with what the author marked in it.

use crate::toc::strip_markup;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;

/// A paragraph, a list item, a row of a table... on one line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Block {
    pub text: String,
    pub marks: Vec<Mark>,
}

/// A part of a block's text that stands out in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub kind: MarkKind,
    /// Bytes of the block's text.
    pub span: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkKind {
    /// Bold, or the term of a definition list.
    Strong,
    /// Italic.
    Emphasis,
}

/// The blocks of `markdown`, read as the table of contents reads titles: of links, emphasis, code
/// and images the text; HTML tags are dropped. No block is empty.
pub(super) fn blocks(markdown: &str) -> Vec<Block> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_DEFINITION_LIST;
    let mut reader = Reader::default();
    for event in Parser::new_ext(markdown, options) {
        reader.event(&event);
    }
    reader.end_block();
    reader.blocks
}

/// Characters without a break after which a space is put: far above any word, and below what
/// tokenizers refuse.
const LONGEST_RUN: usize = 256;

#[derive(Default)]
struct Reader {
    blocks: Vec<Block>,
    block: Block,
    /// Marks that are open, with where they begin.
    open: Vec<(MarkKind, usize)>,
    /// Characters since the last break.
    run: usize,
    /// The block holds the term of a definition list alone, and waits for the definition.
    term_alone: bool,
    in_comment: bool,
}

impl Reader {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Text(text) | Event::Code(text) => self.push(text),
            Event::SoftBreak | Event::HardBreak => self.push(" "),
            Event::InlineHtml(tag)
                if tag
                    .get(..3)
                    .is_some_and(|tag| tag.eq_ignore_ascii_case("<br")) =>
            {
                self.push(" ");
            }
            Event::Html(html) => {
                let mut plain = String::new();
                for line in html.lines() {
                    strip_markup(line, &mut self.in_comment, &mut plain);
                    plain.push(' ');
                }
                self.push(&plain);
            }
            Event::Start(Tag::Strong) => self.begin_mark(MarkKind::Strong),
            Event::Start(Tag::Emphasis) => self.begin_mark(MarkKind::Emphasis),
            Event::End(TagEnd::Strong | TagEnd::Emphasis) => self.end_mark(),
            Event::Start(Tag::DefinitionListTitle) => {
                self.end_block();
                self.begin_mark(MarkKind::Strong);
            }
            Event::End(TagEnd::DefinitionListTitle) => {
                self.end_mark();
                self.push(": ");
                self.term_alone = true;
            }
            Event::End(TagEnd::TableCell) => self.push(" "),
            Event::Start(tag) if is_block(&tag.to_end()) && !self.term_alone => self.end_block(),
            Event::End(tag) if is_block(tag) => self.end_block(),
            _ => {}
        }
    }

    /// Appends `text` with white space folded and control characters replaced.
    fn push(&mut self, text: &str) {
        for c in text.chars() {
            let out = &mut self.block.text;
            if c.is_whitespace() {
                if !out.is_empty() && !out.ends_with(' ') {
                    out.push(' ');
                }
                self.run = 0;
                continue;
            }
            // The end of a sentence in a script without spaces; a row of dots is none.
            let after_word = out.ends_with(char::is_alphanumeric);
            self.run = match after_word && ".,!?…。，、।۔،".contains(c) {
                true => 0,
                false => self.run + 1,
            };
            if self.run > LONGEST_RUN {
                out.push(' ');
                self.run = 1;
            }
            out.push(match c.is_control() {
                true => char::REPLACEMENT_CHARACTER,
                false => c,
            });
            self.term_alone = false;
        }
    }

    fn begin_mark(&mut self, kind: MarkKind) {
        self.open.push((kind, self.block.text.len()));
    }

    fn end_mark(&mut self) {
        let Some((kind, start)) = self.open.pop() else {
            return;
        };
        let text = self.block.text.get(start..).unwrap_or_default();
        let start = start + text.len() - text.trim_start().len();
        let end = start + text.trim().len();
        if start < end {
            let span = start..end;
            self.block.marks.push(Mark { kind, span });
        }
    }

    fn end_block(&mut self) {
        let mut block = std::mem::take(&mut self.block);
        block.text.truncate(block.text.trim_end().len());
        if !block.text.is_empty() {
            self.blocks.push(block);
        }
        self.open.clear();
        self.run = 0;
        self.term_alone = false;
    }
}

/// Whether what `tag` ends stands on lines of its own.
fn is_block(tag: &TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Paragraph
            | TagEnd::Heading(_)
            | TagEnd::BlockQuote(_)
            | TagEnd::CodeBlock
            | TagEnd::HtmlBlock
            | TagEnd::List(_)
            | TagEnd::Item
            | TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::DefinitionListDefinition
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(markdown: &str) -> Vec<String> {
        blocks(markdown)
            .into_iter()
            .map(|block| block.text)
            .collect()
    }

    fn marks(markdown: &str) -> Vec<(MarkKind, String)> {
        let text = |block: &Block, mark: &Mark| block.text[mark.span.clone()].to_owned();
        blocks(markdown)
            .iter()
            .flat_map(|block| block.marks.iter().map(|m| (m.kind, text(block, m))))
            .collect()
    }

    #[test]
    fn every_kind_of_block_is_a_line_of_plain_text() {
        for (markdown, expected) in [
            ("", &[][..]),
            ("a *b*\nc  \n\n`d` [e](f)", &["a b c", "d e"]),
            ("- a\n- b\n\n  c\n\n> d", &["a", "b", "c", "d"]),
            ("1. a\n   - b\n", &["a", "b"]),
            ("| a | b |\n|---|---|\n| c | d |\n", &["a b", "c d"]),
            ("```\nx = 1\ny\n```\nz", &["x = 1 y", "z"]),
            ("![a](b.png) <b>c</b>d<br>e", &["a cd e"]),
            ("<div>\na <i>b</i>\n<!-- c -->\n</div>\n\nd", &["a b", "d"]),
            ("a\u{a0}\u{a0}b \u{1b}", &["a b \u{fffd}"]),
            ("a\n: b c\n\nd\n\n: e\n", &["a: b c", "d: e"]),
        ] {
            assert_eq!(texts(markdown), expected, "{markdown:?}");
        }
    }

    #[test]
    fn bold_and_italic_text_and_listed_terms_are_marks() {
        use MarkKind::{Emphasis, Strong};
        for (markdown, expected) in [
            ("A **b c**: d", &[(Strong, "b c")][..]),
            ("- *a* **b**", &[(Emphasis, "a"), (Strong, "b")]),
            ("term\n: what it is", &[(Strong, "term")]),
            ("a ** b ** c", &[]),
        ] {
            let expected: Vec<_> = expected.iter().map(|&(k, t)| (k, t.to_owned())).collect();
            assert_eq!(marks(markdown), expected, "{markdown:?}");
        }
    }

    #[test]
    fn an_endless_word_gets_breaks_and_loses_nothing() {
        let text = texts(&"x".repeat(1000)).join("");
        assert!(text.split(' ').all(|word| word.len() <= LONGEST_RUN));
        assert_eq!(text.replace(' ', "").len(), 1000);
        // Sentences without spaces are left as they are.
        let text = "夜が来る。".repeat(200);
        assert_eq!(texts(&text), [text]);
    }
}
