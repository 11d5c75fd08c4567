//! Any text as a prompt template; whatever it says, an index built with it holds the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stair::index::{BuildOptions, Index, build};
use stair::prompt::Template;
use stair::toc::{ReadOptions, Toc, read_markdown};
use stair_fuzz::{Bytes, round_trip};
use std::sync::LazyLock;

static TOC: LazyLock<Toc> = LazyLock::new(|| {
    let document =
        b"# The <s> handbook\n\n## Gloves {title}\n\nWear.\n\n## Goggles\n\n### {section}\n";
    read_markdown(document, "document", &ReadOptions::default()).expect("reads")
});

fuzz_target!(|text: &str| {
    let Ok(template) = Template::from_toml(text) else {
        return;
    };
    let options = BuildOptions {
        template,
        text: false,
        ..BuildOptions::default()
    };
    round_trip(&TOC, &options);
    if let Ok((bytes, _)) = build(&TOC, &Bytes, &options, &|_| ()) {
        let index = Index::from_bytes(&bytes).expect("what was built opens");
        assert_eq!(index.question(), options.template.question());
        let _ = index.question().encode_question(&Bytes, text);
    }
});
