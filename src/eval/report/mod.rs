//! One page, in one file, for whoever decides between systems: figures with their intervals,
//! whether they differ by more than chance, and the mistakes worth reading.
//!
//! It needs nothing from outside: charts are SVG in the page, and there is no script.

mod charts;
mod confusions;
mod style;

use super::Estimate;
use super::compare::{Comparison, Pair, compare_all};
use super::predictions::{PredictedHit, Prediction};
use super::randomization::Difference;
use super::summary::Summary;
use crate::error::Result;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::collections::BTreeSet;

/// p-values below this are set in bold.
const SIGNIFICANT: f64 = 0.05;

/// Hits of a mistake that are shown.
const HITS: usize = 3;

/// The page about `systems`, each a file's name and its predictions. `title` is its heading.
///
/// # Errors
///
/// Those of [`compare_all`]; [`Error::Internal`](crate::Error::Internal) when a chart cannot be
/// drawn.
pub fn page(title: &str, systems: &[(String, Vec<Prediction>)]) -> Result<String> {
    let comparison = compare_all(systems)?;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(style::sheet())) }
            }
            body {
                h1 { (title) }
                (questions(systems, &comparison))
                (verdict(&comparison))
                (rankings(&comparison)?)
                (pairs(&comparison.pairs))
                (training(&comparison)?)
                (confidence(&comparison)?)
                (latency(systems, &comparison)?)
                (all_figures(&comparison.systems))
                (mistakes(systems))
            }
        }
    };
    Ok(page.into_string())
}

fn questions(systems: &[(String, Vec<Prediction>)], comparison: &Comparison) -> Markup {
    let splits: BTreeSet<&str> = systems
        .iter()
        .flat_map(|(_, predictions)| predictions)
        .map(|prediction| prediction.split.as_str())
        .collect();
    let splits: Vec<&str> = splits.into_iter().collect();
    let Some(counts) = comparison.systems.first().map(|system| system.counts) else {
        return html! {};
    };
    html! {
        p.quiet {
            (counts.questions) " questions of the split " (splits.join(", ")) ": "
            (counts.answerable) " that a section answers, "
            (counts.orphans) " whose section is not in the index, "
            (counts.unanswerable) " that no section answers. "
            "Intervals are 95 % (bootstrap over questions)."
        }
    }
}

/// What the figures come to, in a sentence.
fn verdict(comparison: &Comparison) -> Markup {
    let mut ranked: Vec<(&Summary, f64)> = comparison
        .systems
        .iter()
        .filter_map(|system| Some((system, system.answerable.as_ref()?.recall_at_1.value)))
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    let [(best, value), rest @ ..] = &ranked[..] else {
        return html! { p { "No question is answered by a section, so there is nothing to rank." } };
    };
    let tested = |other: &Summary| {
        comparison.pairs.iter().find(|pair| {
            let names = [&pair.a, &pair.b];
            names.contains(&&best.system) && names.contains(&&other.system)
        })
    };
    html! {
        p {
            b { (best.system) } " has the right section first for " b { (percent(*value)) " %" }
            " of the questions"
            @if let Some((next, _)) = rest.first() {
                @if let Some(pair) = tested(next) {
                    ", " (points(pair.recall_at_1.difference.abs())) " points more than "
                    (next.system) " (" (p_value(pair.recall_at_1.p)) "): "
                    @if pair.recall_at_1.p < SIGNIFICANT { "more than chance gives." }
                    @else { "no more than chance may give." }
                }
            } @else { "." }
        }
    }
}

fn rankings(comparison: &Comparison) -> Result<Markup> {
    let bars = |figure: fn(&Summary) -> Option<Estimate>| {
        let bars: Vec<(String, Option<Estimate>)> = comparison
            .systems
            .iter()
            .map(|s| (s.system.clone(), figure(s)))
            .collect();
        charts::bars(&bars)
    };
    let first = bars(|system| Some(system.answerable.as_ref()?.recall_at_1))?;
    let third = bars(|system| Some(system.answerable.as_ref()?.recall_at_3))?;
    Ok(html! {
        h2 { "How often the right section is found" }
        div.charts {
            (figure("First (Recall@1)", &first, "The right section is the first one."))
            (figure("Among the first three (Recall@3)", &third, "It is one of the first three."))
        }
    })
}

fn pairs(pairs: &[Pair]) -> Markup {
    html! {
        @if !pairs.is_empty() {
            h2 { "Whether they differ by more than chance" }
            p.quiet {
                "Paired randomization test, two-sided, 10,000 permutations, over the questions that a \
                 section answers. +a/-b: the first system is better at a questions, the second at b. \
                 Bold: p below 0.05, not corrected for the number of pairs."
            }
            div.wide { table {
                tr { th { "Systems" } th { "Recall@1" } th { "Recall@3" } th { "nDCG@3" } }
                @for pair in pairs {
                    tr {
                        td { (pair.a) " – " (pair.b) }
                        @for difference in [&pair.recall_at_1, &pair.recall_at_3, &pair.ndcg_at_3] {
                            (tested(difference))
                        }
                    }
                }
            } }
        }
    }
}

fn tested(difference: &Difference) -> Markup {
    let text = format!(
        "{:+.1}, {}, +{}/-{}",
        100.0 * difference.difference,
        p_value(difference.p),
        difference.better,
        difference.worse
    );
    html! {
        td.figure {
            @if difference.p < SIGNIFICANT { b { (text) } } @else { (text) }
        }
    }
}

fn training(comparison: &Comparison) -> Result<Markup> {
    let drawn = charts::by_training(&comparison.systems)?;
    Ok(html! {
        h2 { "By training questions of the section" }
        (legend(&comparison.systems))
        div.charts {
            (figure("Recall@1 by number of training questions", &drawn,
                "By how many questions about the section stand in the training split of the file that was asked. A model may have learnt from more."))
        }
    })
}

fn confidence(comparison: &Comparison) -> Result<Markup> {
    if comparison
        .systems
        .iter()
        .all(|system| system.calibration.is_none())
    {
        return Ok(html! {});
    }
    let drawn = charts::calibration(&comparison.systems)?;
    Ok(html! {
        h2 { "Whether its confidence can be believed" }
        (legend(&comparison.systems))
        div.charts {
            (figure("How often it is right, by confidence", &drawn,
                "Rightwards the probability that the model gave to its first section, upwards how \
                 often that was right. On the line from corner to corner both agree; below it the \
                 model is too sure of itself."))
        }
    })
}

fn latency(systems: &[(String, Vec<Prediction>)], comparison: &Comparison) -> Result<Markup> {
    let seconds: Vec<Vec<f64>> = systems
        .iter()
        .map(|(_, predictions)| {
            let mut seconds: Vec<f64> = predictions.iter().filter_map(|p| p.seconds).collect();
            seconds.sort_by(f64::total_cmp);
            seconds
        })
        .collect();
    if seconds.iter().all(Vec::is_empty) {
        return Ok(html! {});
    }
    let drawn = charts::latency(&seconds)?;
    Ok(html! {
        h2 { "How long an answer takes" }
        (legend(&comparison.systems))
        div.charts {
            (figure("Questions answered after a time", &drawn,
                "One question at a time, on the machine that made the predictions."))
        }
    })
}

fn figure(heading: &str, svg: &str, caption: &str) -> Markup {
    html! {
        figure role="img" aria-label=(heading) {
            h3 { (heading) }
            (PreEscaped(svg))
            figcaption { (caption) }
        }
    }
}

fn legend(systems: &[Summary]) -> Markup {
    html! {
        ul.legend {
            @for (place, system) in systems.iter().enumerate() {
                li {
                    span.swatch style={ "background: var(" (style::variable(place)) ")" } {}
                    (system.system)
                }
            }
        }
    }
}

/// A row of the table of all figures: a label, and the figure with its unit for each system.
type Row = (
    &'static str,
    fn(&Summary) -> Option<Estimate>,
    fn(f64) -> String,
);

const ROWS: [Row; 13] = [
    (
        "Recall@1, %",
        |s| Some(s.answerable.as_ref()?.recall_at_1),
        percent,
    ),
    (
        "Recall@3, %",
        |s| Some(s.answerable.as_ref()?.recall_at_3),
        percent,
    ),
    (
        "nDCG@3, %",
        |s| Some(s.answerable.as_ref()?.ndcg_at_3),
        percent,
    ),
    ("MRR, %", |s| Some(s.answerable.as_ref()?.mrr), percent),
    (
        "Recall@1 with orphans as misses, %",
        |s| Some(s.all.as_ref()?.recall_at_1),
        percent,
    ),
    (
        "Named a section that does not exist, %",
        |s| s.hallucination,
        percent,
    ),
    (
        "ln p(gold), median",
        |s| Some(s.gold.as_ref()?.median),
        plain,
    ),
    (
        "Calibration error, %",
        |s| Some(s.calibration.as_ref()?.ece),
        percent,
    ),
    (
        "Unanswerable questions refused, %",
        |s| s.refusal.as_ref()?.unanswerable,
        percent,
    ),
    (
        "Answerable questions refused, %",
        |s| s.refusal.as_ref()?.answerable,
        percent,
    ),
    ("Time, median", |s| Some(s.latency.as_ref()?.p50), time),
    ("Time, 95 % below", |s| Some(s.latency.as_ref()?.p95), time),
    ("Tokens a question", |s| s.tokens, plain),
];

fn all_figures(systems: &[Summary]) -> Markup {
    html! {
        h2 { "All figures" }
        div.wide { table {
            tr { th {} @for system in systems { th { (system.system) } } }
            @for (label, figure, unit) in ROWS {
                @if systems.iter().any(|system| figure(system).is_some()) {
                    tr {
                        td { (label) }
                        @for system in systems {
                            td.figure { (with_interval(figure(system), unit)) }
                        }
                    }
                }
            }
        } }
    }
}

fn with_interval(estimate: Option<Estimate>, unit: fn(f64) -> String) -> Markup {
    html! {
        @if let Some(Estimate { value, low, high, .. }) = estimate {
            (unit(value)) " " span.quiet { (unit(low)) " to " (unit(high)) }
        } @else { "–" }
    }
}

fn mistakes(systems: &[(String, Vec<Prediction>)]) -> Markup {
    html! {
        h2 { "Mistakes worth reading" }
        p.quiet {
            "Of each system the wrong answers that it was surest of, at most "
            (confusions::SHOWN) ". Scores are the system's own; probabilities in brackets."
        }
        @for (_, predictions) in systems {
            @let name = predictions.first().map_or("", |prediction| &prediction.system);
            @let wrong = confusions::wrong(predictions);
            @let unfounded = confusions::unfounded(predictions);
            @if !wrong.is_empty() {
                details {
                    summary { (name) ": wrong sections (" (wrong.len()) ")" }
                    (answers(&wrong))
                }
            }
            @if !unfounded.is_empty() {
                details {
                    summary { (name) ": answers where no section answers (" (unfounded.len()) ")" }
                    (answers(&unfounded))
                }
            }
        }
    }
}

fn answers(predictions: &[&Prediction]) -> Markup {
    html! {
        div.wide { table {
            tr { th { "Question" } th { "Right" } th { "Answered" } }
            @for prediction in predictions {
                tr {
                    td { (prediction.query) div.quiet { (prediction.id) } }
                    td { (prediction.gold_identifier.as_deref().unwrap_or("no section")) }
                    td { ol.hits {
                        @for hit in prediction.hits.iter().take(HITS) { li { (answered(hit)) } }
                    } }
                }
            }
        } }
    }
}

fn answered(hit: &PredictedHit) -> Markup {
    html! {
        (hit.identifier) " "
        span.quiet {
            (plain(hit.score))
            @if let Some(log_prob) = hit.log_prob { " (" (percent(log_prob.exp())) " %)" }
        }
    }
}

fn percent(value: f64) -> String {
    format!("{:.1}", 100.0 * value)
}

fn points(value: f64) -> String {
    percent(value)
}

fn plain(value: f64) -> String {
    format!("{value:.2}")
}

fn time(seconds: f64) -> String {
    match 1e3 * seconds {
        ms if ms >= 1e3 => format!("{seconds:.2} s"),
        ms if ms >= 10.0 => format!("{ms:.0} ms"),
        ms => format!("{ms:.2} ms"),
    }
}

fn p_value(p: f64) -> String {
    match p < 0.001 {
        true => "p < 0.001".to_owned(),
        false => format!("p = {p:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::predictions::tests::prediction;
    use super::*;

    fn system(name: &str, right: u32) -> (String, Vec<Prediction>) {
        let predictions = (0..20)
            .map(|i| {
                let gold = (i < 18).then_some(4);
                let hits: &[u32] = if i < right { &[4, 1] } else { &[1, 4] };
                let mut prediction = prediction(&i.to_string(), gold, hits);
                prediction.system = name.to_owned();
                prediction.query = "Is 1 < 2 & \"so\" <script>alert(1)</script>?".to_owned();
                prediction
            })
            .collect();
        (format!("{name}.jsonl"), predictions)
    }

    #[test]
    fn the_page_stands_alone_and_escapes_what_it_quotes() {
        let page = page("A & B", &[system("<b>stair</b>", 15), system("bm25", 9)]).expect("draws");
        assert!(page.starts_with("<!DOCTYPE html>"));
        for foreign in ["<script", "<b>stair", "src=", "href=", "@import", "url("] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        assert!(page.contains("&lt;b&gt;stair&lt;/b&gt;"));
        assert!(page.contains("A &amp; B"));
        assert_eq!(page.matches("<svg").count(), 5);
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
        assert!(!page.contains("NaN"));
    }

    #[test]
    fn a_page_of_one_system_without_times_or_probabilities_is_drawn_too() {
        let (file, mut predictions) = system("other", 3);
        for prediction in &mut predictions {
            prediction.seconds = None;
            prediction
                .hits
                .iter_mut()
                .for_each(|hit| hit.log_prob = None);
        }
        let page = page("One", &[(file, predictions)]).expect("draws");
        assert_eq!(page.matches("<svg").count(), 3);
        assert!(!page.contains("by more than chance"));
    }
}
