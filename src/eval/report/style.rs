//! The report's colours and style sheet, for light and for dark screens.
//!
//! Charts are drawn in the light colours. For a dark screen the style sheet maps each of them to its
//! dark counterpart, so the drawings need no colours of their own for it, and a program that knows
//! no style sheets still shows them right.

use plotters::style::RGBColor;
use std::fmt::Write as _;

/// A colour on a light screen and its counterpart on a dark one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tone {
    pub light: (u8, u8, u8),
    dark: (u8, u8, u8),
}

/// Text and axes.
pub(super) const INK: Tone = Tone {
    light: (0x1F, 0x24, 0x28),
    dark: (0xE6, 0xE8, 0xEA),
};

/// Lines that only guide the eye.
pub(super) const GUIDE: Tone = Tone {
    light: (0xD9, 0xDC, 0xDF),
    dark: (0x3A, 0x3F, 0x45),
};

/// Text on a bar.
pub(super) const ON_BAR: Tone = Tone {
    light: (0xFF, 0xFF, 0xFF),
    dark: (0x15, 0x18, 0x1B),
};

/// One for each system, in the order of the files; distinct to colour-blind eyes too (after Okabe
/// and Ito).
const SERIES: [Tone; 7] = [
    Tone {
        light: (0x00, 0x6B, 0xA6),
        dark: (0x5B, 0xB5, 0xEE),
    },
    Tone {
        light: (0xC9, 0x50, 0x00),
        dark: (0xFF, 0x96, 0x4F),
    },
    Tone {
        light: (0x00, 0x85, 0x60),
        dark: (0x3A, 0xCF, 0xA2),
    },
    Tone {
        light: (0xA8, 0x4E, 0x82),
        dark: (0xEF, 0xA2, 0xCF),
    },
    Tone {
        light: (0x8A, 0x6A, 0x00),
        dark: (0xE9, 0xC7, 0x4B),
    },
    Tone {
        light: (0x5A, 0x4F, 0xC0),
        dark: (0xB1, 0xA8, 0xFF),
    },
    Tone {
        light: (0x5F, 0x66, 0x6D),
        dark: (0xB4, 0xBA, 0xC0),
    },
];

/// The colour of the system at `place`.
pub(super) fn series(place: usize) -> Tone {
    SERIES[place % SERIES.len()]
}

impl Tone {
    /// For drawing.
    pub fn color(self) -> RGBColor {
        let (r, g, b) = self.light;
        RGBColor(r, g, b)
    }

    fn light_hex(self) -> String {
        hex(self.light)
    }
}

/// Name of the style sheet's variable with the colour of the system at `place`.
pub(super) fn variable(place: usize) -> String {
    format!("--series-{}", place % SERIES.len())
}

fn hex((r, g, b): (u8, u8, u8)) -> String {
    // As plotters writes it: the style sheet looks for this text.
    format!("#{r:02X}{g:02X}{b:02X}")
}

/// The whole style sheet.
pub(super) fn sheet() -> String {
    let mut light = String::new();
    let mut dark = String::new();
    // Writing to a String cannot fail.
    for (place, tone) in SERIES.iter().enumerate() {
        let _ = writeln!(light, "{}: {};", variable(place), tone.light_hex());
        let _ = writeln!(dark, "{}: {};", variable(place), hex(tone.dark));
    }
    let mut drawn = String::new();
    for tone in SERIES.iter().chain([&INK, &GUIDE, &ON_BAR]) {
        let (from, to) = (tone.light_hex(), hex(tone.dark));
        let _ = writeln!(drawn, "svg [fill=\"{from}\"] {{ fill: {to}; }}");
        let _ = writeln!(drawn, "svg [stroke=\"{from}\"] {{ stroke: {to}; }}");
    }
    format!(
        ":root {{\ncolor-scheme: light dark;\n--ink: {ink};\n--guide: {guide};\n--page: #FFFFFF;\n\
         --quiet: #59626B;\n{light}}}\n{RULES}\n@media (prefers-color-scheme: dark) {{\n:root {{\n\
         --ink: {dark_ink};\n--guide: {dark_guide};\n--page: #15181B;\n--quiet: #A3ABB3;\n{dark}}}\n\
         {drawn}}}\n",
        ink = INK.light_hex(),
        guide = GUIDE.light_hex(),
        dark_ink = hex(INK.dark),
        dark_guide = hex(GUIDE.dark),
    )
}

const RULES: &str = "\
body { margin: 0 auto; padding: 1.5rem 1.25rem 4rem; max-width: 68rem; background: var(--page);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0 0 .25rem; }
p { margin: .25rem 0 .75rem; max-width: 48rem; }
.quiet { color: var(--quiet); font-size: .9rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr));
  gap: 1.5rem 2rem; }
figure { margin: 0; max-width: 42rem; }
figcaption { color: var(--quiet); font-size: .9rem; }
svg { width: 100%; height: auto; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .5rem 0 1rem; padding: 0;
  list-style: none; }
.swatch { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .4em; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .9rem .3rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--guide); }
th { font-weight: 600; white-space: nowrap; }
td.figure { white-space: nowrap; }
details { margin: .5rem 0; }
summary { cursor: pointer; font-weight: 600; }
ol.hits { margin: 0; padding-left: 1.2rem; }";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drawn_colour_has_a_dark_counterpart() {
        let sheet = sheet();
        for place in 0..SERIES.len() + 2 {
            let rule = format!("svg [fill=\"{}\"] {{", series(place).light_hex());
            assert!(sheet.contains(&rule), "{rule}");
        }
        assert_eq!(sheet.matches('{').count(), sheet.matches('}').count());
    }
}
