//! How the threads that compute wait for each other.
//!
//! At each step of a decode they meet at a barrier of libgomp's, and who is there first turns on the spot,
//! 300,000 times by default, before it sleeps. On a machine of its own it never comes to that. Where others
//! want the same processors, the thread that it waits for is not running, and the turning takes the time
//! that this one needs to run. `benches/pair.sh` prints what that costs two commands side by side.
//!
//! So the command turns less. libgomp reads the number when it is loaded, which is before `main`, and has
//! no call for it; the way to set it is to begin anew. That costs the start of a process, some
//! milliseconds. A library cannot do that to its host: docs/abi.md tells hosts what to set.

/// Turns before a thread sleeps, some 50 microseconds. Fewer are better still where others compute, and
/// cost too much where nobody does.
#[cfg(all(target_os = "linux", feature = "portable"))]
const TURNS: &str = "1000";

/// Begins anew with fewer turns, unless the user has said how threads wait. Call it before anything else is
/// done.
#[cfg(all(target_os = "linux", feature = "portable"))]
pub fn shorten() {
    use std::env;
    use std::os::unix::process::CommandExt;

    const NAME: &str = "GOMP_SPINCOUNT";
    if env::var_os(NAME).is_some() || env::var_os("OMP_WAIT_POLICY").is_some() {
        return;
    }
    let mut args = env::args_os();
    if let (Ok(program), Some(name)) = (env::current_exe(), args.next()) {
        // Started by way of the loader or an emulator, that one is the program, and takes other arguments.
        if program.file_name() != std::path::Path::new(&name).file_name() {
            return;
        }
        let mut again = std::process::Command::new(program);
        // It comes back only when it fails, and then a slow answer is better than none.
        let _ = again.arg0(name).args(args).env(NAME, TURNS).exec();
    }
}

/// Elsewhere nothing spins so.
#[cfg(not(all(target_os = "linux", feature = "portable")))]
pub fn shorten() {}
