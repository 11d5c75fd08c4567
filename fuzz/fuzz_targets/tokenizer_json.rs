//! Any bytes as a tokenizer.json and, after a byte that no UTF-8 has, its tokenizer_config.json: a
//! tokenizer that is read keeps to its vocabulary.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stair::tokens::{Special, Tokenizer, TokenizerJson};

fuzz_target!(|bytes: &[u8]| {
    let mut files = bytes.splitn(2, |&byte| byte == 0xFF);
    let json = files.next().unwrap_or_default();
    let Ok(tokenizer) = TokenizerJson::from_bytes(json, files.next()) else {
        return;
    };
    let size = tokenizer.vocab_size();
    assert!(tokenizer.end_of_text().is_none_or(|token| token < size));
    for text in [
        "",
        " ",
        "The 3rd rule: <s>, e\u{301}\u{1f3fb}\n\n\t",
        "{title}",
    ] {
        for special in [Special::AsText, Special::AsToken] {
            if let Ok(tokens) = tokenizer.encode(text, special) {
                assert!(tokens.iter().all(|&token| token < size));
            }
        }
    }
});
