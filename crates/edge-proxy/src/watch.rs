//! What a worker watches: every connection and every request in flight, in a list of its own.
//!
//! One list serves time-outs, revocation (R12) and draining, so that a request costs one entry
//! here instead of a timer for each thing that may take too long. A worker is one thread: no locks.

use std::{
    cell::{Cell, RefCell},
    ops::Deref,
    rc::Rc,
    task::Waker,
    time::{Duration, Instant},
};

/// Milliseconds since the worker started; 0 stands for "not waiting".
pub(crate) type Tick = u64;

/// A clock that costs nothing to read, as exact as it is kept.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    now: Cell<Tick>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            now: Cell::new(1),
        }
    }

    /// Reads the real clock and keeps what it says.
    pub(crate) fn refresh(&self) -> Instant {
        let instant = Instant::now();
        let millis = instant.saturating_duration_since(self.start).as_millis();
        self.now
            .set(Tick::try_from(millis).unwrap_or(Tick::MAX).max(1));
        instant
    }

    pub(crate) fn now(&self) -> Tick {
        self.now.get()
    }
}

/// Whether something that began at `since` has taken longer than `limit`.
pub(crate) fn overdue(since: &Cell<Tick>, now: Tick, limit: Duration) -> bool {
    let since = since.get();
    since != 0 && u128::from(now.saturating_sub(since)) > limit.as_millis()
}

/// A waker that something else may need.
#[derive(Debug, Default)]
pub(crate) struct Bell(RefCell<Option<Waker>>);

impl Bell {
    /// Remembers whom to wake.
    pub(crate) fn hear(&self, waker: &Waker) {
        let mut slot = self.0.borrow_mut();
        match slot.as_mut() {
            Some(old) => old.clone_from(waker),
            None => *slot = Some(waker.clone()),
        }
    }

    pub(crate) fn ring(&self) {
        if let Some(waker) = self.0.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }
}

/// Things that are going on.
#[derive(Debug)]
pub(crate) struct Register<T> {
    slots: RefCell<Slots<T>>,
}

#[derive(Debug)]
struct Slots<T> {
    items: Vec<Option<Rc<T>>>,
    free: Vec<usize>,
}

impl<T> Default for Register<T> {
    fn default() -> Self {
        Self {
            slots: RefCell::new(Slots {
                items: Vec::new(),
                free: Vec::new(),
            }),
        }
    }
}

impl<T> Register<T> {
    /// Enters something; it leaves when the entry is dropped.
    pub(crate) fn enter(self: &Rc<Self>, item: T) -> Entry<T> {
        let item = Rc::new(item);
        let mut slots = self.slots.borrow_mut();
        let kept = Some(Rc::clone(&item));
        let index = match slots.free.pop() {
            Some(index) => {
                slots.items[index] = kept;
                index
            }
            None => {
                slots.items.push(kept);
                slots.items.len() - 1
            }
        };
        Entry {
            register: Rc::clone(self),
            index,
            item,
        }
    }

    /// Looks at each. `look` may wake tasks, but neither enter nor leave.
    pub(crate) fn each(&self, look: impl FnMut(&T)) {
        self.slots
            .borrow()
            .items
            .iter()
            .flatten()
            .map(Rc::as_ref)
            .for_each(look);
    }

    pub(crate) fn len(&self) -> usize {
        let slots = self.slots.borrow();
        slots.items.len() - slots.free.len()
    }
}

/// A place in a register.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    register: Rc<Register<T>>,
    index: usize,
    item: Rc<T>,
}

impl<T> Entry<T> {
    /// The thing itself, for parts of a request that need no place of their own.
    pub(crate) fn share(&self) -> Rc<T> {
        Rc::clone(&self.item)
    }
}

impl<T> Deref for Entry<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.item
    }
}

impl<T> Drop for Entry<T> {
    fn drop(&mut self) {
        let mut slots = self.register.slots.borrow_mut();
        slots.items[self.index] = None;
        slots.free.push(self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let register: Rc<Register<u8>> = Rc::default();
        let (first, second) = (register.enter(1), register.enter(2));
        drop(first);
        let third = register.enter(3);
        assert_eq!((register.len(), *second, *third), (2, 2, 3));
        let mut seen = Vec::new();
        register.each(|item| seen.push(*item));
        assert_eq!(seen, [3, 2]);
    }
}
