//! `stair inspect` and `stair verify`: what is in an index, and whether it is whole.

use crate::output::{self, Failure, thousands};
use serde_json::{Value, json};
use stair::index::{Index, NodeId};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Show what is in an index
#[derive(clap::Args)]
pub struct Args {
    /// The index
    index: PathBuf,
    /// Print one JSON object
    #[arg(long, conflicts_with = "dot")]
    json: bool,
    /// Print the token trie as a graph for Graphviz
    #[arg(long)]
    dot: bool,
}

/// Check every invariant of an index
#[derive(clap::Args)]
pub struct VerifyArgs {
    /// The index
    index: PathBuf,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let index = Index::open(&args.index)?;
    if args.json {
        output::json_line(&index_json(&index))?;
    } else if args.dot {
        io::stdout().lock().write_all(dot(&index).as_bytes())?;
    } else {
        io::stdout().lock().write_all(tree(&index).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

pub fn verify(args: &VerifyArgs) -> Result<ExitCode, Failure> {
    // Opening checks everything; a copy, so that a file that is just being replaced cannot change
    // between check and report.
    let info = Index::open_copy(&args.index)?.info();
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{}: whole; format {}.{}, {} bytes, {} leaves, {} trie nodes",
        args.index.display(),
        info.version.0,
        info.version.1,
        thousands(info.bytes),
        thousands(info.leaves.into()),
        thousands(info.nodes.into()),
    )?;
    Ok(ExitCode::SUCCESS)
}

fn tree(index: &Index) -> String {
    let info = index.info();
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}", info.title);
    let _ = writeln!(
        out,
        "format {}.{}, {} bytes; {} sections, {} leaves; contents prompt {} tokens; trie {} nodes, \
         longest title {} tokens; texts {}; vocabulary of {} tokens, fingerprint {:016x}\n",
        info.version.0,
        info.version.1,
        thousands(info.bytes),
        thousands(info.sections.into()),
        thousands(info.leaves.into()),
        thousands(info.prefix_tokens.into()),
        thousands(info.nodes.into()),
        info.longest_title,
        if info.has_text { "kept" } else { "left out" },
        thousands(info.vocab_size.into()),
        info.fingerprint,
    );
    for section in (0..index.sections()).filter_map(|id| index.section(id)) {
        let indent = "  ".repeat(section.depth.into());
        let _ = write!(out, "{indent}{}", section.identifier());
        if section.leaf {
            let _ = write!(
                out,
                "  [{}] bytes {}..{}",
                section.id, section.span.start, section.span.end
            );
        }
        if let Some(page) = section.page {
            let _ = write!(out, " page {page}");
        }
        out.push('\n');
    }
    out
}

fn index_json(index: &Index) -> Value {
    let info = index.info();
    let sections: Vec<Value> = (0..index.sections())
        .filter_map(|id| index.section(id))
        .map(|section| {
            json!({
                "id": section.id,
                "number": section.number,
                "title": section.title,
                "depth": section.depth,
                "parent": section.parent,
                "leaf": section.leaf,
                "span": [section.span.start, section.span.end],
                "page": section.page,
                "text_bytes": section.text.map(str::len),
            })
        })
        .collect();
    let trie = index.trie();
    let nodes: Vec<Value> = (0..trie.len() as u32)
        .map(|node| {
            let children: Vec<Value> = trie
                .children(NodeId(node))
                .map(|(token, child)| json!([token, child.0]))
                .collect();
            json!({"children": children, "section": trie.section(NodeId(node))})
        })
        .collect();
    json!({
        "title": info.title,
        "version": [info.version.0, info.version.1],
        "bytes": info.bytes,
        "leaves": info.leaves,
        "prefix_tokens": info.prefix_tokens,
        "longest_title": info.longest_title,
        "has_text": info.has_text,
        "asked": info.asked,
        "vocab_size": info.vocab_size,
        "fingerprint": format!("{:016x}", info.fingerprint),
        "terminator": index.terminator(),
        "sections": sections,
        "trie": nodes,
    })
}

fn dot(index: &Index) -> String {
    let trie = index.trie();
    let mut out = String::from("digraph trie {\n  rankdir=LR;\n  node [shape=point];\n");
    for node in 0..trie.len() as u32 {
        if let Some(section) = trie.section(NodeId(node)).and_then(|id| index.section(id)) {
            let label = section
                .identifier()
                .replace('\\', "\\\\")
                .replace('"', "\\\"");
            let _ = writeln!(out, "  {node} [shape=box, label=\"{label}\"];");
        }
        for (token, child) in trie.children(NodeId(node)) {
            let _ = writeln!(out, "  {node} -> {} [label=\"{token}\"];", child.0);
        }
    }
    out.push_str("}\n");
    out
}
