//! Names of tasks and resources, short and escaped, and short numbers.

use lockwright_model::ResourceId;
use std::fmt::{self, Display, Formatter};

/// The name, cut to at most `most` characters.
pub fn short(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most - 1).chain(['…']).collect()
}

/// The letter of a resource, by its order in the picture. From the twenty-seventh on, all have `*`.
pub fn letter(resource: ResourceId, resources: &[ResourceId]) -> char {
    let place = resources.iter().position(|&other| other == resource).and_then(|place| u8::try_from(place).ok());
    place.filter(|&place| place < 26).map_or('*', |place| char::from(b'a' + place))
}

/// Escapes text for use between tags and in attributes. Characters that XML does not allow are replaced.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            sign if sign.is_control() || matches!(sign, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            sign => out.push(sign),
        }
    }
    out
}

/// A position or a length in a picture, with at most one decimal.
#[derive(Clone, Copy)]
pub struct Px(pub f64);

impl Display for Px {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = format!("{:.1}", self.0);
        f.write_str(match text.strip_suffix(".0").unwrap_or(&text) {
            "-0" => "0",
            text => text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_short() {
        let texts = [0.04, -0.04, 12.0, 12.25, -3.5, 0.6].map(|at| Px(at).to_string());
        assert_eq!(texts, ["0", "0", "12", "12.2", "-3.5", "0.6"]);
    }
}
