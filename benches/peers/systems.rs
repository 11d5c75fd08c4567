//! The systems there are.

/// One system.
pub struct System {
    /// Its name in predictions and in the table.
    pub name: &'static str,
    /// What it is, in a few words.
    pub what: &'static str,
    /// What runs it.
    pub engine: Engine,
}

/// What runs a system.
#[derive(Clone, Copy)]
pub enum Engine {
    /// libstair.
    Ours(Ours),
    /// llama.cpp, generating one title.
    Llama(Constraint),
    /// Every title scored, on libstair's engine.
    EveryTitle,
    /// A Python program beside this one, with this argument.
    Python(&'static str),
    /// A Node.js program beside this one.
    Node,
}

/// How libstair is asked.
#[derive(Clone, Copy)]
pub enum Ours {
    /// As many hits as everybody is asked for.
    TopK,
    /// One hit.
    Top1,
    /// Words and model together.
    Hybrid,
}

/// What keeps a generated title to those that exist.
#[derive(Clone, Copy)]
pub enum Constraint {
    /// Nothing.
    None,
    /// A GBNF grammar, tried on the best token and applied to all only where it refuses that: the way
    /// of llama.cpp's own programs.
    Grammar,
    /// A GBNF grammar, applied to all tokens at each step: a plain chain of samplers.
    GrammarChain,
    /// llguidance's mask, through llama-cpp-2's sampler.
    Llguidance,
}

/// In the order of the table.
pub const ALL: [System; 11] = [
    System {
        name: "stair",
        what: "libstair, exact top k",
        engine: Engine::Ours(Ours::TopK),
    },
    System {
        name: "stair-top1",
        what: "libstair, exact top 1",
        engine: Engine::Ours(Ours::Top1),
    },
    System {
        name: "stair-hybrid",
        what: "libstair with words, exact top k",
        engine: Engine::Ours(Ours::Hybrid),
    },
    System {
        name: "floor",
        what: "llama.cpp, greedy, unconstrained",
        engine: Engine::Llama(Constraint::None),
    },
    System {
        name: "grammar",
        what: "llama.cpp, greedy, GBNF where needed",
        engine: Engine::Llama(Constraint::Grammar),
    },
    System {
        name: "grammar-chain",
        what: "llama.cpp, greedy, GBNF on all tokens",
        engine: Engine::Llama(Constraint::GrammarChain),
    },
    System {
        name: "grammar-node",
        what: "node-llama-cpp, greedy, GBNF",
        engine: Engine::Node,
    },
    System {
        name: "llguidance",
        what: "llama-cpp-2's llguidance sampler, greedy",
        engine: Engine::Llama(Constraint::Llguidance),
    },
    System {
        name: "nprompt",
        what: "every title scored, libstair's engine",
        engine: Engine::EveryTitle,
    },
    System {
        name: "transformers-warm",
        what: "transformers, beams, prefix cache",
        engine: Engine::Python("warm"),
    },
    System {
        name: "transformers-cold",
        what: "transformers, beams, whole prompt",
        engine: Engine::Python("cold"),
    },
];
