//! Bytes as a program against `stair.h`: which calls, in which order, with which arguments.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stair_fuzz::host::Host;
use stair_fuzz::silence;
use std::cell::RefCell;

thread_local! {
    static HOST: RefCell<Host> = RefCell::new(Host::new());
}

fuzz_target!(init: silence::keep_panics_readable(), |input: &[u8]| {
    HOST.with_borrow_mut(|host| host.run(input));
});
