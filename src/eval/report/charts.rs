//! The report's charts, as SVG texts to be put into the page.

use super::style::{GUIDE, INK, ON_BAR, series};
use crate::error::{Error, Result};
use crate::eval::Estimate;
use crate::eval::summary::Summary;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const WIDTH: u32 = 640;
const FONT: &str = "sans-serif";
const FONT_SIZE: u32 = 15;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// A horizontal bar for each system with its interval; `None` draws no bar.
///
/// # Errors
///
/// [`Error::Internal`] when the plotting library fails.
pub(super) fn bars(bars: &[(String, Option<Estimate>)]) -> Result<String> {
    let height = 60 + 38 * bars.len() as u32;
    drawn(height, |area| {
        let count = bars.len() as f64;
        let mut chart = ChartBuilder::on(&area)
            .margin_right(24)
            .x_label_area_size(30)
            .y_label_area_size(150)
            .build_cartesian_2d(0.0..100.0, count..0.0)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .y_labels(0)
            .light_line_style(TRANSPARENT)
            .bold_line_style(GUIDE.color())
            .axis_style(GUIDE.color())
            .x_labels(6)
            .x_label_formatter(&|x| format!("{x:.0} %"))
            .label_style(text())
            .draw()?;
        for (place, (name, estimate)) in bars.iter().enumerate() {
            let middle = place as f64 + 0.5;
            let left = text().pos(Pos::new(HPos::Right, VPos::Center));
            let at = chart.backend_coord(&(0.0, middle));
            area.draw(&Text::new(shortened(name), (at.0 - 8, at.1), left))?;
            let Some(Estimate {
                value, low, high, ..
            }) = estimate
            else {
                continue;
            };
            let [value, low, high] = [value, low, high].map(|v| 100.0 * v);
            let color = series(place).color();
            chart.draw_series([Rectangle::new(
                [(0.0, middle - 0.32), (value, middle + 0.32)],
                color.filled(),
            )])?;
            let line = INK.color().stroke_width(2);
            let ends = [low, high]
                .map(|x| PathElement::new(vec![(x, middle - 0.12), (x, middle + 0.12)], line));
            chart.draw_series(ends)?;
            chart.draw_series([PathElement::new(vec![(low, middle), (high, middle)], line)])?;
            // Beside the interval, or inside the bar where there is no room beside it.
            let (at, side, style) = match high > 88.0 {
                true => (low - 1.5, HPos::Right, on_bar()),
                false => (high + 1.5, HPos::Left, text()),
            };
            let style = style.pos(Pos::new(side, VPos::Center));
            chart.draw_series([Text::new(format!("{value:.1}"), (at, middle), style)])?;
        }
        Ok(())
    })
}

/// Recall@1 of each system by the number of training questions of the gold leaf.
///
/// # Errors
///
/// [`Error::Internal`] when the plotting library fails.
pub(super) fn by_training(systems: &[Summary]) -> Result<String> {
    let groups: Vec<String> = systems.first().map_or(Vec::new(), |system| {
        system
            .by_training
            .iter()
            .map(|group| group.label())
            .collect()
    });
    drawn(340, |area| {
        let last = groups.len() as f64 - 0.5;
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .x_label_area_size(34)
            .y_label_area_size(52)
            .build_cartesian_2d(-0.5..last, 0.0..100.0)?;
        percent_mesh(&mut chart)?;
        for (place, group) in groups.iter().enumerate() {
            let at = chart.backend_coord(&(place as f64, 0.0));
            let below = text().pos(Pos::new(HPos::Center, VPos::Top));
            area.draw(&Text::new(group.clone(), (at.0, at.1 + 8), below))?;
        }
        let spread = 0.5 / systems.len().max(1) as f64;
        for (place, system) in systems.iter().enumerate() {
            let color = series(place).color();
            let shift = (place as f64 - (systems.len() as f64 - 1.0) / 2.0) * spread;
            let points: Vec<(f64, Estimate)> = (0..)
                .zip(&system.by_training)
                .filter_map(|(i, group)| Some((f64::from(i) + shift, group.recall_at_1?)))
                .collect();
            let middle = |(x, e): &(f64, Estimate)| (*x, 100.0 * e.value);
            chart.draw_series([PathElement::new(
                points.iter().map(middle).collect::<Vec<_>>(),
                color.stroke_width(2),
            )])?;
            chart.draw_series(points.iter().map(|(x, e)| {
                let ends = vec![(*x, 100.0 * e.low), (*x, 100.0 * e.high)];
                PathElement::new(ends, color.stroke_width(1))
            }))?;
            chart.draw_series(
                points
                    .iter()
                    .map(|point| Circle::new(middle(point), 5, color.filled())),
            )?;
        }
        Ok(())
    })
}

/// How often answers of each confidence are right. The line through the corners is honesty.
///
/// # Errors
///
/// [`Error::Internal`] when the plotting library fails.
pub(super) fn calibration(systems: &[Summary]) -> Result<String> {
    drawn(340, |area| {
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .margin_right(30)
            .x_label_area_size(34)
            .y_label_area_size(52)
            .build_cartesian_2d(0.0..100.0, 0.0..100.0)?;
        percent_mesh(&mut chart)?;
        x_labels(&area, &chart, &[0.0, 20.0, 40.0, 60.0, 80.0, 100.0], |x| {
            format!("{x:.0} %")
        })?;
        let honest = vec![(0.0, 0.0), (100.0, 100.0)];
        chart.draw_series([PathElement::new(honest, INK.color().stroke_width(1))])?;
        for (place, system) in systems.iter().enumerate() {
            let Some(calibration) = &system.calibration else {
                continue;
            };
            let color = series(place).color();
            let bins = calibration.bins.iter().filter(|bin| bin.questions > 0);
            let points: Vec<(f64, f64)> = bins
                .map(|bin| (100.0 * bin.confidence, 100.0 * bin.accuracy))
                .collect();
            chart.draw_series([PathElement::new(points.clone(), color.stroke_width(2))])?;
            chart.draw_series(
                points
                    .into_iter()
                    .map(|point| Circle::new(point, 5, color.filled())),
            )?;
        }
        Ok(())
    })
}

/// Which fraction of the questions each system has answered after which time. `seconds` is a list
/// for each system, ascending.
///
/// # Errors
///
/// [`Error::Internal`] when the plotting library fails.
pub(super) fn latency(seconds: &[Vec<f64>]) -> Result<String> {
    // A day is more than any answer takes; what a file says beyond is drawn there.
    let milliseconds = |s: &f64| (1e3 * s).clamp(1e-3, 86_400e3);
    let all = || seconds.iter().flatten().map(milliseconds);
    // Whole powers of ten, as axis and grid have them.
    let from = all().fold(f64::INFINITY, f64::min).log10().floor();
    let to = all().fold(0.0, f64::max).log10().ceil().max(from + 1.0);
    drawn(340, |area| {
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .margin_right(24)
            .x_label_area_size(34)
            .y_label_area_size(52)
            .build_cartesian_2d(from..to, 0.0..100.0)?;
        percent_mesh(&mut chart)?;
        let powers: Vec<f64> = (from as i32..=to as i32).map(f64::from).collect();
        x_labels(&area, &chart, &powers, |power| duration(10f64.powf(power)))?;
        for (place, seconds) in seconds.iter().enumerate() {
            let step = 100.0 / seconds.len().max(1) as f64;
            let mut steps = Vec::with_capacity(2 * seconds.len());
            for (i, second) in seconds.iter().enumerate() {
                let x = milliseconds(second).log10();
                steps.push((x, step * i as f64));
                steps.push((x, step * (i + 1) as f64));
            }
            let line = series(place).color().stroke_width(2);
            chart.draw_series([PathElement::new(steps, line)])?;
        }
        Ok(())
    })
}

type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

/// Percent upwards; the horizontal axis is labelled by the caller.
fn percent_mesh(chart: &mut Chart<'_, '_>) -> Drawn {
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_labels(6)
        .y_label_formatter(&|y| format!("{y:.0} %"))
        .light_line_style(TRANSPARENT)
        .bold_line_style(GUIDE.color())
        .axis_style(GUIDE.color())
        .label_style(text())
        .draw()?;
    Ok(())
}

fn x_labels(
    area: &Area<'_>,
    chart: &Chart<'_, '_>,
    at: &[f64],
    label: impl Fn(f64) -> String,
) -> Drawn {
    for x in at {
        let (column, row) = chart.backend_coord(&(*x, 0.0));
        let below = text().pos(Pos::new(HPos::Center, VPos::Top));
        area.draw(&Text::new(label(*x), (column, row + 8), below))?;
    }
    Ok(())
}

fn text() -> TextStyle<'static> {
    TextStyle {
        font: (FONT, FONT_SIZE).into_font(),
        color: INK.color().to_backend_color(),
        pos: Pos::default(),
    }
}

fn on_bar() -> TextStyle<'static> {
    TextStyle {
        color: ON_BAR.color().to_backend_color(),
        ..text()
    }
}

/// Names are the files' own and may be long.
fn shortened(name: &str) -> String {
    match name.chars().count() > 18 {
        true => name.chars().take(17).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

fn duration(milliseconds: f64) -> String {
    match milliseconds {
        ms if ms >= 1e3 => format!("{} s", ms / 1e3),
        ms if ms >= 1.0 => format!("{ms} ms"),
        ms => format!("{:.0} µs", 1e3 * ms),
    }
}

fn drawn(height: u32, draw: impl FnOnce(Area<'_>) -> Drawn) -> Result<String> {
    let mut svg = String::new();
    let backend = SVGBackend::with_string(&mut svg, (WIDTH, height));
    draw(backend.into_drawing_area())
        .map_err(|error| Error::Internal(format!("a chart cannot be drawn: {error}")))?;
    Ok(svg)
}
