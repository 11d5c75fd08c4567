//! What was measured: a table for people, JSON for programs.

use serde_json::{Map, Value};
use std::error::Error;
use std::path::Path;

/// The end of a measurement that may fail for any reason.
pub type Anything<T = ()> = Result<T, Box<dyn Error>>;

/// All figures so far.
#[derive(Default)]
pub struct Report(Vec<Figure>);

struct Figure {
    name: &'static str,
    value: f64,
    goal: String,
    reached: bool,
}

impl Report {
    /// A figure that should be at most `goal`.
    pub fn at_most(&mut self, name: &'static str, value: f64, goal: f64) {
        self.add(name, value, format!("<= {goal}"), value <= goal);
    }

    /// A figure that should be at least `goal`.
    pub fn at_least(&mut self, name: &'static str, value: f64, goal: f64) {
        self.add(name, value, format!(">= {goal}"), value >= goal);
    }

    /// A figure with another kind of goal.
    pub fn add(&mut self, name: &'static str, value: f64, goal: String, reached: bool) {
        self.0.push(Figure {
            name,
            value,
            goal,
            reached,
        });
    }

    /// Prints something beside the figures, at once.
    pub fn note(&self, text: impl AsRef<str>) {
        println!("{}", text.as_ref());
    }

    pub fn print(&self) {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        println!("\n{:<30} {:>12}   goal", "figure", "value");
        for figure in &self.0 {
            let verdict = if figure.reached { "" } else { "   MISSED" };
            let (name, goal) = (figure.name, &figure.goal);
            println!("{name:<30} {:>12.4}   {goal}{verdict}", figure.value);
        }
        println!("load average at the end: {}", load.trim());
    }

    /// Writes one object of name to number.
    pub fn write(&self, path: &Path) -> Anything {
        let object: Map<String, Value> = self
            .0
            .iter()
            .map(|figure| (figure.name.to_owned(), figure.value.into()))
            .collect();
        let text = serde_json::to_string_pretty(&Value::Object(object))?;
        stair::files::write_atomically(path, format!("{text}\n").as_bytes())?;
        println!("written to {}", path.display());
        Ok(())
    }
}

/// The middle one of `values`, or the mean of the two in the middle.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[half],
        _ => (values[half - 1] + values[half]) / 2.0,
    }
}
