//! A collection: which modules make a book, and in which chapters they stand.

use super::{child, parse, text, text_of};
use crate::error::{Error, Result};
use roxmltree::Node;
use std::path::Path;

/// A book's outline.
pub(super) struct Collection {
    pub title: String,
    pub licence: Option<String>,
    /// In the book's order.
    pub entries: Vec<Entry>,
}

/// A line of the outline.
pub(super) enum Entry {
    /// A chapter with its number, or a unit of chapters, which has none.
    Heading {
        level: usize,
        number: String,
        title: String,
    },
    /// A section, by the name of its module's folder.
    Module {
        level: usize,
        document: String,
        /// Whether it stands in a chapter, which gives it a number.
        numbered: bool,
    },
}

impl Collection {
    /// Reads `collections/NAME.collection.xml`.
    pub fn read(checkout: &Path, name: &str) -> Result<Self> {
        let path = format!("collections/{name}.collection.xml");
        let text = text(checkout, &path)?;
        let document = parse(&text, &path)?;
        let root = document.root_element();
        let metadata = child(root, "metadata");
        let part = |name| metadata.and_then(|metadata| child(metadata, name));
        let title = part("title").map(text_of).filter(|title| !title.is_empty());
        let Some(title) = title else {
            return Err(Error::Document(format!("{path}: the book has no title")));
        };
        let mut collection = Self {
            title,
            licence: part("license").and_then(|l| l.attribute("url").map(str::to_owned)),
            entries: Vec::new(),
        };
        if let Some(content) = child(root, "content") {
            collection.content(content, 2, false, &mut 0)?;
        }
        let has_module = |entry: &Entry| matches!(entry, Entry::Module { .. });
        if !collection.entries.iter().any(has_module) {
            return Err(Error::Document(format!("{path}: it names no module")));
        }
        Ok(collection)
    }

    fn content(
        &mut self,
        content: Node<'_, '_>,
        level: usize,
        in_chapter: bool,
        chapters: &mut usize,
    ) -> Result<()> {
        for element in content.children().filter(Node::is_element) {
            match element.tag_name().name() {
                "subcollection" => {
                    let inner = child(element, "content");
                    let is_unit =
                        inner.is_some_and(|inner| child(inner, "subcollection").is_some());
                    let number = match is_unit || in_chapter {
                        true => String::new(),
                        false => {
                            *chapters += 1;
                            chapters.to_string()
                        }
                    };
                    let in_chapter = !number.is_empty();
                    self.entries.push(Entry::Heading {
                        level,
                        number,
                        title: child(element, "title").map(text_of).unwrap_or_default(),
                    });
                    if let Some(inner) = inner {
                        self.content(inner, level + 1, in_chapter, chapters)?;
                    }
                }
                "module" => {
                    let document = element.attribute("document").unwrap_or_default();
                    let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
                    if document.is_empty() || !document.chars().all(plain) {
                        let what = format!("the collection names a module {document:?}");
                        return Err(Error::Document(what));
                    }
                    self.entries.push(Entry::Module {
                        level,
                        document: document.to_owned(),
                        numbered: in_chapter,
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }
}
