//! How much memory the contexts of one model take together. Where the host sets a limit, the context
//! of the retriever that was asked longest ago gives way to one that is needed now.
//!
//! It knows neither contexts nor llama.cpp: whoever has a context holds a [`Seat`] of so many bytes.

use crate::error::{Error, Result};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often who waits for a seat looks whether it still wants one.
const POLL: Duration = Duration::from_millis(20);

/// Who holds a seat, or waits for one.
pub(crate) trait Tenant: Send + Sync {
    /// Asks it to give its seat up as soon as nobody is being served there.
    fn leave(&self);
    /// When it was last asked something.
    fn last_asked(&self) -> Instant;
    /// Whether it will never be asked again.
    fn is_closed(&self) -> bool;
    /// Whether somebody waits for its answer.
    fn is_wanted(&self) -> bool;
}

/// The memory of one model's contexts.
pub(crate) struct Memory {
    /// In bytes; `None` for as much as there is.
    limit: Option<u64>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    used: u64,
    next_ticket: u64,
    seats: Vec<Taken>,
    /// Tickets of those who wait, first come, first served: a large context is not overtaken by
    /// small ones for ever.
    waiting: VecDeque<u64>,
}

struct Taken {
    ticket: u64,
    bytes: u64,
    tenant: Arc<dyn Tenant>,
    leaving: bool,
}

impl Memory {
    /// Memory of at most `limit` bytes.
    pub fn new(limit: Option<u64>) -> Self {
        Self {
            limit,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Bytes that are taken.
    pub fn used(&self) -> u64 {
        self.state.lock().used
    }

    /// A seat of `bytes` for `tenant`; waits until there is room for it: no longer than `patience` if
    /// there is one, else as long as somebody wants the tenant's answer, and is `None` when nobody does
    /// any more.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] when the limit is lower than that, and when nobody gave way in time;
    /// [`Error::Closed`] when the tenant was closed while it waited.
    pub fn take(
        self: &Arc<Self>,
        bytes: u64,
        tenant: Arc<dyn Tenant>,
        patience: Option<Duration>,
    ) -> Result<Option<Seat>> {
        let limit = self.limit.unwrap_or(u64::MAX);
        if bytes > limit {
            return Err(Error::OutOfMemory(format!(
                "the context takes about {bytes} bytes and context_memory allows {limit}: raise it, or use fewer max_parallel, fewer max_question_tokens or a smaller kv_type"
            )));
        }
        let until = patience.and_then(|patience| Instant::now().checked_add(patience));
        let mut state = self.state.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push_back(ticket);
        loop {
            if tenant.is_closed() {
                state.waiting.retain(|&other| other != ticket);
                self.changed.notify_all();
                return Err(Error::Closed);
            }
            // Else others would give way for who has gone.
            if patience.is_none() && !tenant.is_wanted() {
                state.waiting.retain(|&other| other != ticket);
                self.changed.notify_all();
                return Ok(None);
            }
            if state.waiting.front() == Some(&ticket) {
                if state.used.saturating_add(bytes) <= limit {
                    state.waiting.pop_front();
                    state.used += bytes;
                    state.seats.push(Taken {
                        ticket,
                        bytes,
                        tenant,
                        leaving: false,
                    });
                    self.changed.notify_all();
                    return Ok(Some(Seat {
                        memory: Arc::clone(self),
                        ticket,
                    }));
                }
                state.make_room(bytes, limit);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                state.waiting.retain(|&other| other != ticket);
                self.changed.notify_all();
                return Err(Error::OutOfMemory(format!(
                    "the context takes about {bytes} bytes, context_memory allows {limit}, and in {} s no other context gave way: raise it, free a retriever, or try again when fewer questions are asked",
                    patience.unwrap_or_default().as_secs_f32()
                )));
            }
            self.changed.wait_for(&mut state, POLL);
        }
    }
}

impl State {
    /// Asks as many tenants to leave as it takes, who was asked longest ago first.
    fn make_room(&mut self, bytes: u64, limit: u64) {
        let leaving: u64 = self
            .seats
            .iter()
            .filter(|s| s.leaving)
            .map(|s| s.bytes)
            .sum();
        let mut after = self.used - leaving;
        while after.saturating_add(bytes) > limit {
            let staying = self.seats.iter_mut().filter(|seat| !seat.leaving);
            let Some(oldest) = staying.min_by_key(|seat| seat.tenant.last_asked()) else {
                return;
            };
            oldest.leaving = true;
            oldest.tenant.leave();
            after -= oldest.bytes;
        }
    }
}

/// Memory for one context, until it is dropped.
pub(crate) struct Seat {
    memory: Arc<Memory>,
    ticket: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.memory.state.lock();
        if let Some(at) = state.seats.iter().position(|s| s.ticket == self.ticket) {
            let taken = state.seats.swap_remove(at);
            state.used -= taken.bytes;
        }
        self.memory.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    struct Guest {
        asked: Instant,
        told: AtomicUsize,
        closed: AtomicBool,
        forgotten: AtomicBool,
    }

    impl Guest {
        fn new(asked_before: u64) -> Arc<Self> {
            Arc::new(Self {
                asked: Instant::now() - Duration::from_millis(asked_before),
                told: AtomicUsize::new(0),
                closed: AtomicBool::new(false),
                forgotten: AtomicBool::new(false),
            })
        }
    }

    impl Tenant for Guest {
        fn leave(&self) {
            self.told.fetch_add(1, Ordering::SeqCst);
        }
        fn last_asked(&self) -> Instant {
            self.asked
        }
        fn is_closed(&self) -> bool {
            self.closed.load(Ordering::SeqCst)
        }
        fn is_wanted(&self) -> bool {
            !self.forgotten.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn without_a_limit_nobody_waits() {
        let memory = Arc::new(Memory::new(None));
        let guest = Guest::new(0);
        let seats: Vec<_> = (0..5)
            .map(|_| {
                memory
                    .take(u64::MAX / 8, guest.clone(), None)
                    .expect("room")
            })
            .collect();
        assert_eq!(memory.used(), u64::MAX / 8 * 5);
        drop(seats);
        assert_eq!((memory.used(), guest.told.load(Ordering::SeqCst)), (0, 0));
    }

    #[test]
    fn who_was_asked_longest_ago_gives_way_and_no_more_than_needed() {
        let memory = Arc::new(Memory::new(Some(10)));
        let guests = [Guest::new(10), Guest::new(30), Guest::new(20)];
        let mut seats: Vec<_> = guests
            .iter()
            .map(|guest| Some(memory.take(3, guest.clone(), None).expect("room")))
            .collect();
        let waiter = std::thread::spawn({
            let memory = Arc::clone(&memory);
            move || {
                memory
                    .take(6, Guest::new(0), None)
                    .map(|seat| (seat, memory.used()))
            }
        });
        let told = || guests.each_ref().map(|g| g.told.load(Ordering::SeqCst));
        while told() != [0, 1, 1] {
            std::thread::sleep(Duration::from_millis(1));
        }
        // One seat is not enough, and asking goes no further.
        seats[1] = None;
        std::thread::sleep(3 * POLL);
        assert_eq!((memory.used(), told()), (6, [0, 1, 1]));
        seats[2] = None;
        let (seat, used) = waiter.join().expect("no panic").expect("room");
        assert_eq!(used, 9);
        drop(seat);
    }

    #[test]
    fn too_much_is_refused_with_both_numbers_and_a_closed_tenant_stops_waiting() {
        let memory = Arc::new(Memory::new(Some(10)));
        let error = memory.take(11, Guest::new(0), None).err().expect("refused");
        let text = error.to_string();
        assert!(
            text.contains("11 bytes") && text.contains("allows 10"),
            "{text}"
        );
        let _seat = memory.take(10, Guest::new(0), None).expect("room");
        let closing = Guest::new(0);
        let waiter = std::thread::spawn({
            let (memory, closing) = (Arc::clone(&memory), closing.clone());
            move || memory.take(1, closing, None).err()
        });
        closing.closed.store(true, Ordering::SeqCst);
        assert!(matches!(
            waiter.join().expect("no panic"),
            Some(Error::Closed)
        ));
        assert_eq!(memory.state.lock().waiting.len(), 0);
    }

    #[test]
    fn who_waits_too_long_is_told_why_and_stands_in_nobodys_way() {
        let memory = Arc::new(Memory::new(Some(10)));
        // It is told to leave, and answers for ever.
        let busy = Guest::new(0);
        let seat = memory.take(10, busy.clone(), None).expect("room");
        let error = memory.take(3, Guest::new(0), Some(2 * POLL)).err();
        let text = error.expect("refused").to_string();
        assert!(
            text.contains("3 bytes") && text.contains("allows 10") && text.contains("0.04 s"),
            "{text}"
        );
        assert_eq!(busy.told.load(Ordering::SeqCst), 1);
        assert_eq!(memory.state.lock().waiting.len(), 0);
        drop(seat);
        // Room that is there is taken, however short the patience.
        let seat = memory.take(10, Guest::new(0), Some(Duration::ZERO));
        assert!(matches!(seat, Ok(Some(_))));
    }

    #[test]
    fn who_is_not_wanted_any_more_has_nobody_give_way() {
        let memory = Arc::new(Memory::new(Some(10)));
        let seat = memory.take(10, Guest::new(0), None).expect("room");
        let forgotten = Guest::new(0);
        let waiter = std::thread::spawn({
            let (memory, forgotten) = (Arc::clone(&memory), forgotten.clone());
            move || memory.take(1, forgotten, None).map(|seat| seat.is_none())
        });
        while memory.state.lock().waiting.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        forgotten.forgotten.store(true, Ordering::SeqCst);
        assert!(waiter.join().expect("no panic").expect("no error"));
        assert_eq!(memory.state.lock().waiting.len(), 0);
        drop(seat);
        // One that is made takes its place before anybody asks.
        let new = memory.take(1, forgotten, Some(Duration::ZERO));
        assert!(matches!(new, Ok(Some(_))));
    }

    #[test]
    fn first_come_first_served() {
        let memory = Arc::new(Memory::new(Some(10)));
        let seat = memory.take(10, Guest::new(0), None).expect("room");
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiters = Vec::new();
        for (number, bytes) in [9, 2, 2].into_iter().enumerate() {
            let (memory, order) = (Arc::clone(&memory), Arc::clone(&order));
            waiters.push(std::thread::spawn({
                let memory = Arc::clone(&memory);
                move || {
                    let seat = memory.take(bytes, Guest::new(0), None).expect("room");
                    order.lock().push(number);
                    drop(seat);
                }
            }));
            while memory.state.lock().waiting.len() <= number {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        drop(seat);
        for waiter in waiters {
            waiter.join().expect("no panic");
        }
        assert_eq!(order.lock()[0], 0);
    }
}
