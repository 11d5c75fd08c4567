//! A GGUF model of some kilobytes, made here: a llama of one layer with made-up weights and a token
//! for each byte. It loads, tokenizes and decodes in microseconds, and what it says is nonsense.

/// Width of the model; one head has all of it.
const WIDTH: u64 = 32;
const CONTEXT: u32 = 4096;

/// The bytes of the model.
pub fn gguf() -> Vec<u8> {
    let mut metadata = Vec::new();
    let mut keys = 0u64;
    let mut put = |key: &str, kind: u32, value: &[u8]| {
        put_text(&mut metadata, key.as_bytes());
        metadata.extend(kind.to_le_bytes());
        metadata.extend(value);
        keys += 1;
    };
    let tokens: Vec<String> = (0..=255u8)
        .map(|byte| visible(byte).to_string())
        .chain(["th".to_owned(), "<end>".to_owned()])
        .collect();
    let end = tokens.len() as u32 - 1;
    let kinds: Vec<u8> = (0..=end)
        .flat_map(|id| if id == end { 3i32 } else { 1 }.to_le_bytes())
        .collect();
    put("general.architecture", TEXT, &text("llama"));
    for (key, value) in [
        ("llama.context_length", CONTEXT),
        ("llama.embedding_length", WIDTH as u32),
        ("llama.block_count", 1),
        ("llama.feed_forward_length", WIDTH as u32),
        ("llama.attention.head_count", 1),
        ("llama.attention.head_count_kv", 1),
        ("llama.rope.dimension_count", WIDTH as u32),
        ("tokenizer.ggml.bos_token_id", end),
        ("tokenizer.ggml.eos_token_id", end),
    ] {
        put(key, U32, &value.to_le_bytes());
    }
    let epsilon = 1e-5f32.to_le_bytes();
    put("llama.attention.layer_norm_rms_epsilon", F32, &epsilon);
    put("tokenizer.ggml.model", TEXT, &text("gpt2"));
    put("tokenizer.ggml.pre", TEXT, &text("gpt-2"));
    put("tokenizer.ggml.tokens", ARRAY, &texts(&tokens));
    put("tokenizer.ggml.merges", ARRAY, &texts(&["t h".to_owned()]));
    let kinds = [
        &I32.to_le_bytes()[..],
        &(u64::from(end) + 1).to_le_bytes(),
        &kinds,
    ]
    .concat();
    put("tokenizer.ggml.token_type", ARRAY, &kinds);

    let square = [WIDTH, WIDTH];
    let tensors: [(&str, &[u64]); 11] = [
        ("token_embd.weight", &[WIDTH, u64::from(end) + 1]),
        ("output_norm.weight", &[WIDTH]),
        ("blk.0.attn_norm.weight", &[WIDTH]),
        ("blk.0.attn_q.weight", &square),
        ("blk.0.attn_k.weight", &square),
        ("blk.0.attn_v.weight", &square),
        ("blk.0.attn_output.weight", &square),
        ("blk.0.ffn_norm.weight", &[WIDTH]),
        ("blk.0.ffn_gate.weight", &square),
        ("blk.0.ffn_up.weight", &square),
        ("blk.0.ffn_down.weight", &square),
    ];
    let mut out = b"GGUF".to_vec();
    out.extend(3u32.to_le_bytes());
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend(keys.to_le_bytes());
    out.extend(metadata);
    let mut weights = Vec::new();
    for (name, shape) in tensors {
        put_text(&mut out, name.as_bytes());
        out.extend((shape.len() as u32).to_le_bytes());
        shape.iter().for_each(|side| out.extend(side.to_le_bytes()));
        out.extend(0u32.to_le_bytes()); // 32-bit floats
        out.extend((weights.len() as u64).to_le_bytes());
        let count: u64 = shape.iter().product();
        for i in 0..count {
            // Spread over -1 to 1 without a pattern that the softmax would flatten.
            let noise = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            weights.extend((noise as f32 / (1 << 23) as f32 - 1.0).to_le_bytes());
        }
    }
    out.resize(out.len().next_multiple_of(32), 0);
    out.extend(weights);
    out
}

// Types of metadata.
const U32: u32 = 4;
const I32: u32 = 5;
const F32: u32 = 6;
const TEXT: u32 = 8;
const ARRAY: u32 = 9;

/// The character that stands for `byte` in a byte-level vocabulary.
fn visible(byte: u8) -> char {
    let stands_for_itself = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    match stands_for_itself(byte) {
        true => char::from(byte),
        false => {
            let others = (0..byte).filter(|&other| !stands_for_itself(other)).count();
            char::from_u32(256 + others as u32).unwrap_or_default()
        }
    }
}

fn text(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(&mut out, text.as_bytes());
    out
}

fn texts(texts: &[String]) -> Vec<u8> {
    let mut out = TEXT.to_le_bytes().to_vec();
    out.extend((texts.len() as u64).to_le_bytes());
    for text in texts {
        put_text(&mut out, text.as_bytes());
    }
    out
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text);
}
