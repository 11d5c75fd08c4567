//! The prompt. Its words stand nowhere else: an index carries what the engine needs of them.
//!
//! The default is the prompt of STAIR (arXiv 2609.03874, table 2), to the letter. A model that was
//! fine-tuned with other words brings them as a template.

use crate::error::{Error, Result};
use crate::index::question::QuestionTemplate;
use crate::toc::Toc;
use crate::tokens::{Special, Tokenizer};

/// The texts of a prompt. In a template file (TOML) every key is optional; one that is left out
/// keeps the value it has in the default.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Template {
    /// Text before the table of contents; `{title}` is the document's title.
    pub head: String,
    /// A line for a section with subsections; `{section}` is its number and title.
    pub interior: String,
    /// A line for a leaf.
    pub leaf: String,
    /// Whether the table of contents stands in the prompt. Without it (DSI, the differentiable
    /// search index) a model has to know the titles by heart.
    pub contents: bool,
    /// Text after the table of contents: where the part that all questions share ends.
    pub anchor: String,
    /// Text between the anchor and the question.
    pub before_question: String,
    /// Text after the question.
    pub after_question: String,
    /// Text before the number and title that the model generates.
    pub before_title: String,
    /// The token that ends a title; the vocabulary's end of text when absent.
    pub terminator: Option<String>,
    /// Whether these texts may name special tokens (`<|im_start|>`), as a chat template's do.
    pub special: bool,
}

impl Default for Template {
    fn default() -> Self {
        Self {
            head: "### Book: {title}\n\
                   Pick the best section from the table of contents below which can answer the \
                   user query below. Only generate the section name, do not generate any \
                   explanation!\n\
                   ### Table of Contents\n"
                .to_owned(),
            interior: "{section}".to_owned(),
            leaf: "leaf {section}".to_owned(),
            contents: true,
            anchor: "\n### Query:".to_owned(),
            before_question: " ".to_owned(),
            after_question: "\n### Section: leaf".to_owned(),
            before_title: " ".to_owned(),
            terminator: None,
            special: false,
        }
    }
}

impl Template {
    /// The default without the table of contents: what STAIR's authors compare it with (DSI). The
    /// part of a question and a title is the default's, so one question has the same tokens in both.
    pub fn without_contents() -> Self {
        Self {
            head: "### Book: {title}".to_owned(),
            contents: false,
            ..Self::default()
        }
    }

    /// Reads a template file.
    ///
    /// # Errors
    ///
    /// [`Error::Template`] with the line and what is wrong in it.
    pub fn from_toml(text: &str) -> Result<Self> {
        let template: Self =
            toml::from_str(text).map_err(|error| Error::Template(error.to_string()))?;
        for (key, line) in [("interior", &template.interior), ("leaf", &template.leaf)] {
            if !line.contains("{section}") {
                let why = format!("`{key}` has no {{section}}, so its sections would not be named");
                return Err(Error::Template(why));
            }
        }
        if template.after_question.is_empty() {
            let why = "`after_question` is empty, so nothing separates question and title";
            return Err(Error::Template(why.to_owned()));
        }
        Ok(template)
    }

    /// The part that an index carries.
    pub fn question(&self) -> QuestionTemplate<'_> {
        QuestionTemplate {
            anchor: &self.anchor,
            before_question: &self.before_question,
            after_question: &self.after_question,
            before_title: &self.before_title,
            special: self.special,
        }
    }

    /// The token that ends a title.
    ///
    /// # Errors
    ///
    /// [`Error::Template`] when the template names none that exists and the vocabulary has no end
    /// of text.
    pub fn terminator(&self, tokenizer: &dyn Tokenizer) -> Result<u32> {
        match &self.terminator {
            Some(text) => tokenizer.token(text).ok_or_else(|| {
                Error::Template(format!(
                    "the vocabulary has no token {text:?} to end a title with"
                ))
            }),
            None => tokenizer.end_of_text().ok_or_else(|| {
                let why = "the vocabulary does not say which token ends a text: name it with \
                           `terminator` in a template, or --terminator";
                Error::Template(why.to_owned())
            }),
        }
    }

    /// The tokens of everything before the question.
    ///
    /// # Errors
    ///
    /// What the tokenizer says.
    pub fn encode_prefix(&self, tokenizer: &dyn Tokenizer, toc: &Toc) -> Result<Vec<u32>> {
        let contents = match self.contents {
            true => self.lines(toc),
            false => String::new(),
        };
        self.encode_around(tokenizer, &toc.title, &contents)
    }

    /// The tokens of everything before the question for the document called `title`, in a prompt
    /// that has no table of contents, whatever [`Template::contents`] says.
    ///
    /// # Errors
    ///
    /// What the tokenizer says.
    pub fn encode_bare_prefix(&self, tokenizer: &dyn Tokenizer, title: &str) -> Result<Vec<u32>> {
        self.encode_around(tokenizer, title, "")
    }

    fn encode_around(
        &self,
        tokenizer: &dyn Tokenizer,
        title: &str,
        contents: &str,
    ) -> Result<Vec<u32>> {
        let (before, after) = self.head.split_once("{title}").unwrap_or((&self.head, ""));
        let title = match self.head.contains("{title}") {
            true => title,
            false => "",
        };
        let pieces = [
            (before, Special::AsToken),
            (title, Special::AsText),
            (after, Special::AsToken),
            (contents, Special::AsText),
            (&self.anchor, Special::AsToken),
        ];
        if !self.special {
            let text: String = pieces.iter().map(|&(text, _)| text).collect();
            return tokenizer.encode(&text, Special::AsText);
        }
        // The document's words must not turn into special tokens, so they are read apart.
        let mut tokens = Vec::new();
        for (text, special) in pieces {
            tokens.extend(tokenizer.encode(text, special)?);
        }
        Ok(tokens)
    }

    /// The table of contents, a line a section.
    fn lines(&self, toc: &Toc) -> String {
        let lines: Vec<String> = toc
            .sections
            .iter()
            .map(|section| {
                let line = match section.leaf {
                    true => &self.leaf,
                    false => &self.interior,
                };
                line.replace("{section}", &section.identifier())
            })
            .collect();
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toc::{Notes, Section};
    use crate::tokens::testing::Bytes;

    fn toc() -> Toc {
        let section = |number: &str, title: &str, parent, leaf| Section {
            number: number.to_owned(),
            title: title.to_owned(),
            depth: u16::from(parent == Some(0)),
            parent,
            leaf,
            span: 0..0,
            page: None,
            text: String::new(),
        };
        Toc {
            title: "Teaching in a Digital Age".to_owned(),
            sections: vec![
                section(
                    "1",
                    "Chapter 1: Fundamental Change in Education",
                    None,
                    false,
                ),
                section("1.1", "Step six", Some(0), true),
                section("", "Appendix", None, true),
            ],
            notes: Notes::default(),
        }
    }

    #[test]
    fn the_default_is_the_papers_prompt() {
        let tokens = Template::default()
            .encode_prefix(&Bytes, &toc())
            .expect("encodes");
        let text: String = tokens.iter().map(|&t| char::from(t as u8)).collect();
        assert_eq!(
            text,
            "### Book: Teaching in a Digital Age\n\
             Pick the best section from the table of contents below which can answer the user \
             query below. Only generate the section name, do not generate any explanation!\n\
             ### Table of Contents\n\
             1 Chapter 1: Fundamental Change in Education\n\
             leaf 1.1 Step six\n\
             leaf Appendix\n\
             ### Query:"
        );
    }

    #[test]
    fn without_contents_the_prompt_names_the_document_alone() {
        let template = Template::without_contents();
        let tokens = template.encode_prefix(&Bytes, &toc()).expect("encodes");
        let text: String = tokens.iter().map(|&t| char::from(t as u8)).collect();
        assert_eq!(text, "### Book: Teaching in a Digital Age\n### Query:");
        assert_eq!(template.question(), Template::default().question());
    }

    #[test]
    fn a_template_file_changes_only_what_it_names() {
        let template = Template::from_toml("leaf = \"* {section}\"").expect("reads");
        assert_eq!(template.leaf, "* {section}");
        assert_eq!(template.head, Template::default().head);
    }

    #[test]
    fn a_template_that_cannot_work_is_refused() {
        for text in [
            "leaf = \"x\"",
            "after_question = \"\"",
            "laef = \"{section}\"",
            "leaf = 3",
        ] {
            assert!(
                matches!(Template::from_toml(text), Err(Error::Template(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn a_terminator_that_does_not_exist_is_refused() {
        let mut template = Template::default();
        assert_eq!(template.terminator(&Bytes).expect("has one"), Bytes::END);
        template.terminator = Some("<nope>".to_owned());
        assert!(template.terminator(&Bytes).is_err());
    }
}
