//! The common parts of all pictures: the element around them, their style, and their ids.

use crate::label::{escaped, short};
use std::fmt::{Arguments, Write};

/// Where a picture stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place<'a> {
    /// In a file of its own, which contains its style.
    File,
    /// In a page, which contains [`STYLE`]. All ids in the picture begin with this word, which only one picture has.
    Page(&'a str),
}

/// The style of all pictures: the light one, and the differences of the dark one, which is for screens only. It uses no
/// variables, because some renderers do not support them.
pub const STYLE: &str = "\
.picture{background:#ffffff}.picture text{font:14px system-ui,sans-serif;fill:#1a1a1a}.picture .small,.picture .legend text{font-size:12px}.picture .tiny,.picture .tiny text{font-size:10px}\
.picture .title{font-size:17px;font-weight:600}.picture .faint,.picture .faint text,.picture .ticks text{fill:#5c5c5c;font-weight:400}.picture .ticks text{font-size:12px;text-anchor:middle}.picture .grid{stroke:#d8d8d8}\
.picture .mark{stroke:#1a1a1a;stroke-width:1.6;fill:none}.hatch{stroke:#6a6a6a;stroke-width:1.4;fill:none}\
.dot{fill:#6a6a6a}.again{stroke:#1a1a1a;stroke-width:1.6;fill:none}.undone{pointer-events:none}.picture .late{stroke:#c00000;stroke-width:2.4;fill:none}.picture text.late{fill:#b00000;stroke:none}.run{fill:#b9c4cf}\
.picture .step{stroke:#7a1fa2;stroke-width:1.6;fill:none}.picture text.letter{font-size:12px;font-weight:600;text-anchor:middle;fill:#1a1a1a}\
.picture text.light{fill:#ffffff}.bounds text{font-size:13px}.bounds .title{font-size:15px}.bounds .task{font-weight:600}.bounds text.letter{font-size:11px}\
.picture .deadline,.picture .cut{stroke:#1a1a1a;stroke-width:2;fill:none}.picture .open{fill:none;stroke:#5c5c5c;stroke-dasharray:4 3}\
.picture .bound{stroke:#0072b2;stroke-width:2;fill:none;stroke-dasharray:5 2}.picture .seen{stroke:#a34700;stroke-width:2;fill:none}.picture .bin{fill:#d58a4e}\
.run,.waits,.spins,.blocked,.r0,.r1,.r2,.r3,.r4,.r5,.c0,.c1,.c2,.c3,.c4,.c5,.c6{stroke:#1a1a1a;stroke-width:.7}.several{stroke-width:1;stroke-dasharray:2 2}.ready.several{stroke:#7a7a7a}\
.ready{fill:url(#h-ready)}.waits{fill:url(#h-waits)}.spins{fill:url(#h-spins)}.blocked{fill:url(#h-blocked)}.undone{fill:url(#h-undone)}\
.r0{fill:#0072b2}.r1{fill:#d55e00}.r2{fill:#009e73}.r3{fill:#cc79a7}.r4{fill:#56b4e9}.r5{fill:#e69f00}\
.c0{fill:#56b4e9}.c1{fill:#2fb58d}.c2{fill:#c4c4c4}.c3{fill:#e69f00}.c4{fill:#d55e00}.c5{fill:#cc79a7}.c6{fill:#f0e442}\
@media screen and (prefers-color-scheme:dark){.picture{background:#16181a}.picture text{fill:#ececec}.picture .faint,.picture .faint text,.picture .ticks text{fill:#a8a8a8}.picture .grid{stroke:#3c3c3c}\
.picture .mark,.picture .deadline,.picture .cut{stroke:#ececec}.hatch{stroke:#a0a0a0}.dot{fill:#a0a0a0}.picture .late{stroke:#ff6b6b}\
.picture text.late{fill:#ff8080}.run{fill:#8494a3}.picture .step{stroke:#d7a1f0}.picture .open{stroke:#a8a8a8}\
.picture .bound{stroke:#56b4e9}.picture .seen{stroke:#e69f00}}";

/// The patterns of the states in which a task does not execute, and of execution that is undone. A page has them once.
pub const PATTERNS: &str = "\
<defs><pattern id=\"h-ready\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><circle class=\"dot\" cx=\"3\" cy=\"3\" r=\"1\"/></pattern>\
<pattern id=\"h-waits\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><path class=\"hatch\" d=\"M0 0V7\"/></pattern>\
<pattern id=\"h-blocked\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(-45)\"><path class=\"hatch\" d=\"M0 0V7\"/></pattern>\
<pattern id=\"h-spins\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\"><path class=\"hatch\" d=\"M0 0L7 7M7 0L0 7\"/></pattern>\
<pattern id=\"h-undone\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\"><path class=\"again\" d=\"M0 3.5H7\"/></pattern></defs>";

/// A picture while it is drawn.
pub struct Canvas {
    out: String,
    prefix: String,
}

impl Canvas {
    /// Begins a picture of a kind, which is a class in [`STYLE`], of this width and height. The description contains
    /// the picture in words.
    pub fn new(place: Place<'_>, kind: &str, (width, height): (f64, f64), title: &str, description: &str) -> Self {
        let prefix = match place {
            Place::File => String::new(),
            Place::Page(word) => format!("{word}-"),
        };
        let mut canvas = Self { out: String::new(), prefix };
        // HTML has no namespaces.
        let space = if place == Place::File { " xmlns=\"http://www.w3.org/2000/svg\"" } else { "" };
        let (title_id, what_id) = (canvas.id("title"), canvas.id("what"));
        canvas.put(format_args!(
            "<svg{space} class=\"picture {kind}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
             aria-labelledby=\"{title_id}\" aria-describedby=\"{what_id}\">"
        ));
        canvas.put(format_args!("<title id=\"{title_id}\">{}</title>", escaped(title)));
        canvas.put(format_args!("<desc id=\"{what_id}\">{}</desc>", escaped(description)));
        if place == Place::File {
            canvas.put(format_args!("<style>{STYLE}</style>"));
        }
        canvas
    }

    /// The id of a part of this picture.
    fn id(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Appends a line.
    pub fn put(&mut self, line: Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(line);
        self.out.push('\n');
    }

    /// The whole picture.
    pub fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

/// The width of a character of a legend.
const LETTER: f64 = 7.0;

/// Samples with their meanings in lines of a legend. Each sample is `before` wide, and each line at most `width`.
pub fn legend(samples: &[(String, String)], before: f64, width: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut x) = (String::new(), 0.0);
    for (sample, meaning) in samples {
        let meaning = short(meaning, ((width - before) / LETTER) as usize);
        let own = before + LETTER * meaning.chars().count() as f64 + 18.0;
        if x > 0.0 && x + own > width {
            lines.push(std::mem::take(&mut line));
            x = 0.0;
        }
        let _ = write!(
            line,
            "<g transform=\"translate({x:.0})\">{sample}<text x=\"{before:.0}\">{}</text></g>",
            escaped(&meaning)
        );
        x += own;
    }
    lines.push(line);
    lines
}
