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
}

pub const ALL: [System; 4] = [
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
];
