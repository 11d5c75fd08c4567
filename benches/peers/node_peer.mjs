// node-llama-cpp: greedy generation of one title under a GBNF grammar of all of them. The prefix stays
// in the sequence; what comes after it is erased before each question.
//
// usage: node node_peer.mjs DOCUMENT.json
//
// The driver (run.rs) reads and writes its standard streams; protocol.rs says what.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { getLlama, LlamaGrammarEvaluationState } from "node-llama-cpp";

const document = JSON.parse(readFileSync(process.argv[2], "utf8"));
const quote = (text) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
const texts = document.titles.map((title) => document.before_title + title.identifier);
const sections = new Map(document.titles.map((title, i) => [texts[i], title.section]));
const longest = Math.max(...document.titles.map((title) => title.tokens.length));

const llama = await getLlama({
    gpu: false,
    build: "never",
    skipDownload: true,
    logLevel: "error",
    maxThreads: document.threads,
});
const model = await llama.loadModel({ modelPath: document.model });
const context = await model.createContext({
    contextSize: document.prefix.length + document.longest_question + 2 * longest,
    batchSize: 512,
    threads: document.threads,
    // As in every other system here: without it small decodes are faster on a CPU.
    flashAttention: false,
});
const sequence = context.getSequence();
const grammar = await llama.createGrammar({ grammar: `root ::= ${texts.map(quote).join(" | ")}\n` });
await sequence.evaluateWithoutGeneratingNewTokens(document.prefix);

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
// The package exports its code alone.
const manifest = new URL("node_modules/node-llama-cpp/package.json", import.meta.url);
say({
    versions: {
        node: process.version,
        "node-llama-cpp": JSON.parse(readFileSync(manifest, "utf8")).version,
        "llama.cpp": llama.llamaCppRelease.release,
    },
});

for await (const line of createInterface({ input: process.stdin })) {
    const question = JSON.parse(line).tokens;
    const started = performance.now();
    await sequence.eraseContextTokenRanges([{ start: document.prefix.length, end: sequence.nextTokenIndex }]);
    const state = new LlamaGrammarEvaluationState({ model, grammar });
    const generated = [];
    for await (const token of sequence.evaluate(question, { temperature: 0, grammarEvaluationState: state })) {
        generated.push(token);
        if (generated.length >= 2 * longest) break;
    }
    const text = model.detokenize(generated);
    const seconds = (performance.now() - started) / 1000;
    const identifier = text.startsWith(document.before_title) ? text.slice(document.before_title.length) : text;
    const section = sections.get(document.before_title + identifier) ?? null;
    say({ seconds, hits: [{ section, identifier, score: 0 }] });
}
process.exit(0);
