//! Handles: what C holds in place of a Rust value.
//!
//! A handle looks like a pointer and is a ticket: a place in a table, the number of times that the
//! place was given out, and the kind of thing. So a handle that was freed, freed twice, or is of
//! another kind is found out rather than followed, and freeing one while another thread uses it is
//! safe: the user holds its own reference.

use crate::error::{Error, Result};
use parking_lot::RwLock;
use std::sync::Arc;

/// Bits of a handle: kind, place, and the rest for the count.
const KIND_BITS: u32 = 4;
const PLACE_BITS: u32 = usize::BITS / 2 - KIND_BITS;
const COUNT_BITS: u32 = usize::BITS / 2;

/// All live things of one kind.
pub(super) struct Table<T> {
    /// What the kind is called in messages.
    name: &'static str,
    /// 1 to 15, so that no handle is NULL.
    kind: usize,
    places: RwLock<Places<T>>,
}

struct Places<T> {
    places: Vec<Place<T>>,
    free: Vec<usize>,
}

struct Place<T> {
    /// How often the place was given out.
    count: usize,
    value: Option<Arc<T>>,
}

impl<T> Table<T> {
    pub const fn new(name: &'static str, kind: usize) -> Self {
        assert!(kind > 0 && kind < 1 << KIND_BITS);
        Self {
            name,
            kind,
            places: RwLock::new(Places {
                places: Vec::new(),
                free: Vec::new(),
            }),
        }
    }

    /// A handle for `value`.
    pub fn insert<H>(&self, value: T) -> Result<*mut H> {
        let mut places = self.places.write();
        let at = match places.free.pop() {
            Some(at) => at,
            None if places.places.len() >= 1 << PLACE_BITS => {
                let what = format!("too many live handles of {}", self.name);
                return Err(Error::OutOfMemory(what));
            }
            None => {
                places.places.push(Place {
                    count: 0,
                    value: None,
                });
                places.places.len() - 1
            }
        };
        let place = &mut places.places[at];
        place.count = (place.count + 1) & ((1 << COUNT_BITS) - 1);
        place.value = Some(Arc::new(value));
        let ticket = (place.count << (PLACE_BITS + KIND_BITS)) | (at << KIND_BITS) | self.kind;
        Ok(std::ptr::without_provenance_mut(ticket))
    }

    /// The thing that `handle` stands for.
    pub fn find<H>(&self, handle: *const H) -> Result<Arc<T>> {
        if handle.is_null() {
            return Err(Error::NullPointer(self.name));
        }
        let places = self.places.read();
        self.place(&places.places, handle)
            .and_then(|at| places.places[at].value.clone())
            .ok_or(Error::InvalidHandle(self.name))
    }

    /// Frees `handle`; does nothing for NULL and for a handle that is not live.
    pub fn remove<H>(&self, handle: *mut H) {
        let value = {
            let mut places = self.places.write();
            let Some(at) = self.place(&places.places, handle) else {
                return;
            };
            let value = places.places[at].value.take();
            places.free.push(at);
            value
        };
        // Outside the lock: dropping a retriever waits for its worker.
        drop(value);
    }

    /// Where the live thing is that `handle` stands for.
    fn place<H>(&self, places: &[Place<T>], handle: *const H) -> Option<usize> {
        let ticket = handle.addr();
        let at = (ticket >> KIND_BITS) & ((1 << PLACE_BITS) - 1);
        let count = ticket >> (PLACE_BITS + KIND_BITS);
        let place = places.get(at)?;
        let live = ticket & ((1 << KIND_BITS) - 1) == self.kind
            && place.count == count
            && place.value.is_some();
        live.then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Opaque;

    #[test]
    fn a_handle_lives_until_it_is_freed_and_never_again() {
        let table = Table::new("thing", 3);
        let first: *mut Opaque = table.insert("first").expect("room");
        assert_eq!(*table.find(first).expect("live"), "first");
        table.remove(first);
        table.remove(first);
        assert!(matches!(
            table.find(first),
            Err(Error::InvalidHandle("thing"))
        ));
        let second: *mut Opaque = table.insert("second").expect("room");
        assert_ne!(first, second, "the place is used again, the handle is not");
        table.remove(first);
        assert_eq!(*table.find(second).expect("live"), "second");
    }

    #[test]
    fn null_garbage_and_other_kinds_are_told_apart() {
        let table = Table::new("thing", 3);
        let other = Table::new("other", 4);
        let handle: *mut Opaque = table.insert(1).expect("room");
        let _: *mut Opaque = other.insert(2).expect("room");
        assert!(matches!(
            table.find::<Opaque>(std::ptr::null()),
            Err(Error::NullPointer(_))
        ));
        assert!(matches!(other.find(handle), Err(Error::InvalidHandle(_))));
        for garbage in [1usize, 8, usize::MAX, usize::MAX - 12] {
            let garbage: *const Opaque = std::ptr::without_provenance(garbage);
            assert!(matches!(table.find(garbage), Err(Error::InvalidHandle(_))));
        }
        table.remove::<Opaque>(std::ptr::null_mut());
    }

    #[test]
    fn freeing_does_not_take_it_from_who_uses_it() {
        let table = Table::new("thing", 3);
        let handle: *mut Opaque = table.insert(String::from("used")).expect("room");
        let used = table.find(handle).expect("live");
        table.remove(handle);
        assert_eq!(*used, "used");
    }
}
