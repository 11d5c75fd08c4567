//! A model that is a table, and what a test sees of it.

use super::*;

/// What a test sees of the model, and does to it.
#[derive(Default)]
pub(super) struct Control {
    /// For each decode, its sequences.
    pub(super) log: Mutex<Vec<Vec<u16>>>,
    pub(super) prefix_tokens: AtomicUsize,
    /// Decodes wait as long as this is held.
    pub(super) gate: Mutex<()>,
    /// The decode that fails, counted from 1.
    pub(super) fail_at: AtomicUsize,
    pub(super) panic_at: AtomicUsize,
}

impl Control {
    pub(super) fn decodes(&self) -> usize {
        self.log.lock().len()
    }

    /// Waits until the worker has begun decode number `count`.
    pub(super) fn await_decode(&self, count: usize) {
        eventually(|| self.decodes() >= count, "the worker decodes");
    }
}

pub(super) fn eventually(condition: impl Fn() -> bool, what: &str) {
    let until = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < until, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A model whose logits are a fixed function of all tokens before them; not numbers when these
/// have a tilde. It refuses whatever llama.cpp would assert on.
pub(super) struct Mock {
    pub(super) capacity: Capacity,
    pub(super) sequences: Vec<Vec<u32>>,
    pub(super) refuses_states: bool,
    pub(super) control: Arc<Control>,
}

impl Mock {
    pub(super) fn new(batch: usize, rows: usize) -> Self {
        let sequences = 1 + PARALLEL * STATES;
        Self {
            capacity: Capacity {
                sequences: sequences as u16,
                batch,
                rows,
                context: 1 << 20,
            },
            sequences: vec![Vec::new(); sequences],
            refuses_states: false,
            control: Arc::default(),
        }
    }
}

impl LanguageModel for Mock {
    fn capacity(&self) -> Capacity {
        self.capacity
    }

    fn fork(&mut self, from: Seq, to: Seq, length: u32) -> Result<()> {
        let (from, to) = (usize::from(from.0), usize::from(to.0));
        assert!(self.sequences[to].is_empty(), "sequence {to} is in use");
        assert!(!self.sequences[from].is_empty(), "sequence {from} is empty");
        self.sequences[to] = self.sequences[from][..length as usize].to_vec();
        Ok(())
    }

    fn clear(&mut self, seq: Seq) -> Result<()> {
        self.sequences[usize::from(seq.0)].clear();
        Ok(())
    }

    fn decode(
        &mut self,
        batch: &Batch,
        row: &mut dyn FnMut(usize, &[f32]) -> Result<()>,
    ) -> Result<()> {
        assert!(batch.token_count() <= self.capacity.batch && !batch.is_empty());
        assert!(batch.row_count() <= self.capacity.rows);
        let seqs = batch.appends().iter().map(|append| append.seq.0).collect();
        self.control.log.lock().push(seqs);
        drop(self.control.gate.lock());
        let number = self.control.decodes();
        if self.control.panic_at.load(Ordering::SeqCst) == number {
            panic!("forced");
        }
        if self.control.fail_at.load(Ordering::SeqCst) == number {
            self.sequences.iter_mut().for_each(Vec::clear);
            return Err(Error::Decode("forced".to_owned()));
        }
        for (number, append) in batch.appends().iter().enumerate() {
            let tokens = batch.tokens(append);
            if append.seq == Seq::PREFIX {
                let count = &self.control.prefix_tokens;
                count.fetch_add(tokens.len(), Ordering::SeqCst);
            }
            let sequence = &mut self.sequences[usize::from(append.seq.0)];
            assert_eq!(sequence.len(), append.position as usize);
            for (at, &token) in tokens.iter().enumerate() {
                sequence.push(token);
                if at >= append.first_row {
                    row(number, &logits(sequence))?;
                }
            }
            let sequence = sequence.clone();
            for follower in Batch::seqs(append).skip(1) {
                let held = &mut self.sequences[usize::from(follower.0)];
                assert_eq!(held.as_slice(), &sequence[..append.position as usize]);
                held.clone_from(&sequence);
            }
        }
        // The tokens of the questions, without what their searches hold.
        let prefix = self.sequences[0].len();
        let questions = self.sequences[1..].iter().step_by(STATES);
        let tokens: usize = questions
            .map(|held| held.len().saturating_sub(prefix))
            .sum();
        assert!(prefix + tokens <= self.capacity.context);
        Ok(())
    }

    fn state(&mut self, seq: Seq) -> Result<Vec<u8>> {
        let sequence = &self.sequences[usize::from(seq.0)];
        Ok(bytemuck::cast_slice(sequence).to_vec())
    }

    fn set_state(&mut self, seq: Seq, state: &[u8], tokens: u32) -> Result<()> {
        let sequence = &mut self.sequences[usize::from(seq.0)];
        assert!(sequence.is_empty());
        if self.refuses_states || state.len() != 4 * tokens as usize {
            return Err(Error::Internal("refused".to_owned()));
        }
        let tokens = state.chunks_exact(4);
        sequence.extend(tokens.map(bytemuck::pod_read_unaligned::<u32>));
        Ok(())
    }
}

fn logits(tokens: &[u32]) -> Vec<f32> {
    if tokens.contains(&u32::from(b'~')) {
        return vec![f32::NAN; 257];
    }
    let mix = |hash: u64, token: u64| {
        let hash = (hash ^ token).wrapping_mul(0x2545_F491_4F6C_DD1D);
        hash ^ (hash >> 29)
    };
    let hash = tokens.iter().fold(1, |hash, &t| mix(hash, t.into()));
    let row = |token| (mix(hash, token) % 1000) as f32 / 250.0;
    (0..257).map(row).collect()
}
