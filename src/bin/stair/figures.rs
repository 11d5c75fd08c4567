//! Figures of an evaluation as text.

use stair::eval::Estimate;
use stair::eval::summary::{Ranking, Refusal, Summary};
use std::fmt::Write as _;

/// All figures of one system.
pub fn table(summary: &Summary) -> String {
    let counts = summary.counts;
    let mut out = format!(
        "{}: {} questions; {} that a leaf answers, {} orphans ({:.1} %), {} that no section \
         answers{}\n",
        summary.system,
        counts.questions,
        counts.answerable,
        counts.orphans,
        100.0 * counts.orphans as f64 / counts.questions.max(1) as f64,
        counts.unanswerable,
        match counts.failed {
            0 => String::new(),
            failed => format!("; {failed} refused as questions, counted as misses"),
        }
    );
    if let Some(ranking) = &summary.answerable {
        ranks(&mut out, "answerable", ranking, summary.hits);
    }
    if let Some(ranking) = &summary.all
        && counts.orphans > 0
    {
        ranks(&mut out, "with orphans", ranking, summary.hits);
    }
    line(&mut out, "hallucination %", &summary.hallucination, percent);
    if let Some(gold) = &summary.gold {
        let label = format!("ln p(gold), mean, known for {:.0} %", 100.0 * gold.coverage);
        line(&mut out, &label, &Some(gold.mean), plain);
        line(&mut out, "ln p(gold), median", &Some(gold.median), plain);
    }
    if let Some(calibration) = &summary.calibration {
        line(
            &mut out,
            "calibration error (ECE) %",
            &Some(calibration.ece),
            percent,
        );
    }
    if let Some(Refusal {
        unanswerable,
        answerable,
    }) = &summary.refusal
    {
        line(
            &mut out,
            "refused % of the unanswerable",
            unanswerable,
            percent,
        );
        line(&mut out, "refused % of the answerable", answerable, percent);
    }
    if let Some(latency) = &summary.latency {
        line(
            &mut out,
            "latency ms, p50",
            &Some(latency.p50),
            milliseconds,
        );
        line(
            &mut out,
            "latency ms, p95",
            &Some(latency.p95),
            milliseconds,
        );
    }
    line(&mut out, "decodes a question", &summary.decodes, plain);
    line(&mut out, "tokens a question", &summary.tokens, plain);
    for group in &summary.by_training {
        let label = format!("Recall@1 %, {} training questions", group.label());
        line(&mut out, &label, &group.recall_at_1, percent);
    }
    out
}

fn ranks(out: &mut String, over: &str, ranking: &Ranking, hits: usize) {
    line(
        out,
        &format!("Recall@1 %, {over}"),
        &Some(ranking.recall_at_1),
        percent,
    );
    line(
        out,
        &format!("Recall@3 %, {over}"),
        &Some(ranking.recall_at_3),
        percent,
    );
    line(
        out,
        &format!("nDCG@3 %, {over}"),
        &Some(ranking.ndcg_at_3),
        percent,
    );
    line(
        out,
        &format!("MRR@{hits} %, {over}"),
        &Some(ranking.mrr),
        percent,
    );
}

fn line(out: &mut String, label: &str, estimate: &Option<Estimate>, unit: fn(f64) -> String) {
    if let Some(Estimate {
        value,
        low,
        high,
        questions,
    }) = estimate
    {
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "  {label:<36} {:>8}   {} to {}   n {questions}",
            unit(*value),
            unit(*low),
            unit(*high)
        );
    }
}

/// A fraction in percent.
pub fn percent(value: f64) -> String {
    format!("{:.1}", 100.0 * value)
}

fn plain(value: f64) -> String {
    format!("{value:.2}")
}

fn milliseconds(seconds: f64) -> String {
    match 1e3 * seconds {
        ms if ms < 10.0 => format!("{ms:.2}"),
        ms => format!("{ms:.0}"),
    }
}
