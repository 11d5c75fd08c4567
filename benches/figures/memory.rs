//! Memory of this process, as the kernel counts it.

use crate::report::Anything;

/// Bytes in memory that no file backs.
pub fn anonymous() -> Anything<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kilobytes.ok_or("no RssAnon")?.trim().parse::<f64>()? * 1024.0)
}
